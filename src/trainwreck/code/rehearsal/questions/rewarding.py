"""Environments that a program writes itself: rewards that cannot be earned."""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Value, candidates
from trainwreck.code.rehearsal.graph import near, parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.roles import STRUCTURE, core, users
from trainwreck.code.rehearsal.questions.terms import number_of

COMPARES = frozenset(["eq", "ge", "le", "gt", "lt", "isclose"])
JOINED = frozenset(["or", "logical_or", "bitwise_or", "add", "maximum", "any"])
BOTH = frozenset(["and", "logical_and", "bitwise_and"])
Test = tuple[str, object, object]
"""A comparison by what it compares: two that are written alike are the same."""
CASTS = STRUCTURE | {"astype", "bool", "array", "asarray", "copy", "int"}


def reset_first(run: Rehearsing) -> Iterator[Answer]:
    """The state is set back where an episode has ended, and then compared with what ended it."""
    told: set[int] = set()
    for node in run.nodes:
        if node.op not in COMPARES or len(node.inputs) < 2 or node.place is None or id(node.place[0]) in told:
            continue
        for given, other in (node.inputs[:2], node.inputs[1::-1]):
            side = _size(given)
            reset = _reset(side)
            if reset is None or reset.place is None:
                continue
            mask, old = _parts_of_reset(reset)
            if old is None or _counts(old) or not _earns(run, node):
                continue
            before = [n for m in parts(mask) for n in near(m, 60) if n.op == node.op and n is not node]
            if any(_same_test(b, old, other) for b in before):
                told.add(id(node.place[0]))
                text = "the state was set back just before, so what ended the episode is not seen here any more"
                yield Answer(node.place, text, (reset.place,))
                break


def _size(value: Value) -> Value:
    return value.inputs[0] if isinstance(value, Node) and value.op == "abs" and value.inputs else value


def _reset(value: Value) -> Node | None:
    """The operation that set some elements of a state back."""
    for _ in range(6):
        if not isinstance(value, Node):
            return None
        if value.op in ("setitem", "where", "masked_fill") or (value.op == "either" and "?test" in value.attributes):
            return value
        if value.op not in CASTS or not value.inputs or value.op in ("getitem", "element"):
            return None
        value = value.inputs[0]
    return None


def _parts_of_reset(node: Node) -> tuple[Value, Node | None]:
    """(where it is set back, what it was before)."""
    inputs = node.inputs
    if node.op == "setitem" and len(inputs) > 2:
        return inputs[2], inputs[0] if isinstance(inputs[0], Node) else None
    if node.op == "masked_fill" and len(inputs) > 1:
        return inputs[1], inputs[0] if isinstance(inputs[0], Node) else None
    if node.op == "where" and len(inputs) > 2:
        kept = [
            i for i in inputs[1:3] if isinstance(i, Node) and i.op not in ("zeros", "zeros_like", "full", "full_like")
        ]
        return inputs[0], kept[0] if len(kept) == 1 else None
    if node.op == "either":
        olds = [c for c in candidates(node) if isinstance(c, Node)]
        return node.attributes.get("?test"), olds[0] if len(olds) == 1 and len(candidates(node)) == 2 else None
    return None, None


def _same_test(test: Node, old: Node, other: Value) -> bool:
    """True for the same comparison of what the state was before."""
    for one, rest in (test.inputs[:2], test.inputs[1::-1]):
        if _size(one) is old and (
            rest is other or (number_of(rest) is not None and number_of(rest) == number_of(other))
        ):
            return True
    return False


def _counts(old: Node) -> bool:
    """True for a number of steps: it grows by one each time."""
    return old.op == "counter" or (old.op == "add" and any(number_of(i) == 1 for i in old.inputs[:2]))


def _earns(run: Rehearsing, test: Node) -> bool:
    """True where numbers are made of a comparison: it is multiplied, chosen by, or decides a branch."""
    following = users(run).get(id(test), ())
    if not following:
        return True  # the test of an ``if``
    return any(u.op in ("mul", "where", "either", "astype", "float", "add", "sub", "to") for u in following)


