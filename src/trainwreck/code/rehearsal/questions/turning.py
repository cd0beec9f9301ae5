"""Returns that are gathered from the last step backwards: are they turned round before they meet the actions?"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.pattern import pattern
from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Items, Node, Obj, Place, Value, candidates
from trainwreck.code.rehearsal.graph import ancestors, parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.policy import surrogates
from trainwreck.code.rehearsal.questions.returns import BACKWARDS
from trainwreck.code.rehearsal.questions.roles import JOINS, STRUCTURE
from trainwreck.code.rehearsal.questions.terms import number_of
from trainwreck.core.row import Row

ARITHMETIC = STRUCTURE | {"add", "sub", "mul", "div", "neg", "clamp", "either", "nan_to_num", "part", "exp", "batch"}
ARRAYS = JOINS | {"tensor", "array", "asarray", "as_tensor", "floattensor"}
EPISODES = frozenset(["cat", "concat", "concatenate"])
"""What puts the returns of several episodes behind each other."""
FLIPS = frozenset(["flip", "flipud"])
FACTORS = 6
MAX_WAYS = 400


class Way(Row):
    """A value on the way from an advantage to what it is made of; ``flipped``: it was turned round since."""

    node: Node
    flipped: bool


def unturned(run: Rehearsing) -> Iterator[Answer]:
    """Returns in the order in which a loop from the last step to the first made them, beside actions in theirs."""
    placed = {id(n) for e in run.tape if e.name == "placed" for n in parts(e.args[1])}
    for event, found in surrogates(run):
        own = list(ancestors(found.logp, through=_near_policy))
        if any(_turns(n) for n in own) or _side_by_side(run, found.advantage, {id(n) for n in own}):
            continue
        for way in _ways(found.advantage):
            place = None if way.flipped else _gathered(way.node, placed)
            if place is None:
                continue
            text = "the returns stand here from the last step to the first, and the actions from the first to the last"
            place = _put_aside(run, way.node, place)
            proof = [p for p in (found.place, event.place) if p is not None and p is not place]
            yield Answer(place, text, tuple(proof))
            return


def _put_aside(run: Rehearsing, node: Node, place: Place) -> Place:
    """Where a function of its own leaves them in that order: its ``append`` to what has an ``appendleft``, else what it
    gives back; ``place`` itself where they are put together in the function of the loop."""
    held = {id(n) for n in parts(node.inputs[:1]) if _accumulates(n)}
    event = next(
        (e for e in run.tape if e.name == "append" and e.args and {id(n) for n in parts(e.args[0])} & held), None
    )
    if event is None or event.place is None:
        return place
    call, scope = event.place
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return place
    receiver = ast.unparse(call.func.value)
    if any(DEQUE.match(ast.unparse(v)) for v in _bound(scope.node, receiver)):
        return event.place
    if scope is place[1]:
        return place
    given = [n for n in ast.walk(scope.node) if isinstance(n, ast.Return) and n.value is not None]
    own = [n for n in given if any(ast.unparse(i) == receiver for i in ast.walk(n) if isinstance(i, ast.expr))]
    return (own[0], scope) if len(own) == 1 else event.place


DEQUE = pattern(r"(collections\.)?deque\(")


def _bound(function: ast.AST, name: str) -> Iterator[ast.expr]:
    """What is assigned to a name, also beside others."""
    for node in ast.walk(function):
        pairs: list[tuple[ast.expr, ast.expr]] = []
        if isinstance(node, ast.Assign):
            pairs = [(t, node.value) for t in node.targets]
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            pairs = [(node.target, node.value)]
        for target, value in pairs:
            if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
                yield from (v for t, v in zip(target.elts, value.elts, strict=True) if ast.unparse(t) == name)
            elif ast.unparse(target) == name:
                yield value


def _side_by_side(run: Rehearsing, advantage: Value, own: set[int]) -> bool:
    """True where a loop from the last step puts each return aside with its own log-probability: one order for both."""
    theirs = {id(n) for n in ancestors(advantage)} - own
    held: dict[int, set[int]] = {}
    for event in run.tape:
        loop = event.turns[-1].node if event.turns else None
        backwards = isinstance(loop, ast.For) and BACKWARDS.search(ast.unparse(loop.iter)) is not None
        if event.name == "append" and backwards and event.args:
            held.setdefault(id(loop), set()).update(id(n) for n in parts(event.args[0]))
    return any(h & own and h & theirs for h in held.values())


def _near_policy(node: Node) -> bool:
    return node.op not in ("param", "sample", "multinomial")


def _ways(value: Value) -> Iterator[Way]:
    queue = [Way(n, False) for n in parts(value)]
    seen = {(id(w.node), w.flipped) for w in queue}
    for number in range(MAX_WAYS):
        if number >= len(queue):
            return
        way = queue[number]
        yield way
        node = way.node
        if node.op not in ARITHMETIC and node.op not in EPISODES and not _turns(node):
            continue
        data = node.inputs if node.op not in STRUCTURE else node.inputs[:1]
        for inner in parts(data):
            further = Way(inner, way.flipped != _turns(node))
            if (id(inner), further.flipped) not in seen:
                seen.add((id(inner), further.flipped))
                queue.append(further)


def _turns(node: Node) -> bool:
    """True for a value that is another one from the end to the beginning, along its first axis."""
    if node.op in FLIPS:
        axes = [a for i in (*node.inputs[1:], *node.options.values()) for a in _numbers(i)]
        return not axes or 0 in axes
    index = node.inputs[1] if node.op == "getitem" and len(node.inputs) > 1 else None
    first = index[0] if isinstance(index, tuple) and index else index
    return isinstance(first, Obj) and first.kind == "builtins.slice" and first.args[2:] == (-1,)


def _numbers(value: Value) -> list[int]:
    if isinstance(value, Items):
        value = tuple(value.items)
    return [v for v in (value if isinstance(value, tuple) else (value,)) if isinstance(v, int)]


def _gathered(node: Node, placed: set[int]) -> Place | None:
    """Where returns are put together in the order of a loop that goes backwards; None for anything else.

    ``placed``: what was put into lists at numbers that aren't known, in whatever order."""
    if node.op in ARRAYS and node.inputs and isinstance(node.inputs[0], Items):
        held = [next(iter(parts(i)), None) for i in node.inputs[0].items]
        made = [h for h in held if h is not None]
        whole = len(made) == len(held) and not any(id(h) in placed for h in made)
        back = _written_back(node.inputs[0])
        whole = whole and all(back or _from_the_end(h) for h in made) and any(_accumulates(h) for h in made)
        # each episode has its own run of the loop, and the order within it counts
        runs: dict[tuple[int, ...], list[int]] = {}
        for one in made:
            runs.setdefault(tuple(id(t) for t in one.turns[: None if back else -1]), []).append(one.serial)
        ordered = [r for r in runs.values() if len(r) > 1]
        if whole and ordered and all(r == sorted(r) for r in ordered):
            return node.place
    if node.op in ("cumsum", "logcumsumexp") and node.inputs:
        first = node.inputs[0]
        along = [a for i in (*node.inputs[1:], *node.options.values()) for a in _numbers(i)]
        if along == [0] and isinstance(first, Node) and _turns(first):
            return node.place
    stored = node.inputs[1] if node.op == "setitem" and len(node.inputs) > 2 and node.turns else None
    if isinstance(stored, Node) and _counted(node) and _from_the_end(stored) and _accumulates(stored):
        return node.place
    return None


