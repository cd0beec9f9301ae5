"""Decoding with kept keys and values: are they carried on from turn to turn, and does the position move with them?"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Event, Node, Obj, Turn
from trainwreck.code.rehearsal.graph import ancestors, parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.caching import cached
from trainwreck.code.rehearsal.questions.roles import JOINS, STRUCTURE, users

LAYERS = frozenset(["linear", "conv1d", "matmul"])
MAX_CHAIN = 30
FEW = 4
ATTENDS = frozenset(["scaled_dot_product_attention", "matmul", "einsum", "bmm", "baddbmm"])


def _attended(run: Rehearsing) -> Iterator[tuple[Event, Node]]:
    """Those joins that an attention looks at: batches are joined too."""
    table = users(run)
    for event, join in cached(run):
        level, found = [join], False
        for _ in range(FEW):
            level = [u for n in level for u in table.get(id(n), ())]
            found = found or any(u.op in ATTENDS for u in level)
            level = [u for u in level if u.op in STRUCTURE]
        both = list(parts(join.inputs[0]))
        if found and both[0] is not both[-1]:
            yield event, join


def not_carried(run: Rehearsing) -> Iterator[Answer]:
    """In a loop each call is given the keys from before the loop: those of the tokens in between are forgotten."""
    for event, join in _attended(run):
        turn = event.turns[-1] if event.turns else None
        old = next(iter(parts(join.inputs[0])), None)
        if turn is None or turn.index == 0 or old is None or event.place is None or not _fed_from(event.args, turn):
            continue
        within = [n for n in ancestors(old, through=lambda n: n.op != "param") if _of_loop(n, turn)]
        if not within and not _of_loop(old, turn):
            text = "each turn is given the keys and values from before the loop: those of earlier turns are lost"
            yield Answer(event.place, text, tuple(p for p in (join.place,) if p is not None))
            return


def stands_still(run: Rehearsing) -> Iterator[Answer]:
    """The position of the new token is the same in each turn of the loop."""
    for event, join in _attended(run):
        turn = event.turns[-1] if event.turns else None
        if turn is None or turn.index == 0 or event.place is None or not _fed_from(event.args, turn):
            continue
        inside = [n for n in run.nodes if n.op == "embedding" and event.serial < n.serial < join.serial and n.inputs]
        moving = [n for n in inside if _fed_from(n.inputs[:1], turn)]
        still = [n for n in inside if not _fed_from(n.inputs[:1], turn) and _counts(n)]
        if len(moving) == 1 and len(still) == 1 and still[0].place is not None:
            text = "the position of the new token stays the same in each turn of the loop"
            yield Answer(event.place, text, (still[0].place,))
            return


def exchanged(run: Rehearsing) -> Iterator[Answer]:
    """New keys are put behind old values, and new values behind old keys."""
    met: dict[tuple[int, int], Node] = {}
    for _, join in _attended(run):
        old, new = (_layer(p) for p in list(parts(join.inputs[0]))[:2])
        if old is None or new is None or old is new:
            continue
        if (other := met.get((id(new), id(old)))) is not None and join.place is not None:
            text = "keys are joined with the values of earlier tokens, and values with their keys"
            yield Answer(join.place, text, tuple(p for p in (other.place,) if p is not None))
            return
        met[id(old), id(new)] = join


def _layer(value: Node) -> Obj | None:
    """The layer that keys or values come from."""
    at: object = value
    for _ in range(MAX_CHAIN):
        if not isinstance(at, Node):
            return None
        if at.op in LAYERS:
            return at.owner
        if at.op in JOINS:
            at = next(iter(parts(at.inputs[0])), None) if at.inputs else None
        elif at.op in STRUCTURE and at.inputs:
            at = at.inputs[0]
        else:
            return None
    return None


def _of_loop(node: Node, turn: Turn) -> bool:
    return any(t.node is turn.node for t in node.turns)


def _fed_from(values: object, turn: Turn) -> bool:
    """True where something was computed in this loop."""
    return any(_of_loop(n, turn) for v in (values if isinstance(values, tuple) else ())
               for n in ancestors(v, through=lambda n: n.op != "param"))  # fmt: skip


def _counts(node: Node) -> bool:
    """True for an index that tells how many tokens there were."""
    behind = [n for v in node.inputs[:1] for n in ancestors(v, through=lambda n: n.op != "param")]
    return any(n.op in ("sum", "size", "len", "arange", "cumsum", "full") for n in behind)


__all__ = ["exchanged", "not_carried", "stands_still"]
