"""Products of two things that learn and both begin with zero: each is the factor of the other's gradient."""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Place, Value
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.initial import at_start
from trainwreck.code.rehearsal.questions.roles import backwards, trained

ODD = frozenset("tanh relu silu gelu elu leaky_relu sin identity dropout neg".split())
"""What makes zero of zero."""
VIEWS = frozenset("part getitem split chunk unsqueeze view reshape expand squeeze transpose permute t".split())


def never_leaves(run: Rehearsing) -> Iterator[Answer]:
    """A gate and what it lets through, both zero at the start: neither ever gets a gradient."""
    first = next((e.serial for e in backwards(run)), None)
    for node in trained(run) if first is not None else ():
        if node.op != "mul" or len(node.inputs) < 2 or first is None:
            continue
        sides = [_zero(run, side, first) for side in node.inputs[:2]]
        if sides[0] is None or sides[1] is None or sides[0][0] is sides[1][0]:
            continue
        place, other = sorted((sides[0], sides[1]), key=lambda p: getattr(p[0], "lineno", 0), reverse=True)
        text = "both factors of a product begin with zero: each gets the other as its gradient, and stays zero"
        yield Answer(place, text, tuple(p for p in (other, node.place) if p is not None))
        return


def _zero(run: Rehearsing, value: Value, before: int, depth: int = 0) -> Place | None:
    """Where a value is made zero at the start, if it surely is."""
    if not isinstance(value, Node) or not value.grad or depth > 8 or not (value.inputs or value.op == "param"):
        return None
    if value.op == "param":
        known = at_start(run, value, before)
        return known[1] if known is not None and known[0] == 0 and value.trainable is not False else None
    if value.op in ODD or value.op in VIEWS:
        return _zero(run, value.inputs[0], before, depth + 1)
    if value.op == "linear":
        params = [i for i in value.inputs if isinstance(i, Node) and i.op == "param"]
        found = [_zero(run, p, before, depth + 1) for p in params]
        return found[0] if params and None not in found else None
    return None