def _from_the_end(node: Node) -> bool:
    loop = node.turns[-1] if node.turns else None
    if loop is not None and isinstance(loop.node, ast.While):
        return _counts_down(loop.node)
    if loop is None or not isinstance(loop.node, ast.For):
        return False
    if BACKWARDS.search(ast.unparse(loop.node.iter)):
        return True
    over = candidates(loop.over)
    return any(c.kind == "reversed" if isinstance(c, Items) else isinstance(c, Node) and _turns(c) for c in over)


def _counts_down(loop: ast.While) -> bool:
    """``while t >= 0: ... t -= 1``, or ``while rest: ... rest.pop()``."""
    tested = {ast.unparse(n) for n in ast.walk(loop.test) if isinstance(n, ast.Name | ast.Attribute)}
    for node in (n for statement in loop.body for n in ast.walk(statement)):
        if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Sub) and ast.unparse(node.target) in tested:
            return isinstance(node.value, ast.Constant) and node.value.value == 1
        called = node.func if isinstance(node, ast.Call) and not node.args else None
        if isinstance(called, ast.Attribute) and called.attr == "pop" and ast.unparse(called.value) in tested:
            return True
    return False


def _written_back(items: Items) -> bool:
    """True for a comprehension or an ``accumulate`` over something from its end on."""
    at: Value = items
    for _ in range(FACTORS):
        if not isinstance(at, Items):
            return False
        made = at.place[0] if at.place is not None else None
        if isinstance(made, ast.ListComp | ast.GeneratorExp):
            summed = any(isinstance(n, ast.NamedExpr) for n in ast.walk(made.elt))
            return summed and len(made.generators) == 1 and bool(BACKWARDS.search(ast.unparse(made.generators[0].iter)))
        if isinstance(made, ast.Call) and ast.unparse(made.func).rpartition(".")[2] == "accumulate" and made.args:
            return bool(BACKWARDS.search(ast.unparse(made.args[0])))
        at = at.source
    return False


def _counted(node: Node) -> bool:
    """True where the number of the turn itself, counted from zero on, says where a value goes."""
    loop = node.turns[-1].node
    if not isinstance(loop, ast.For) or not isinstance(loop.target, ast.Tuple) or node.place is None:
        return False
    call, first, where = loop.iter, loop.target.elts[0], node.place[0]
    enumerates = isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "enumerate"
    if not enumerates or not isinstance(first, ast.Name) or not isinstance(where, ast.Subscript):
        return False
    inner = ast.unparse(call.args[0]) if isinstance(call, ast.Call) and call.args else ""
    index = where.slice.elts[0] if isinstance(where.slice, ast.Tuple) and where.slice.elts else where.slice
    return isinstance(index, ast.Name) and index.id == first.id and bool(BACKWARDS.search(inner))


def _accumulates(node: Node) -> bool:
    """``x + 0.9 * (the same of the turn before)``, whatever else is multiplied; without a discount the same alone."""
    for _ in range(FACTORS):
        if node.op not in ("div", "mul", "clone", "copy", "detach", "float", "astype") or not node.inputs:
            break
        first, *by = node.inputs
        if not isinstance(first, Node) or any(number_of(i) is None for i in by if node.op in ("div", "mul")):
            break
        node = first
    if node.op != "add" or node.place is None:
        return False
    for item in node.inputs[:2]:
        factors = list(_factors(item))
        numbers = [n for f in factors if (n := number_of(f)) is not None]
        if len(factors) > 1 and not any(0.5 <= n <= 1 for n in numbers):
            continue
        for factor in factors:
            for before in candidates(factor):
                if isinstance(before, Node) and before.place is not None and before.place[0] is node.place[0]:
                    return True
    return False


def _factors(value: Value, depth: int = 0) -> Iterator[Value]:
    if isinstance(value, Node) and value.op == "mul" and depth < FACTORS:
        for item in value.inputs[:2]:
            yield from _factors(item, depth + 1)
    else:
        yield value
