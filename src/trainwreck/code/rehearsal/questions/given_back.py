"""Targets that the training scales: is an error of the evaluation taken between values of one scale?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Value
from trainwreck.code.rehearsal.graph import ancestors, parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.evaluation import made_by, scales_of
from trainwreck.code.rehearsal.questions.paths import Path, paths, statistic
from trainwreck.code.rehearsal.questions.roles import given, trained
from trainwreck.code.rehearsal.questions.terms import fitted

ERRORS = frozenset(["mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"])
INVERSE = {"mul": "div", "add": "sub", "div": "mul", "sub": "add"}
PASSES = frozenset(
    "squeeze view reshape flatten float double numpy cpu detach item getitem element part clone tolist ravel".split()
)
JOINED = frozenset(["cat", "concatenate", "stack"])
MAX_STEPS = 16


def on_another_scale(run: Rehearsing) -> Iterator[Answer]:
    """``net(x) * std - y`` after a training on ``(y - mean) / std``: the mean is never given back."""
    learned = _learned(run)
    if not learned:
        return
    outputs = {id(e.result) for e in run.tape if e.name == "forward" and isinstance(e.result, Node)}
    for node in run.nodes:
        if node.op not in ("sub", *ERRORS) or node.grad or len(node.inputs) < 2 or node.place is None:
            continue
        for output, target in (node.inputs[:2], node.inputs[1::-1]):
            back = _given_back(output, outputs)
            if back is None or not isinstance(target, Node) or _learns(target):
                continue
            found = [(_scales(p), learned[made_by(p)]) for p in paths(run, target)
                     if made_by(p) in learned]  # fmt: skip
            if not found or any(known is None for _, known in found):
                continue
            wrong = [(mine, known) for mine, known in found if known is not None and mine + back != known]
            if len(wrong) == len(found) and all(not (mine - known) for mine, known in wrong if known is not None):
                text = "the targets are scaled in training, and here the output is not brought back as far as they are"
                yield Answer(node.place, text)
                return


def _learned(run: Rehearsing) -> dict[int, Counter[str] | None]:
    """For each line that makes targets how the training scales them; None where that differs or isn't known."""
    found: dict[int, Counter[str] | None] = {}
    for node in trained(run):
        output, target = given(node, "input", 0), given(node, "target", 1)
        if node.op not in ERRORS:
            pair = fitted(node)  # a square that is written out
            if pair is None:
                continue
            output, target = pair
        if not isinstance(target, Node) or target.grad:
            continue
        if not isinstance(output, Node) or any(_rescales(n) for n in _until_layers(output)):
            continue
        for path in paths(run, target):
            ops = _scales(path)
            usual = ops if ops == Counter(["div", "sub"]) else None
            key = made_by(path)
            found[key] = usual if found.get(key, usual) == usual else None
    return {key: ops for key, ops in found.items() if ops} if any(found.values()) else {}


def _until_layers(output: Node) -> Iterator[Node]:
    """What lies between the last layer and the loss."""
    at: Value = output
    for _ in range(MAX_STEPS):
        if not isinstance(at, Node) or at.op == "linear":
            return
        yield at
        at = at.inputs[0] if at.inputs else None


def _rescales(node: Node) -> bool:
    """True for an output that the network itself brings to the scale of the data."""
    rest = node.inputs[1:] if node.op in INVERSE else ()
    return any(isinstance(i, int | float) or (isinstance(i, Node) and (statistic(i) or i.op == "buffer")) for i in rest)


def _scales(path: Path) -> Counter[str]:
    """How often means are taken off, or spreads divided by, on the way."""
    return Counter(
        op for op, node in scales_of(path) if any(isinstance(i, Node) and statistic(i) for i in node.inputs[1:])
    )


def _given_back(value: Value, outputs: set[int]) -> Counter[str] | None:
    """The inverse of what an output goes through before it is compared; None where that isn't followed."""
    back: Counter[str] = Counter()
    for _ in range(MAX_STEPS):
        if not isinstance(value, Node) or not value.inputs:
            return None
        if id(value) in outputs:
            return back
        first, rest = value.inputs[0], value.inputs[1:]
        if value.op in JOINED:
            items = list(parts(first))
            value = items[-1] if items else None
            continue
        if value.op in INVERSE and len(rest) == 1:
            if isinstance(first, Node) and not _learns(first) and isinstance(rest[0], Node):
                first, rest = rest[0], (first,)
                if value.op not in ("mul", "add"):
                    return None
            if not isinstance(rest[0], Node) or not statistic(rest[0]):
                return None
            back[INVERSE[value.op]] += 1
        elif value.op not in PASSES:
            return None
        value = first
    return None


def _learns(value: Node) -> bool:
    return any(n.op == "param" for n in ancestors(value))


__all__ = ["on_another_scale"]
