"""What can still be said when a step can't be run again: the saved tensors of its graph, the variables of its frame."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

import torch

from . import data, sites, slices, tensors, values

if TYPE_CHECKING:
    from .replay import Attempt, Question

MAX_NODES = 20_000


def hints(question: Question, known: values.Known) -> dict[str, Any]:
    """``path``, ``line`` and ``text`` of the first variable of the step that is not finite; the oldest graph node."""
    told: dict[str, Any] = {}
    for frame in question.frames[:4]:
        line = first_variable(frame)
        if line is not None:
            from .describe import relative

            told = {"path": relative(frame.f_code.co_filename), "line": line[0], "variable": line[1]}
            told["text"] = (
                f"the step could not be reproduced; {line[1]} (line {line[0]}) is its first variable that is not finite"
            )
            break
    return told


def state(name: str, tensor: Any, attempt: Attempt) -> dict[str, Any]:
    """The origin where a step is finite with finite state from the step before, and that state is not finite by now.

    The state's own old value has been overwritten in the step; that all else stays finite is what speaks against it.
    """
    from .describe import relative

    root = name.split("[")[0].split(".")[0]
    line = attempt.cut.assigned.get(root, attempt.cut.line) if attempt.cut is not None else attempt.frame.f_lineno
    path = relative(attempt.frame.f_code.co_filename)
    facts = data.damage(tensor)
    return {
        "kind": "state",
        "phase": "state",
        "path": path,
        "line": line,
        "data": [{"name": name, "what": "variable", **facts}],
        "text": (
            f"state of an earlier step is not finite: {name} at {path}:{line}, {data.words(facts)}; with a finite"
            f" {name} this step is finite"
        ),
    }


def first_variable(frame: Any) -> tuple[int, str] | None:
    """Line and name of the first assignment of the step whose value is not finite now, its own inputs being finite."""
    try:
        place = sites.site(frame.f_code, frame.f_lasti)
    except sites.NoSlice:
        return None
    space = {**frame.f_globals, **frame.f_locals}
    loops = [n for n, part, _ in place.chain if isinstance(n, (ast.For, ast.While)) and part == "body"]
    region = loops[-1] if loops else place.scope
    found = []
    for node in ast.walk(region):
        if isinstance(node, ast.Assign) and node.lineno <= place.statement.lineno:
            for name in (n for t in node.targets for n in slices.targets(t)):
                try:
                    value = slices.evaluate(name, space)
                except Exception:
                    continue
                if any(tensors.nonfinite(t) for _, t in values.variables({"value": value})):
                    found.append((node.lineno, name))
    return min(found, default=None)


def graph(loss: Any) -> dict[str, Any] | None:
    """The oldest node of the graph of ``loss`` that has saved a non-finite tensor: name and sequence number."""
    oldest: tuple[int, str] | None = None
    seen: set[Any] = set()
    todo = [loss.grad_fn] if loss.grad_fn is not None else []
    while todo and len(seen) < MAX_NODES:
        node = todo.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        todo += [n for n, _ in node.next_functions]
        for name in dir(node):
            if not name.startswith("_saved_"):
                continue
            try:
                value = getattr(node, name)
            except RuntimeError:
                continue
            if isinstance(value, torch.Tensor) and tensors.nonfinite(value):
                number = node._sequence_nr()
                oldest = min(oldest, (number, node.name())) if oldest else (number, node.name())
    return {"node": oldest[1]} if oldest else None
