"""What goes into the trained model in training, and what in evaluation: rows that are the same, scales that are not.

At sampled steps, and at the first evaluations, the rows of the model's first input are remembered as 64-bit numbers,
and means and deviations of its columns are added up. One hook for all modules, in place for those moments only.
"""

from __future__ import annotations

import linecache
import math
import re
import threading
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

import torch

from . import callers
from .probe import Backward, Probe, Step

MOST_ROWS, MOST_EVALUATED = 20_000, 4_000
"""Rows of training, and of one evaluation, that are remembered (about 100 bytes each)."""
ROWS_AT_ONCE = 128
LEAST_NUMBERS = 8
"""Numbers of a row with which two of them are not the same by chance."""
LOOKS, EACH = 6, 3
"""Evaluations that are looked at, and how often each."""
OFTEN = 60
"""Times that a function puts gradients off after which it is left alone: it may do so at every step."""
MOST_COLUMNS = 256
LEAST_COMMON = 5
COMMON = 0.02
"""Share of the rows of an evaluation that occurred in the few steps of training that were looked at."""
REPEATED = 0.02
"""Share of rows that occur twice within one evaluation from which rows are no identity of samples."""
HELD_OUT = re.compile(
    r"(?<![a-z])[xy]?(val|va|valid|validation|test|te|tst|holdout|held|heldout|dev|unseen)(?![a-z])", re.IGNORECASE
)
TRAINING = re.compile(r"(?<![a-z])(train|training|trn|tr|fit|all|full|whole)(?![a-z])", re.IGNORECASE)
"""Words in the lines of an evaluation that tell what is evaluated. Without one nothing is said."""
STANDARD, NOT_STANDARD = 0.15, 2.0
"""Training columns have a mean within STANDARD of 0 and a deviation within it of 1 (they were standardised); those of
the evaluation are NOT_STANDARD deviations away, or have a deviation of more than SCALES or less than its inverse."""
SCALES = 4.0
OTHER_UNIT = 20.0
"""Factor between deviations from which columns are in another unit, standardised or not (bytes against shares: 255)."""
LEAST_SAMPLES = 64


@dataclass
class Sums:
    """Count, sums and sums of squares of columns."""

    count: int = 0
    total: Any = None
    squares: Any = None

    def add(self, rows: Any) -> None:
        rows = rows.double()
        self.count += rows.shape[0]
        self.total = rows.sum(0) if self.total is None else self.total + rows.sum(0)
        self.squares = rows.square().sum(0) if self.squares is None else self.squares + rows.square().sum(0)

    def moments(self) -> tuple[Any, Any]:
        mean = self.total / self.count
        return mean, (self.squares / self.count - mean.square()).clamp(min=0.0).sqrt()


@dataclass
class Evaluated:
    """What one line evaluates: the lines that put gradients off around it, its rows, its columns."""

    places: list[tuple[str, int]]
    line: tuple[str, int]
    """Where the model was called."""
    words: list[str]
    """The calls on the way there, as they are written."""
    beside: bool = False
    """Whether the same line evaluates something else as well."""
    rows: list[int] = field(default_factory=list)
    sums: Sums = field(default_factory=Sums)


