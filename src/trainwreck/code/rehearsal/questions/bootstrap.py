"""Temporal differences: the value of the next state, the end of an episode, and the sum that goes back in time."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Items, Node, Obj, Place, Value, candidates
from trainwreck.code.rehearsal.graph import ancestors, near
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.episodes import limit_alone
from trainwreck.code.rehearsal.questions.roles import core
from trainwreck.code.rehearsal.questions.targets import Bootstrap, bootstraps, is_value
from trainwreck.core.row import Row

LEAST_DISCOUNT = 0.5
"""Discounts lie between 0.9 and 1 (Sutton and Barto, section 3.3); below a half something else is meant."""


class Summand(Row):
    """One term of a sum: its sign, the numbers and the values that are multiplied in it, and the whole of it."""

    sign: int
    numbers: tuple[float, ...]
    values: tuple[Node, ...]
    node: Node

    @property
    def discounted(self) -> bool:
        return bool(self.numbers) and all(LEAST_DISCOUNT < n <= 1 for n in self.numbers)


class Difference(Row):
    """``reward + discount * next * alive - value``: the two terms with values of states."""

    node: Node
    ahead: Summand
    own: Summand


def value_added(run: Rehearsing) -> Iterator[Answer]:
    """A temporal difference in which the value of the state is added instead of taken off."""
    told: set[int] = set()
    for found in differences(run):
        place = found.node.place
        if found.own.sign == found.ahead.sign and place is not None and id(place[0]) not in told:
            told.add(id(place[0]))
            yield Answer(place, "the value of the state is added to the return that it is compared with: take it off")


def wrong_step(run: Rehearsing) -> Iterator[Answer]:
    """The value that is discounted is that of the state itself, or of an earlier one, not of the next."""
    told: set[int] = set()
    for node in run.nodes:
        if node.op not in ("add", "sub") or not node.turns or node.place is None:
            continue
        parts = _summands(node, 1)
        for own in parts:
            if own.numbers or len(own.values) != 1 or own.values[0].op != "getitem" or own.sign > 0 or len(parts) < 3:
                continue
            for ahead in parts:
                one = _not_next(ahead, own.values[0]) if ahead.discounted and ahead.sign > 0 else None
                if one is None or one.place is None or id(one.place[0]) in told:
                    continue
                told.add(id(one.place[0]))
                text = "the discounted value has to be that of the next state; this is not one step ahead"
                yield Answer(one.place, text, (node.place,))


def _not_next(ahead: Summand, own: Node) -> Node | None:
    """The element of the same array that is not the next one, where none beside it is."""
    roots = _roots(own)
    behind = list(ancestors(own))
    if not any(n.op == "param" for n in behind) or any(_backwards(n) for n in behind):
        return None
    found = None
    for value in ahead.values:
        for one in candidates(value):
            if not isinstance(one, Node) or one.op != "getitem" or _roots(one) != roots or len(one.inputs) != 2:
                continue
            steps = _apart(one.inputs[1], own.inputs[1])
            if steps == 1 or steps is None:
                return None
            found = one
    return found


def _backwards(node: Node) -> bool:
    """True where an array is turned round: the next step then stands before."""
    index = node.inputs[1] if node.op == "getitem" and len(node.inputs) > 1 else None
    step = index.args[2] if isinstance(index, Obj) and index.kind == "builtins.slice" else None
    return node.op in ("flip", "flipud", "reversed") or (isinstance(step, int) and step < 0)


def _apart(one: Value, other: Value) -> int | None:
    """How many steps lie between two indices; None where that isn't known."""
    (mine, mine_at), (its, its_at) = _offset(one), _offset(other)
    return mine_at - its_at if mine is its or (isinstance(mine, int) and isinstance(its, int)) else None


def _offset(index: Value) -> tuple[Value, int]:
    if isinstance(index, int) and not isinstance(index, bool):
        return 0, index
    if isinstance(index, Node) and index.op in ("add", "sub") and len(index.inputs) > 1:
        one, other = index.inputs[:2]
        if isinstance(other, int):
            inner, at = _offset(one)
            return inner, at + (other if index.op == "add" else -other)
        if isinstance(one, int) and index.op == "add":
            inner, at = _offset(other)
            return inner, at + one
    return index, 0


