"""What is standardised beside the values that are trained with, and read by nothing."""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.policy import surrogates
from trainwreck.code.rehearsal.questions.roles import core, users
from trainwreck.code.rehearsal.questions.standards import CENTRES, SPREADS

NEAR = 5
"""Values between ``x - mean`` and the mean, or between a quotient and the deviation."""


def advantage_scaled_in_vain(run: Rehearsing) -> Iterator[Answer]:
    """Advantages are brought to mean 0 and deviation 1, and what multiplies the log-probability is not these."""
    table = users(run)
    alone = [n for n in run.nodes if n.op == "div" and id(n) not in table and not n.grad and _standardises(n)]
    for _, found in surrogates(run) if alone else ():
        raw = {id(n) for n in core(found.advantage)}
        for node in alone:
            upper = node.inputs[0]
            bases = [b for b in (upper, *upper.inputs[:1]) if isinstance(b, Node)] if isinstance(upper, Node) else []
            same = [n for b in bases for n in (b, *core(b)) if id(n) in raw]
            later = [u for n in (*same, *bases) for u in table.get(id(n), ()) if u.serial > node.serial]
            if not same:
                continue
            at = min(later, key=lambda u: u.serial, default=None)
            place = at.place if at is not None and at.place is not None else found.place
            text = (
                "the advantages are standardised, and nothing reads the result: they enter the loss on their raw scale"
            )
            yield Answer(place, text, (node.place,) if node.place is not None else ())
            return


def _standardises(node: Node) -> bool:
    """``(x - mean) / spread``."""
    upper = node.inputs[0] if len(node.inputs) > 1 else None
    if not isinstance(upper, Node) or upper.op not in ("sub", *MOVED):
        return False
    return _has(node.inputs[1], SPREADS) and (_has(upper, CENTRES) or upper.op in MOVED)


MOVED = frozenset(["view", "reshape"])


def _has(value: object, wanted: frozenset[str]) -> bool:
    at = [value]
    for _ in range(NEAR):
        at = [i for n in at if isinstance(n, Node) for i in n.inputs[:2]]
        if any(isinstance(n, Node) and n.op in wanted for n in at):
            return True
    return isinstance(value, Node) and value.op in wanted


__all__ = ["advantage_scaled_in_vain"]
