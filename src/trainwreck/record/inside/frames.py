"""What the user's code holds when it calls backward: loss terms by variable name, batches and outputs in numbers.

Every step the scalar tensors that require a gradient (the terms of the loss); at sampled steps a digest of all tensors
of the frame, and its plain numbers (weights of terms, temperatures, decay rates).
"""

from __future__ import annotations

import re
import weakref
from collections.abc import Iterator
from types import CodeType
from typing import Any

import torch

from . import callers
from .digest import digest, is_plain, plain_number
from .probe import Backward, Probe
from .variables import local_variables

MAX_TERMS = 24
MAX_TENSORS, MAX_NUMBERS = 40, 40
"""Variables of one frame that are looked at; a notebook's global names can be hundreds."""
TABLE = "frame"
_HIDDEN = re.compile(r"^_|^(?:self|cls)$")


class Frames(Probe):
    """Columns ``term/<name>`` in the optimizer's row; a table ``frame`` of what sampled frames held."""

    name = "loss terms"

    def __init__(self, recorder: Any) -> None:
        super().__init__(recorder)
        self._seen: dict[str, int] = {}
        self._alone: dict[tuple[int, int], tuple[CodeType, bool]] = {}
        """By the identity of a code and the instruction in it: hashing a code takes longer than all the rest here."""
        self._last: dict[str, weakref.ref[Any]] = {}
        self._described: set[tuple[str, str]] = set()
        self._twins: list[tuple[str, str]] = []

    def backward(self, moment: Backward) -> None:
        """Look into the frame that called backward."""
        frame = moment.frame
        if frame is None:
            return
        code = frame.f_code
        place = (id(code), frame.f_lasti)
        if not moment.sampled and self._alone.get(place) == (code, True):
            return  # no term beside the loss itself, which is recorded anyway
        with local_variables(frame) as found:
            count = self._take_terms(found, moment)
            if moment.sampled:
                self._alone[place] = (code, count <= 1)
                self._take_digests(found, moment)

    def _take_terms(self, found: dict[str, Any], moment: Backward) -> int:
        """Put the terms into the columns of the step to come; how many there are."""
        count, columns = 0, self.recorder.columns
        for name, value in found.items():
            if not isinstance(value, torch.Tensor) or value.numel() != 1 or not value.requires_grad:
                continue
            if value.is_leaf or ((known := self._last.get(name)) is not None and known() is value):
                continue  # a parameter, or left over from an earlier backward
            count += 1
            if count > MAX_TERMS:
                break
            self._last[name] = weakref.ref(value)
            plain = value.detach().reshape(())
            number = float(plain) if plain.device.type == "cpu" else plain.clone()
            key, seen = f"term/{name}", self._seen.get(name)
            if key in columns and seen is not None:
                # Micro-batches of one step: the mean of what they show.
                self._seen[name] = seen + 1
                columns[key] = columns[key] + (number - columns[key]) / (seen + 1)
            else:
                self._seen[name], columns[key] = 1, number
        return count

    def _take_digests(self, found: dict[str, Any], moment: Backward) -> None:
        row: dict[str, Any] = {"step": moment.step}
        line = moment.frame.f_lineno if moment.frame else 0
        numbers = 0
        for name, value in list(found.items()):
            if _HIDDEN.match(name):
                continue
            number = plain_number(value)
            if number is not None and numbers < MAX_NUMBERS:
                numbers += 1
                row[f"{name}"] = number
        tensors = list(tensors_of(found))
        self._views(tensors, moment)
        for name, value in tensors:
            for key, number in digest(value).items():
                row[f"{name}.{key}"] = number
            self._describe(name, value, moment, line)
        self.recorder.row(f"{TABLE}{line}", row)

    def _views(self, tensors: list[tuple[str, Any]], moment: Backward) -> None:
        """Two results of the same values that were computed apart: a pair of views that is one view."""
        if moment.loss.device.type != "cpu":
            return
        results = [(n, v) for n, v in tensors if v.grad_fn is not None and v.dim() == 2 and min(v.shape) > 1]
        for i, (name, value) in enumerate(results[:12]):
            for other_name, other in results[i + 1 : 12]:
                apart = value.data_ptr() != other.data_ptr() and value.shape == other.shape
                if apart and torch.equal(value, other) and float(value.detach().std()) > 0:
                    self._twins.append((name, other_name))
        if len(self._twins) >= 3 and moment.step >= 3:
            name, other_name = self._twins[-1]
            text = f"{name} and {other_name} were computed apart and are equal: the two views are one"
            self.tell("live-identical-views", text, frame=moment.frame, variable=other_name, step=moment.step)

    def _describe(self, name: str, value: Any, moment: Backward, line: int) -> None:
        """Tell shape and type of a variable the first time that it is seen with so many dimensions."""
        what = f"{str(value.dtype).removeprefix('torch.')}{list(value.shape)}"
        key = (name, f"{value.dtype}{value.dim()}")
        if key in self._described or len(self._described) > 200:
            return
        self._described.add(key)
        place = callers.place(moment.frame)
        self.recorder.event(
            "tensor",
            f"{name}: {what}",
            name,
            shape=list(value.shape),
            dtype=str(value.dtype).removeprefix("torch."),
            grad=value.requires_grad,
            path=place[0] if place else None,
            line=place[1] if place else None,
        )


def tensors_of(found: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Named tensors among variables: themselves, and the items of tuples, lists and dictionaries one level down."""
    count = 0
    for name, value in list(found.items()):
        if _HIDDEN.match(name) or isinstance(value, torch.nn.Module):
            continue
        items: list[tuple[str, Any]] = [(name, value)]
        if isinstance(value, (tuple, list)) and len(value) <= 8:
            items = [(f"{name}[{i}]", item) for i, item in enumerate(value)]
        elif isinstance(value, dict) and len(value) <= 32:
            items = [(f"{name}[{key}]", item) for key, item in value.items() if isinstance(key, str)]
        for label, item in items:
            if is_plain(item) and item.numel() and not isinstance(item, torch.nn.Parameter):
                count += 1
                if count > MAX_TENSORS:
                    return
                yield label, item