def end_ignored(run: Rehearsing) -> Iterator[Answer]:
    """The end of an episode stops one of the two: the value of the next state, or the sum over later errors."""
    told: set[int] = set()
    for found in differences(run):
        for carried in _carried(run, found.node):
            ahead, back = _masks(found.ahead), _masks(carried)
            if not ahead and any(limit_alone(v) for v in carried.values) and not _shifted(found):
                continue  # time is up in a state that is valued for itself: its value counts, the sum ends there
            if not ahead and any(_switched(n) for n in near(found.ahead.node, 20)):
                continue  # the value was multiplied by the end of its episode when it was kept
            answer = _compared(found.ahead.node, ahead, carried.node, back) or _compared(
                carried.node, back, found.ahead.node, ahead
            )
            if answer is not None and id(answer.place[0]) not in told:
                told.add(id(answer.place[0]))
                yield answer


def _switched(node: Node) -> bool:
    """True for ``1 - done`` and ``~done``."""
    return node.op in ("invert", "logical_not") or (node.op == "sub" and node.inputs[:1] in ((1,), (1.0,)))


def _shifted(found: Difference) -> bool:
    """True where the next value is an element of the array of values, which holds the first state of the next episode
    behind the end of one."""
    roots = _roots(found.own.values[0]) if found.own.values else set()
    return any(_roots(n) & roots for n in near(found.ahead.node, 12) if n.op == "getitem")


def end_at_hand(run: Rehearsing) -> Iterator[Answer]:
    """Returns that are summed backwards beside the ends of the episodes, which the sum does not look at."""
    told: set[int] = set()
    for node in run.nodes:
        loop = node.turns[-1] if node.turns else None
        if node.op != "add" or loop is None or node.place is None or not isinstance(loop.node, ast.For):
            continue
        target = loop.node.target
        if id(node.place[0]) in told or not isinstance(target, ast.Tuple) or not isinstance(loop.over, Items):
            continue
        scaled = [s for s in _summands(node, 1) if s.discounted and s.sign > 0 and any(
            _earlier(v, node) for v in s.values)]  # fmt: skip
        if len(scaled) != 1 or len(scaled[0].values) != 1:
            continue
        used = {n.id for s in loop.node.body for n in ast.walk(s) if isinstance(n, ast.Name)}
        for at, name in enumerate(target.elts):
            if not isinstance(name, ast.Name) or name.id in used or name.id.startswith("_"):
                continue
            rows = [row[at] for row in loop.over.items if isinstance(row, tuple) and len(row) == len(target.elts)]
            flags = [r for r in rows if isinstance(r, Node) and any(n.op in FLAGS for n in near(r, 5))]
            alone = any(_one_episode(f) or _emptied(run, f) for f in flags)
            if rows and len(flags) == len(rows) and not alone:
                told.add(id(node.place[0]))
                yield Answer(node.place, "the end of an episode is at hand here, and does not stop the sum")


def _one_episode(flag: Node) -> bool:
    """True for steps that were gathered in a loop which an end leaves: what it gathers is one episode."""
    loop = flag.turns[-1].node if flag.turns else None
    tests = [loop.test] if isinstance(loop, ast.While) and not isinstance(loop.test, ast.Constant) else []
    tests += [n.test for n in ast.walk(loop) if isinstance(n, ast.If)
              and any(isinstance(s, ast.Break | ast.Return) for s in n.body)] if loop is not None else []  # fmt: skip
    return any(not any(isinstance(n, ast.Compare) for n in ast.walk(t)) for t in tests)


def _emptied(run: Rehearsing, flag: Node) -> bool:
    """True where the end of an episode empties what the steps are gathered in: a window of one episode."""
    known = {id(n) for n in near(flag, 6) if n.op in FLAGS}
    tests = (t for e in run.tape if e.name == "clear" for t in e.tests)
    return any(id(n) in known for t in tests if isinstance(t, Node) for n in near(t, 6))


FLAGS = frozenset(["or", "and", "logical_or", "bitwise_or", "ge", "gt", "eq", "bool"])


def _compared(here: Node, mine: dict[int, bool], there: Node, others: dict[int, bool]) -> Answer | None:
    """``mine`` and ``others``: arrays that factors are made of, with True for ``1 - x`` and False for ``x``."""
    proof: tuple[Place, ...] = (there.place,) if there.place is not None else ()
    if here.place is None or not any(others.values()):
        return None
    if not mine:
        return Answer(here.place, "the end of an episode does not stop this, and stops the other sum beside it", proof)
    if any(others.get(key) is True and alive is False for key, alive in mine.items()):
        return Answer(
            here.place, "this goes on where the episode ends and stops where it goes on: 1 - done is meant", proof
        )
    return None


