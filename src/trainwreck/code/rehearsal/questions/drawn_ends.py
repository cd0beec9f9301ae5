"""Texts that a policy drew up to its end token: is that token among those that the policy learns from?"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Items, Node, Place, Value, candidates
from trainwreck.code.rehearsal.graph import ancestors, parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.roles import STRUCTURE, core, trained
from trainwreck.code.rehearsal.questions.terms import number_of
from trainwreck.code.rehearsal.questions.trails import trail

DRAWN = frozenset(["multinomial", "sample", "argmax"])
CASTS = STRUCTURE | {"invert", "logical_not", "bool", "int"}
BOTH = frozenset(["and", "logical_and", "bitwise_and", "mul"])
LIKELIHOODS = frozenset(["gather", "take_along_dim"])
WAY = 10


def end_never_learned(run: Rehearsing) -> Iterator[Answer]:
    """The mask of what counts leaves the end token itself out: the policy is never taught to stop."""
    told: set[int] = set()
    for node in trained(run):
        if node.op not in ("mul", "getitem") or len(node.inputs) < 2:
            continue
        for weighed, mask in (node.inputs[:2], node.inputs[1::-1]):
            if not isinstance(weighed, Node) or not isinstance(mask, Node) or mask.grad or not weighed.grad:
                continue
            scored = next((n for n in ancestors(weighed) if n.op in LIKELIHOODS and n.grad), None)
            if scored is None or not _of_policy(scored):
                continue
            place = _turn_by_turn(run, mask) or _at_once(run, mask, scored)
            if place is not None and id(place[0]) not in told:
                told.add(id(place[0]))
                text = "the end token is left out with what follows it: nothing teaches the policy to stop there"
                yield Answer(place, text, tuple(n.place for n in (scored, node) if n.place is not None))


def _of_policy(scored: Node) -> bool:
    """True for the likelihood of tokens that a network drew."""
    rest = [i for i in (*scored.inputs[1:], *scored.options.values()) if isinstance(i, Node)]
    return any(n.op in DRAWN for i in rest for n in ancestors(i, through=lambda n: n.op not in ("param", "linear")))


def _turn_by_turn(run: Rehearsing, mask: Node) -> Place | None:
    """``alive`` that is put aside after this turn's token has been looked at."""
    for joined in _made(mask):
        held = joined.inputs[0] if joined.op in ("stack", "cat") and joined.inputs else None
        first = held.items[0] if isinstance(held, Items) and held.items else None
        if not isinstance(first, Node) or not first.turns:
            continue
        at = next(iter(core(first)), None)
        if at is None or at.op not in BOTH:
            continue
        for test in at.inputs[:2]:
            drawn = _token(test)
            if drawn is not None and drawn.turns == first.turns:
                return next((p for p in (*_put_aside(run, first), first.place) if p is not None), None)
    return None


def _put_aside(run: Rehearsing, first: Node) -> Iterator[Place]:
    """Where the mask of a turn is put into the list."""
    for event in run.tape:
        if event.name == "append" and event.args and event.args[0] is first and event.place is not None:
            yield event.place


def _token(test: Value) -> Node | None:
    """The token that was drawn just now and is compared with a number."""
    for node in core(test):
        of = node.inputs[:1] if node.op in CASTS else ()
        inner = next(iter(parts(of)), node)
        if inner.op not in ("ne", "eq") or len(inner.inputs) < 2:
            continue
        for one, other in (inner.inputs[:2], inner.inputs[1::-1]):
            if number_of(other) is not None and isinstance(one, Node):
                found = [n for n in ancestors(one, through=_chosen) if n.op in DRAWN]
                return found[0] if found else None
    return None


def _chosen(node: Node) -> bool:
    return node.op in STRUCTURE or node.op in ("where", "either", "masked_fill")


def _made(mask: Node) -> Iterator[Node]:
    at: Value = mask
    for _ in range(WAY):
        if not isinstance(at, Node):
            return
        yield at
        if at.op not in CASTS or not at.inputs:
            return
        at = at.inputs[0]


def _at_once(run: Rehearsing, mask: Node, scored: Node) -> Place | None:
    """``(tokens == end).cumsum(1) == 0`` of the very tokens that are scored."""
    stops = {n for n in map(_stop, run.nodes) if n is not None}
    for test in _made(mask):
        if test.op not in ("eq", "lt") or len(test.inputs) < 2 or test.place is None:
            continue
        count, most = test.inputs[:2]
        if number_of(most) != (0.0 if test.op == "eq" else 1.0) or not isinstance(count, Node):
            continue
        summed = next((n for n in _made(count) if n.op == "cumsum"), None)
        of = summed.inputs[0] if summed is not None and summed.inputs else None
        ends = next((n for n in _made(of) if n.op == "eq"), None) if isinstance(of, Node) else None
        if ends is None or len(ends.inputs) < 2 or number_of(ends.inputs[1]) not in stops:
            continue
        rest = [i for i in (*scored.inputs[1:], *scored.options.values()) if isinstance(i, Node)]
        one, other = trail(ends.inputs[0]), trail(rest[0]) if rest else None
        if one is not None and other is not None and one[:3] == other[:3]:
            return test.place
    return None


def _stop(node: Node) -> float | None:
    """The number of the token at which drawing ends."""
    if node.op not in ("eq", "ne") or len(node.inputs) < 2 or not isinstance(node.inputs[0], Node):
        return None
    drawn = any(n.op in DRAWN for c in candidates(node.inputs[0]) for n in ancestors(c, through=_chosen))
    return number_of(node.inputs[1]) if drawn else None