# ---------------------------------------------------------------------- rewards at the end
def taken_at_end(run: Rehearsing) -> Iterator[Answer]:
    """A reward that is only earned where the episode ends is multiplied by what is zero there."""
    for node in run.nodes:
        if node.op != "mul" or len(node.inputs) < 2 or node.place is None:
            continue
        for reward, going in (node.inputs[:2], node.inputs[1::-1]):
            ends = _ends(going)
            earned = [_earned(s, 0) for s in (reward, *_summands(reward))] if ends else []
            if any(e and e <= ends for e in earned):
                # a flag of the episode so far, that this very step sets before the reward is counted
                flag = next((c for c in core(going) if c.op in BOTH and c.place is not None), None)
                place = flag.place if flag is not None and flag.place is not None else node.place
                text = "the reward is earned only where the episode ends, and this factor is zero there"
                yield Answer(place, text, (node.place,) if place is not node.place else ())
                return


def _test(node: Node) -> Test:
    sides = [number if (number := number_of(i)) is not None else id(i) for i in node.inputs[:2]]
    return node.op, sides[0], sides[-1]


def _summands(value: Value, depth: int = 0) -> list[Value]:
    if isinstance(value, Node) and value.op in ("add", "sub") and depth < 6:
        return [s for i in value.inputs[:2] for s in _summands(i, depth + 1)]
    return [value]


def _ends(value: Value) -> set[Test]:
    """The comparisons that each end an episode, of ``1 - done`` or ``~done``."""
    for one in core(value):
        if one.op == "sub" and len(one.inputs) > 1 and number_of(one.inputs[0]) == 1:
            return _alternatives(one.inputs[1], 0)
        if one.op in ("invert", "not", "logical_not") and one.inputs:
            return _alternatives(one.inputs[0], 0)
        if one.op in BOTH:  # ``live & ~done``: zero where either is
            return {test for item in one.inputs for test in _ends(item)}
    return set()


def _alternatives(value: Value, depth: int) -> set[Test]:
    found: set[Test] = set()
    for one in core(value) if depth < 12 else ():
        if one.op in COMPARES:
            found.add(_test(one))
        elif one.op in BOTH:
            found.add(("as it is", id(one), id(one)))
        elif one.op in ("or", "logical_or", "bitwise_or"):
            for item in one.inputs:
                found |= _alternatives(item, depth + 1)
        elif one.op in CASTS and one.inputs:
            found |= _alternatives(one.inputs[0], depth + 1)
    return found


def _earned(value: Value, depth: int) -> set[Test]:
    """The comparisons without any of which a reward is zero; nothing where it may be other than zero without."""
    found: set[Test] = set()
    for one in core(value):
        inner = _one_earned(one, depth)
        if not inner:
            return set()
        found |= inner
    return found


def _one_earned(node: Node, depth: int) -> set[Test]:
    if depth > 12:
        return set()
    inputs = node.inputs
    if node.op in COMPARES:
        return {_test(node)}
    if node.op in BOTH:
        return {("as it is", id(node), id(node))}
    if node.op in CASTS and inputs:
        return _earned(inputs[0], depth + 1)
    if node.op == "mul" and len(inputs) > 1:
        return _earned(inputs[0], depth + 1) or _earned(inputs[1], depth + 1)
    if node.op == "where" and len(inputs) > 2:
        rest = set[Test]() if number_of(inputs[2]) == 0 else _earned(inputs[2], depth + 1)
        zero = number_of(inputs[2]) == 0 or bool(rest)
        return _alternatives(inputs[0], depth + 1) | rest if zero else set()
    if node.op == "add" and len(inputs) > 1:
        both = [_earned(i, depth + 1) for i in inputs[:2]]
        return both[0] | both[1] if all(both) else set()
    return set()
