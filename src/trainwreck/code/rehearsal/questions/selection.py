"""Is the best result kept, or the worst? By what the value was computed from, not by its name."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Place, Value
from trainwreck.code.rehearsal.graph import parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.places import named, written_number

THROUGH = frozenset(
    """mean sum item float div add either stack cat detach cpu tolist round sqrt getitem part mul append list numpy
    attribute tensor scale""".split()
)
"""Operations that leave the direction of a result as it is."""
GREATER = {"gt": True, "ge": True, "lt": False, "le": False}
MAX_NODES = 400


def direction(value: Value) -> bool | None:
    """True if more is better (a share of hits), False if less is (a loss, an error); None where that is open."""
    queue, found, seen = list(parts(value)), set[bool | None](), set[int]()
    while queue:
        node = queue.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if len(seen) > MAX_NODES:
            return None
        if node.op in THROUGH:
            queue += [p for i in node.inputs for p in parts(i)]
        elif node.op in ("len", "counter", "size", "numel"):
            continue
        elif node.op == "eq":
            found.add(True)
        elif (node.op.endswith(("_loss", "entropy", "_logits")) and node.op != "entropy") or (
            node.op in ("pow", "square", "abs")
            and node.inputs
            and isinstance(node.inputs[0], Node)
            and node.inputs[0].op == "sub"
        ):
            found.add(False)
        else:
            return None
    return found.pop() if len(found) == 1 else None


def worst_kept(run: Rehearsing) -> Iterator[Answer]:
    told: set[int] = set()
    for node in run.nodes:
        if node.op not in GREATER or node.place is None or len(node.inputs) != 2 or id(node.place[0]) in told:
            continue
        compare, scope = node.place
        if not isinstance(compare, ast.Compare):
            continue
        holder = next((a for a in run.project.ancestors(compare, scope) if isinstance(a, ast.If)), None)
        if holder is None or not any(n is compare for n in ast.walk(holder.test)):
            continue
        texts = [ast.unparse(compare.left), ast.unparse(compare.comparators[0])]
        kept = {name for s in holder.body for n in ast.walk(s) for name, _ in named(n)}
        sides = [n for n, text in enumerate(texts) if text in kept]
        if len(sides) != 1 or any(isinstance(n, ast.Not) for n in ast.walk(holder.test)):
            continue
        best, metric = sides[0], node.inputs[1 - sides[0]]
        better = direction(metric)
        if better is None:
            continue
        larger = GREATER[node.op] if best == 1 else not GREATER[node.op]
        told.add(id(compare))
        if larger is not better:
            kind = "a share of hits" if better else "a loss or an error"
            yield Answer((holder, scope), f"this keeps the worst value: {texts[1 - best]} is {kind}", ())
            continue
        start = node.inputs[best]
        bad = isinstance(start, int | float) and (
            (not better and (start <= 0 or start == -math.inf)) or (better and start >= 1)
        )  # fmt: skip
        if bad:
            place = _set_at(run, texts[best], start) or (holder, scope)
            yield Answer(
                place, f"{texts[best]} starts at {start:g}, which no later value is better than", ((holder, scope),)
            )


def _set_at(run: Rehearsing, text: str, start: float) -> Place | None:
    for walked in run.project.walked.values():
        for scope in walked.scopes:
            for node in scope.nodes:
                for name, value in named(node):
                    if name == text and (written_number(value) == start or "inf" in ast.unparse(value)):
                        return (value, scope)
    return None
