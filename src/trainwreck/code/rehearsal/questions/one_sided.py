"""Scaling of one side only: the evaluation gets what the training was to have too."""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node
from trainwreck.code.rehearsal.graph import OPAQUE, near
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.evaluation import inputs_of, made_by, scales_of
from trainwreck.code.rehearsal.questions.paths import Path

MOST = 200
"""Ways into the evaluation that are looked at."""
SCALES = frozenset(["sub", "div", "mul", "transform", "normalize", "standardize"])


def scaled_there_alone(run: Rehearsing) -> Iterator[Answer]:
    """Inputs of the evaluation that are scaled by statistics of the training data, which are trained on as they are."""
    train, held = inputs_of(run)
    taught: dict[tuple[int, int], list[Path]] = {}
    for event, path in train:
        taught.setdefault((id(event.subject), made_by(path)), []).append(path)
    plain: dict[tuple[int, int], set[int]] = {}
    for key, found in taught.items():
        if not any(n.op in OPAQUE for p in found for n in p.nodes) and not any(
            op in SCALES for p in found for op, _ in scales_of(p)
        ):
            plain[key] = {id(n) for p in found for n in p.nodes}
    looked = 0
    for event, path in held:
        key = (id(event.subject), made_by(path))
        if key not in plain or looked >= MOST or {n.op for n in path.nodes}.isdisjoint(("sub", "div")):
            continue
        looked += 1
        raw = plain[key] - {id(n) for n in path.nodes}
        mine = _scaled_by(path, raw)
        if {op for op, _ in mine} != {"sub", "div"} or mine[0][1].place is None:
            continue
        if not any(_scaled_by(p, raw) for p in taught[key]):
            text = "these statistics of the training data scale the evaluation alone: the training data are not scaled"
            yield Answer(mine[0][1].place, text, tuple(p for p in (event.place,) if p is not None))
            return


def _scaled_by(path: Path, raw: set[int]) -> list[tuple[str, Node]]:
    """Shifts and divisions on the way by statistics of ``raw``, each with its statistic."""
    found: list[tuple[str, Node]] = []
    for node, before in zip(path.nodes[1:], path.nodes, strict=False):
        by = node.inputs[1] if node.op in ("sub", "div") and len(node.inputs) > 1 else None
        if isinstance(by, Node) and by is not before and any(id(n) in raw for n in near(by, 40)):
            statistics = [n for n in near(by, 10) if n.op in ("mean", "std", "var")]
            found += [(node.op, statistics[0])] if statistics else []
    return found
