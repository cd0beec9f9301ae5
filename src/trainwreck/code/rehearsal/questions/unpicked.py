"""A loss in which one side holds the rows that a turn picked, and the other the same first rows in every turn.

``obs[idx]`` beside ``advantage[:len(idx)]``: as many rows, and not those of the observations.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Event, Node, Obj
from trainwreck.code.rehearsal.graph import near
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.paths import CREATES, ORDERS, Step, meets, paths, trained
from trainwreck.code.rehearsal.questions.roles import backwards

DRAWN = ORDERS | {"randint", "integers"}
MET = frozenset("sub mul div eq log_prob cross_entropy nll_loss mse_loss l1_loss smooth_l1_loss".split()) | frozenset(
    ["binary_cross_entropy", "binary_cross_entropy_with_logits", "huber_loss"]
)
"""Where rows stand beside each other one by one."""


def first_rows_beside(run: Rehearsing) -> Iterator[Answer]:
    """What is compared row by row: picked anew in each turn on one side, and ``[:n]`` on the other."""
    for event in backwards(run):
        loops = {id(t.node) for t in event.turns}
        if not loops:
            continue
        met = [(node, o) for node, _, outside in meets(event.subject) if node.op in MET for o in outside]
        fed = [n for e, n in trained(run) if e is event]
        picked = [n for n in (*fed, *(o for _, o in met)) if any(_picked(s, loops) for s in _steps(run, n))]
        for _, other in met:
            steps = _steps(run, other)
            first = next((s for s in steps if _first(s)), None)
            if first is None or first.place is None or any(_picked(s, loops) for s in steps) or not picked:
                continue
            if (
                not _in_loop(other, event)
                or any(p.root.op in CREATES or _in_loop(p.root, event) for p in paths(run, other))
                or not any(_sized_alike(other, one) for one in picked)
            ):
                continue
            text = "these are the same first rows in every turn, beside rows that each turn picks by number"
            proof = tuple(p for p in (picked[0].place, event.place) if p is not None)
            yield Answer(first.place, text, proof)
            return


def _steps(run: Rehearsing, node: Node) -> tuple[Step, ...]:
    found = paths(run, node)
    return found[0].steps if found else ()


def _picked(step: Step, loops: set[int]) -> bool:
    """True for rows whose numbers were drawn or ordered at random, other ones in each turn."""
    if not step.moving or not isinstance(step.index, Node):
        return False
    behind = near(step.index, 12)
    return any(n.op in DRAWN for n in behind) and any(id(t.node) in loops for n in behind for t in n.turns)


def _first(step: Step) -> bool:
    """True for ``[:n]``."""
    index = step.index
    plain = isinstance(index, Obj) and index.kind == "builtins.slice"
    return plain and isinstance(index, Obj) and index.args[0] in (None, 0) and index.args[1] is not None


def _in_loop(node: Node, event: Event) -> bool:
    """True for what is cut in the innermost loop, turn by turn."""
    return bool(node.turns) and node.turns[-1].node is event.turns[-1].node


def _sized_alike(one: Node, other: Node) -> bool:
    rows = one.shape.dims[:1], other.shape.dims[:1]
    return rows[0] == rows[1] or None in (*rows[0], *rows[1]) or one.shape.open or other.shape.open
