"""Scaling of one side only: the evaluation gets what the training was to have too."""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node
from trainwreck.code.rehearsal.graph import OPAQUE, near
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.evaluation import inputs_of, made_by, scales_of
from trainwreck.code.rehearsal.questions.paths import Path

SCALES = frozenset(["sub", "div", "mul", "transform", "normalize", "standardize"])


def scaled_there_alone(run: Rehearsing) -> Iterator[Answer]:
    """Inputs of the evaluation that are scaled by statistics of the training data, which are trained on as they are."""
    train, held = inputs_of(run)
    for event, path in held:
        taught = [p for e, p in train if e.subject is event.subject and made_by(p) == made_by(path)]
        raw = {id(n) for p in taught for n in p.nodes} - {id(n) for n in path.nodes}
        if not taught or any(_scaled(p, raw) or any(n.op in OPAQUE for n in p.nodes) for p in taught):
            continue
        mine = _scaled_by(path, raw)
        if {op for op, _ in mine} == {"sub", "div"} and mine[0][1].place is not None:
            text = "these statistics of the training data scale the evaluation alone: the training data are not scaled"
            yield Answer(mine[0][1].place, text, tuple(p for p in (event.place,) if p is not None))
            return


def _scaled(path: Path, raw: set[int]) -> bool:
    """True for inputs that are scaled by numbers or by statistics of their own."""
    return any(op in SCALES for op, _ in scales_of(path)) or bool(_scaled_by(path, raw))


def _scaled_by(path: Path, raw: set[int]) -> list[tuple[str, Node]]:
    """Shifts and divisions on the way by statistics of ``raw``, each with its statistic."""
    found: list[tuple[str, Node]] = []
    for node, before in zip(path.nodes[1:], path.nodes, strict=False):
        by = node.inputs[1] if node.op in ("sub", "div") and len(node.inputs) > 1 else None
        if isinstance(by, Node) and by is not before and any(id(n) in raw for n in near(by, 40)):
            statistics = [n for n in near(by, 10) if n.op in ("mean", "std", "var")]
            found += [(node.op, statistics[0])] if statistics else []
    return found