class Streams(Probe):
    """Events ``live-evaluated-rows-trained`` and ``live-evaluation-of-another-scale``."""

    name = "training and evaluation data"
    rarely = frozenset(("backward", "after_step"))

    def __init__(self, recorder: Any) -> None:
        super().__init__(recorder)
        self._handle: Any = None
        self._thread = 0
        self._models: set[int] = set()
        self._rows: set[int] = set()
        self._sums = Sums()
        self._width: tuple[int, ...] | None = None
        self._entered: dict[Any, int] = {}
        self._looks: dict[tuple[tuple[str, int], ...], int] = {}
        self._places: list[tuple[str, int]] | None = None
        """Lines of the evaluation under way."""
        self._words: list[str] = []
        self._now: dict[tuple[str, int, int], Evaluated] = {}
        """What it evaluates, by the place that calls the model."""
        self._training = False

    def attach(self) -> None:
        """Know where gradients are put off."""
        for context in (torch.no_grad, torch.inference_mode):
            callers.watch(context, "__enter__", self._putting_off)

    def after_step(self, step: Step) -> None:
        """Before a sampled step: look at what goes in."""
        if step.number == 1:
            held = {id(p) for p in step.watched.parameters}
            roots = [r for r in self.recorder.names.roots if any(id(p) in held for p in r.parameters())]
            self._finish()
            # Another model (a fold, a second run) has seen nothing of what the first one was trained on.
            self._models = {id(r) for r in roots} if len(roots) == 1 and self._plain(step) else set()
            self._rows, self._sums, self._width, self._looks = set(), Sums(), None, {}
        if self._models and self.recorder.sampled(step.number + 1) and len(self._rows) < MOST_ROWS:
            self._training = True
            self._attach()

    def _plain(self, step: Step) -> bool:
        compiled = any(getattr(p, "compiled", False) for p in self.recorder.probes)
        return not compiled and all(p.is_cpu for p in step.watched.parameters)

    def backward(self, moment: Backward) -> None:
        """The forward of the step is over."""
        if self._training:
            self._training = False
            self._remove()

    def close(self) -> None:
        """Judge the last evaluation."""
        self._finish()
        self._remove()

    def _finish(self) -> None:
        found, places = list(self._now.values()), tuple(self._places or ())
        self._now, self._places = {}, None
        if found:
            self._looks[places] = self._looks.get(places, 0) + 1
        for evaluated in found:
            evaluated.beside = sum(other.line == evaluated.line for other in found) > 1
            self._judge_rows(evaluated)
            self._judge_scale(evaluated)

    def _attach(self) -> None:
        if self._handle is None:
            self._thread = threading.get_ident()
            self._handle = torch.nn.modules.module.register_module_forward_pre_hook(self._hook)

    def _remove(self) -> None:
        handle, self._handle = self._handle, None
        if handle is not None:
            handle.remove()

    def _putting_off(self, _: Any, frame: FrameType | None) -> None:
        if not self._models or frame is None or not torch.is_grad_enabled():
            return
        code: Any = frame.f_code
        if not callers.is_users(code.co_filename):
            code = getattr(frame.f_locals.get("func"), "__code__", None)  # torch's wrapper of a decorated function
            if code is None or not callers.is_users(code.co_filename):
                return
        count = self._entered[code] = self._entered.get(code, 0) + 1
        if count > OFTEN:
            return
        places = tuple(evaluation_places(frame))
        if not places or (self._places is not None and places == tuple(self._places)):
            return
        self._finish()
        looks = self._looks.get(places, 0)
        if looks >= EACH or (not looks and len(self._looks) >= LOOKS):
            return
        self._places, self._words = list(places), evaluation_words(frame)
        self._attach()

    def _hook(self, module: Any, args: Any) -> None:
        try:
            if id(module) not in self._models or threading.get_ident() != self._thread:
                return
            if torch.compiler.is_compiling() or torch._C._len_torch_dispatch_stack():
                return
            graded = torch.is_grad_enabled()
            if graded and self._places is not None:
                self._finish()
            if self._places is None and not self._training:
                self._remove()
                return
            rows = next((a for a in args if isinstance(a, torch.Tensor)), None)
            if rows is None or rows.dim() < 2 or rows.shape[0] < 2 or not rows.is_cpu or rows.requires_grad:
                return
            began = self.recorder.pace.begin(graded)
            self._take(rows, graded)
            self.recorder.pace.end(began)
        except Exception as problem:
            self.recorder.faults.add(self.name, problem)

    def _take(self, rows: Any, graded: bool) -> None:
        width = tuple(rows.shape[1:])
        if graded:
            if not self._training:
                return
            self._width = self._width or width
        if width != self._width or math.prod(width) < LEAST_NUMBERS:
            return
        if graded:
            rows, sums = rows.detach()[:ROWS_AT_ONCE], self._sums
            self._rows.update(keys(rows))
        else:
            frame = callers.here()
            place = callers.place(frame)
            if frame is None or place is None or self._places is None or len(self._now) > LOOKS:
                return
            key = (*place, frame.f_lasti)  # one line may evaluate several things
            evaluated = self._now.get(key)
            if evaluated is None:
                evaluated = self._now[key] = Evaluated(self._places, place, [*self._words, segment(frame)])
            rows, sums = rows.detach()[: max(0, MOST_EVALUATED - len(evaluated.rows))], evaluated.sums
            if not rows.shape[0]:  # an empty batch, or enough rows have been seen
                return
            evaluated.rows += keys(rows)
        if not rows.is_floating_point() or not rows.shape[0]:
            return
        if len(width) > 1 or width[0] > MOST_COLUMNS:
            rows = rows.reshape(rows.shape[0], -1)[:, :: max(1, math.prod(width) // MOST_COLUMNS)].reshape(-1, 1)
        sums.add(rows)

    def _judge_rows(self, evaluated: Evaluated) -> None:
        """Rows of held-out data that the model was trained on."""
        count = len(evaluated.rows)
        distinct = set(evaluated.rows)
        common = len(distinct & self._rows)
        if common < max(LEAST_COMMON, COMMON * count) or count - len(distinct) > REPEATED * count:
            return
        chance = by_chance(count, len(distinct), len(self._rows)) if not evaluated.sums.count else 0.0
        if common < count / 2 and common <= chance:
            return  # short rows of numbers of a list (tokens) meet without being the same sample
        if distinct >= self._rows:
            return  # all inputs go in, in training as well, and the rows of either side are picked from the results
        if not self._held_out(evaluated):
            return
        text = (
            f"{common} of {count} rows that are evaluated here went into the model in the {len(self._rows)} rows of"
            " training that were looked at: they are the same"
        )
        path, line = evaluated.line
        self.tell("live-evaluated-rows-trained", text, path=path, line=line)

    def _held_out(self, evaluated: Evaluated) -> bool:
        """Whether the lines of the evaluation, and the function, say that it is of data held out."""
        calls = " ".join(evaluated.words).replace("_", " ")
        if HELD_OUT.search(calls) or TRAINING.search(calls):
            return bool(HELD_OUT.search(calls)) and not TRAINING.search(calls)
        if evaluated.beside:
            return False  # the words of the line may be the other's
        places = [*evaluated.places, evaluated.line]
        text = " ".join(f"{linecache.getline(path, line)} {around(path, line)}" for path, line in places)
        text = text.replace("_", " ")
        return bool(HELD_OUT.search(text)) and not TRAINING.search(text)

    def _judge_scale(self, evaluated: Evaluated) -> None:
        """Training columns that are standardised, and columns of the evaluation that are not."""
        if min(self._sums.count, evaluated.sums.count) < LEAST_SAMPLES:
            return
        mean, deviation = self._sums.moments()
        other, spread = evaluated.sums.moments()
        standard = (mean.abs() < STANDARD) & ((deviation - 1).abs() < STANDARD)
        away = (other.abs() > NOT_STANDARD) | (spread > SCALES) | ((spread < 1 / SCALES) & (spread > 0))
        moves = (deviation > 0) & (spread > 0)
        ratio = spread / deviation.clamp(min=1e-30)
        unit = moves & ((ratio > OTHER_UNIT) | (ratio < 1 / OTHER_UNIT))
        if not (share(standard) >= 0.8 and share(away & standard) >= 0.5) and share(unit) < 0.8:
            return
        text = (
            "the model's inputs have another scale when it is evaluated here than in training"
            f" (a column of mean {float(mean[0]):.2g} and deviation {float(deviation[0]):.2g} has {float(other[0]):.2g}"
            f" and {float(spread[0]):.2g})"
        )
        path, line = evaluated.line
        self.tell("live-evaluation-of-another-scale", text, path=path, line=line)


def share(mask: Any) -> float:
    """Share of True."""
    return float(mask.double().mean())


def around(path: str, line: int) -> str:
    """The head of the loop around a line, as far as indentation shows it; empty without one."""
    lines = linecache.getlines(path)[:line]
    if not lines:
        return ""
    depth = len(lines[-1]) - len(lines[-1].lstrip())
    for text in reversed(lines[:-1]):
        indent = len(text) - len(text.lstrip())
        if text.strip() and indent < depth:
            depth = indent
            if text.lstrip().startswith("for "):
                return text
            if text.lstrip().startswith(("def ", "class ")):
                return ""
    return ""


def keys(rows: Any) -> list[int]:
    """A number for each row, the same for the same bytes within this process."""
    flat = rows.reshape(rows.shape[0], -1).contiguous()
    width = flat.shape[1] * flat.element_size()
    data = flat.view(torch.uint8).numpy().tobytes()
    return [hash(data[i : i + width]) for i in range(0, len(data), width)]


def segment(frame: FrameType) -> str:
    """The call at which ``frame`` stands, as it is written; empty where it spans lines or is not known."""
    positions = list(frame.f_code.co_positions())
    at = frame.f_lasti // 2
    line, end, column, end_column = positions[at] if at < len(positions) else (None,) * 4
    if line is None or line != end or column is None:
        return ""
    # Columns count bytes.
    return linecache.getline(frame.f_code.co_filename, line).encode()[column:end_column].decode(errors="replace")


def evaluation_words(frame: FrameType | None) -> list[str]:
    """What the user's functions on the way call, as it is written, the last three."""
    found: list[str] = []
    for _ in range(12):
        if frame is None or len(found) >= 3:
            break
        if callers.is_users(frame.f_code.co_filename):
            found.append(segment(frame))
        frame = frame.f_back
    return found


def evaluation_places(frame: FrameType | None) -> list[tuple[str, int]]:
    """The user's lines that put gradients off, from the inside out: those of the last three functions."""
    found: list[tuple[str, int]] = []
    for _ in range(12):
        if frame is None or len(found) >= 3:
            break
        code: Any = frame.f_code
        if callers.is_users(code.co_filename) and (place := callers.place(frame)) is not None:
            found.append(place)
        else:
            made = getattr(frame.f_locals.get("func"), "__code__", None)  # torch's wrapper of a decorated function
            if not found and made is not None and callers.is_users(made.co_filename):
                found.append((callers.relative(made.co_filename), made.co_firstlineno))
        frame = frame.f_back
    return found


def by_chance(count: int, distinct: int, others: int) -> float:
    """How many of ``distinct`` rows may occur among ``others`` by chance, told by how often two of the ``count`` rows
    of one draw are the same (two standard deviations of that number, a Poisson variable, above it)."""
    repeated = count - distinct + 1
    pairs = max(1, count * (count - 1) / 2)
    return (repeated + 2.0 * math.sqrt(repeated)) / pairs * distinct * others