def differences(run: Rehearsing) -> list[Difference]:
    if "temporal-differences" not in run.memo:
        made: list[Difference] = []
        inside: set[int] = set()
        sums = {id(b.node): b for b in bootstraps(run)}
        for node in run.nodes:
            difference = _difference(node) if not any(id(i) in inside for i in node.inputs) else None
            difference = difference or _of_bootstrap(node, sums)
            if difference is not None:
                made.append(difference)
                inside.add(id(node))
        run.memo["temporal-differences"] = made
    found: list[Difference] = run.memo["temporal-differences"]
    return found


def _difference(node: Node) -> Difference | None:
    if node.op not in ("add", "sub") or not node.turns:
        return None
    parts = _summands(node, 1)
    for own in parts:
        if own.numbers or len(own.values) != 1 or own.values[0].op != "getitem":
            continue
        roots = _roots(own.values[0])
        for ahead in parts:
            if ahead is own or not ahead.discounted or ahead.sign < 0:
                continue
            later = [v for v in ahead.values if roots and _later(v, own.values[0], roots)]
            if len(later) == 1 and len(parts) > 2:
                rest = tuple(v for v in ahead.values if v is not later[0])
                return Difference(node, Summand(ahead.sign, ahead.numbers, rest, ahead.node), own)
    return None


def _of_bootstrap(node: Node, sums: dict[int, Bootstrap]) -> Difference | None:
    """``(reward + discount * next) - value``, where the values are held by names of their own."""
    if node.op != "sub" or len(node.inputs) < 2 or not node.turns or not isinstance(node.inputs[1], Node):
        return None
    found = sums.get(id(node.inputs[0]))
    if found is None or found.value is node.inputs[1] or not is_value(node.inputs[1]):
        return None
    own = node.inputs[1]
    return Difference(node, Summand(1, found.numbers, found.factors, found.product), Summand(-1, (), (own,), own))


def _later(value: Node, own: Node, roots: set[int]) -> bool:
    """True for another element of the same array, or one of the branches of a choice."""
    return any(
        isinstance(c, Node)
        and c is not own
        and c.op == "getitem"
        and _roots(c) == roots
        and c.inputs[1:] != own.inputs[1:]
        for c in candidates(value)
    )


def _roots(value: Value) -> set[int]:
    return {id(n) for n in core(value)}


def _summands(value: Value, sign: int, depth: int = 0) -> list[Summand]:
    if not isinstance(value, Node) or depth > 12:
        return []
    if value.op == "neg":
        return _summands(value.inputs[0], -sign, depth + 1)
    if value.op in ("add", "sub") and len(value.inputs) > 1:
        second = sign if value.op == "add" else -sign
        return _summands(value.inputs[0], sign, depth + 1) + _summands(value.inputs[1], second, depth + 1)
    numbers, values = _factors(value)
    return [Summand(sign, numbers, values, value)]


def _factors(value: Value) -> tuple[tuple[float, ...], tuple[Node, ...]]:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return (float(value),), ()
    if isinstance(value, Node) and value.op == "mul" and len(value.inputs) > 1:
        one, other = _factors(value.inputs[0]), _factors(value.inputs[1])
        return one[0] + other[0], one[1] + other[1]
    return (), (value,) if isinstance(value, Node) else ()


def _masks(term: Summand) -> dict[int, bool]:
    """The arrays behind the factors of a term, with True where it is one minus them."""
    found: dict[int, bool] = {}
    for value in term.values:
        alive = value.op in ("sub", "rsub") and len(value.inputs) > 1 and value.inputs[0] in (1, 1.0)
        for root in _roots(value.inputs[1] if alive else value):
            found[root] = alive
    return found


def _carried(run: Rehearsing, error: Node) -> Iterator[Summand]:
    """The terms by which a sum of later errors is carried on: ``error + discount * trace * alive * sum``."""
    for node in run.nodes:
        if node.op != "add" or node.serial < error.serial or node.turns != error.turns or len(node.inputs) < 2:
            continue
        if not any(i is error for i in node.inputs[:2]):
            continue
        for item in node.inputs[:2]:
            if item is error:
                continue
            numbers, values = _factors(item)
            before = [v for v in values if _earlier(v, node)]
            if isinstance(item, Node) and len(before) == 1 and numbers:
                yield Summand(1, numbers, tuple(v for v in values if v is not before[0]), item)


def _earlier(value: Node, node: Node) -> bool:
    """True for the sum of the turn before: made at the same place."""
    return any(
        isinstance(c, Node)
        and c.op == "add"
        and c.place is not None
        and node.place is not None
        and c.place[0] is node.place[0]
        for c in candidates(value)
    )
