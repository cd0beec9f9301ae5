"""Ends of episodes: what a flag that is also set at a time limit takes away."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator

from trainwreck.code.calls import last_name
from trainwreck.code.pattern import pattern
from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import CHOSEN_BY, LEFT_OF_OR, Node, Obj, Place, Value
from trainwreck.code.rehearsal.graph import ancestors, carries, near, parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.roles import STRUCTURE
from trainwreck.code.rehearsal.questions.terms import losses_of, number_of
from trainwreck.code.scopes import Scope

LIMIT = pattern(r"trunc|time_?(out|limit|up)|out_of_time|horizon|max_(steps|t)\b|limit", re.IGNORECASE)

COMPARED = frozenset(["ge", "gt", "eq"])
NEGATED = frozenset(["not", "invert", "logical_not"])
TURNING = frozenset(["eq", "ne", "sub", "lt", "le"])
WHERE = ("test", "held", "other")
FEW = 8
KEEPS = frozenset(["append", "add", "put", "appendleft", "setitem", "insert", "extend"])
BOTH = STRUCTURE | {"and", "logical_and", "bitwise_and", "mul"}
"""What a flag goes through that stays set only where it was."""


def cut_as_end(run: Rehearsing) -> Iterator[Answer]:
    """A flag that is also set at the time limit takes away the value of what follows."""
    told: set[int] = set()
    flags = {id(n) for n in run.nodes if _ended(n)}
    alone = _never_else(run)
    if not flags and not alone:
        return
    for event, _ in losses_of(run):
        instead = _valued_instead(ancestors(event.subject))
        for node in ancestors(event.subject):
            goes_on = _goes_on(node)
            if goes_on is None:
                continue
            behind = list(_flags_behind(goes_on))
            if any(id(n) in instead.get(id(node), ()) for n in behind):
                continue
            flag = next((n for n in behind if id(n) in flags), None)
            text = "this flag is set at the time limit too, and takes the value of what follows away"
            if flag is None:
                limits = [n for n in behind if id(n) in alone]
                flag = limits[0] if limits and not _tells_time(node, limits, alone) else None
                text = "this flag is set at the time limit only, and takes the value of what follows away"
            if flag is None or flag.place is None or id(flag.place[0]) in told:
                continue
            if _paid_before(run, event.subject, flag):
                continue
            told.add(id(flag.place[0]))
            place = _kept_at(run, flag, alone.get(id(flag), flag.place))
            if node.place is not None and place[1] is node.place[1] and _ends_kept(run, flag):
                place = node.place  # both flags are put aside, and the wrong one is asked here
            yield Answer(place, text, tuple(p for p in (node.place, event.place) if p is not None))
            return


def _valued_instead(nodes: Iterator[Node]) -> dict[int, set[int]]:
    """``flag * value + (1 - flag) * carried``: what was carried is replaced where the flag is set, not taken away. By
    ``id`` of the second product, what the first one's factor is made of."""
    found: dict[int, set[int]] = {}
    for node in nodes:
        sides = [i for i in node.inputs[:2] if isinstance(i, Node)] if node.op == "add" else []
        for one, other in (sides, sides[::-1]) if len(sides) == len(WHERE) - 1 else ():
            if one.op != "mul" or other.op != "mul" or len(one.inputs) < len(sides):
                continue
            for factor, value in (one.inputs[:2], one.inputs[1::-1]):
                if _open(factor) is None and any(n.op == "param" for n in ancestors(value, through=carries)):
                    made = {id(n) for n in ancestors(factor, through=_of_flags)}
                    found.setdefault(id(other), set()).update(made)
    return found


def _ends_kept(run: Rehearsing, flag: Node) -> bool:
    """True where the true end, one side of the flag, is put aside for the update too."""
    sides = [s for i in flag.inputs[:2] if isinstance(i, Node) and not _of_time(i) for s in (i,)]
    keeps = [e for e in run.tape if e.name in KEEPS]
    return len(sides) == 1 and any(_holds(a, sides[0]) and not _holds(a, flag) for e in keeps for a in e.args)


def _flags_behind(goes_on: Node) -> Iterator[Node]:
    """The flags that a factor is made of, those of ``0.0 if done else 1.0`` too."""
    for node in ancestors(goes_on, through=_of_flags):
        yield node
        if _zero_or_one(node) and isinstance(test := node.attributes.get(CHOSEN_BY), Node):
            yield from ancestors(test, through=_of_flags)


def _zero_or_one(node: Node) -> bool:
    """True for one of the two numbers, by a test."""
    return node.op == "either" and sorted(map(repr, map(number_of, node.inputs))) == ["0.0", "1.0"]


def _of_flags(node: Node) -> bool:
    """False where something else is compared or counted: what a state was before does not make this flag."""
    if node.op in ("lt", "gt", "le", "ge", "eq", "ne"):
        return any(number_of(i) in (0.0, 0.5, 1.0) for i in node.inputs)
    return carries(node) and node.op != "index"


def _never_else(run: Rehearsing) -> dict[int, Place]:
    """``terminated or truncated`` of a task that never ends by itself (``terminated = False``): by ``id`` of the limit
    of time that is left of it, where it is written."""
    found: dict[int, Place] = {}
    for node, part, place in run.memo.get(LEFT_OF_OR, ()):
        others = [side for side in getattr(place[0], "values", ()) if side is not part]
        if node.op in COMPARED and len(others) == 1 and id(node) not in found and node.place is not None:
            api = _result_of_step(part, place[1]) == 3 and _result_of_step(others[0], place[1]) == 2
            if api or LIMIT.search(ast.unparse(part)):
                found[id(node)] = place
    return found


def _result_of_step(side: ast.expr, scope: Scope) -> int | None:
    """Which of the results of ``env.step`` a name is."""
    bindings = scope.bindings.get(side.id, ()) if isinstance(side, ast.Name) else ()
    places = {
        b.path[0] if len(b.path) == 1 and isinstance(b.value, ast.Call) and last_name(b.value.func) == "step" else None
        for b in bindings
    }
    place = places.pop() if len(places) == 1 else None
    return place if isinstance(place, int) else None


def _tells_time(target: Node, flags: list[Node], limits: Collection[int]) -> bool:
    """True where the state that is valued holds the count that the limit is set on, or nobody knows what it holds."""
    counts = {id(c) for n in flags for c in near(n, FEW) if c.op == "counter"}
    valued = ancestors(target, through=lambda n: id(n) not in limits)
    return any(n.unknown or id(n) in counts for n in valued)


def _paid_before(run: Rehearsing, loss: Value, flag: Node) -> bool:
    """True where the value of what follows is added to the reward at the time limit: ``r + gamma * v(last) * cut``."""
    both = list(enumerate(flag.inputs[:2]))
    sides = {id(i) for number, i in both if isinstance(i, Node) and (_of_time(i) or _called_so(flag, number))}
    if flag.op in COMPARED:
        sides.add(id(flag))
    for node in ancestors(loss):
        if node.op != "mul" or len(node.inputs) < 2:
            continue
        for factor, rest in (node.inputs[:2], node.inputs[1::-1]):
            cut = any(id(n) in sides for n in ancestors(factor, through=lambda n: n is not flag and n.op in BOTH))
            if cut and any(n.op == "param" for n in ancestors(rest)):
                return True
    return _valued_at(run, loss, sides)


def _valued_at(run: Rehearsing, loss: Value, limits: set[int]) -> bool:
    """True where a network is asked at the time limit alone (``if truncated: r += gamma * v(last)``)."""
    inside = {id(n) for n in ancestors(loss)}
    for event in run.tape:
        tests = [n for t in event.tests for n in ancestors(t, through=_both)] if event.name == "forward" else []
        if any(id(n) in limits for n in tests) and any(id(n) in inside for n in parts(event.result)):
            return True
    return False


def _both(node: Node) -> bool:
    return node.op in BOTH or node.op == "element"


def _called_so(flag: Node, number: int) -> bool:
    """True where ``a | b`` calls this side a limit of time."""
    at = flag.place[0] if flag.place is not None else None
    sides = [at.left, at.right] if isinstance(at, ast.BinOp) else at.values if isinstance(at, ast.BoolOp) else []
    return number < len(sides) and bool(LIMIT.search(ast.unparse(sides[number])))


def _of_time(side: Node) -> bool:
    """True for the one of two flags that is set at the time limit."""
    if side.op == "part" and len(side.inputs) > 1 and side.inputs[1] == 3:
        return True
    text = ast.unparse(side.place[0]) if side.place is not None and isinstance(side.place[0], ast.expr) else ""
    return bool(LIMIT.search(text)) or _counts(side)


def _ended(node: Node) -> bool:
    """``terminated or truncated``: one of them is a limit of time."""
    if node.op not in ("or", "logical_or", "bitwise_or", "maximum") or len(node.inputs) < 2 or node.place is None:
        return False
    sides = [i for i in node.inputs[:2] if isinstance(i, Node)]
    parts_of = {s.inputs[1] for s in sides if s.op == "part" and len(s.inputs) > 1 and isinstance(s.inputs[1], int)}
    if len(sides) == 2 and parts_of == {2, 3}:
        return True
    text = ast.unparse(node.place[0]) if isinstance(node.place[0], ast.expr) else ""
    return (len(sides) >= 1 and bool(LIMIT.search(text))) or any(_counts(s) for s in sides)


def limit_alone(factor: Node) -> bool:
    """True for a factor that is made of one flag, a limit of time."""
    tests = [
        n for n in near(factor, 200) if n.op in COMPARED or n.op in EITHER or (n.op == "part" and n.inputs[1:2] == (3,))
    ]
    return bool(tests) and all(n.op not in EITHER and _of_time(n) for n in tests)


EITHER = frozenset(["or", "logical_or", "bitwise_or", "maximum"])


def _counts(node: Node) -> bool:
    """A comparison of a count of steps with a limit."""
    if node.op not in COMPARED:
        return False
    counted = (n for i in node.inputs for n in near(i, 4))
    return any(n.op == "counter" for n in counted) and any(isinstance(i, int) for i in node.inputs)


def _goes_on(node: Node) -> Node | None:
    """In ``gamma * (1 - done) * value``: ``1 - done``; in ``where(done, r, r + gamma * value)``: ``done``."""
    if node.op == "where" and len(node.inputs) == len(WHERE):
        return _chosen(node)
    if node.op != "mul" or len(node.inputs) < 2:
        return None
    for factor, rest in ((node.inputs[0], node.inputs[1]), (node.inputs[1], node.inputs[0])):
        found = _open(factor)
        if found is None or not isinstance(rest, Node) or _trace(node, rest):
            continue
        if any(n.op == "param" for n in ancestors(rest, through=carries)):
            return found
    return None


def _chosen(node: Node) -> Node | None:
    """The test of a ``where`` that gives the value of what follows only where it does not hold."""
    test, held, other = node.inputs
    if not isinstance(test, Node):
        return None
    turned = test.op in NEGATED
    ends, follows = (other, held) if turned else (held, other)
    inside = ancestors(test, through=lambda n: n is test or n.op in STRUCTURE)
    if any(n.op in TURNING or (n is not test and n.op in NEGATED) for n in inside):
        return None
    if not isinstance(follows, Node):
        return None
    added = follows.op == "add" and any(i is ends for i in follows.inputs)
    later = [i for i in follows.inputs if i is not ends] if added else [follows]
    nothing = added or number_of(ends) == 0.0 or (isinstance(ends, Node) and ends.op in ("zeros_like", "zeros"))
    return test if nothing and any(n.op == "param" for i in later for n in ancestors(i, through=carries)) else None


def _trace(node: Node, rest: Node) -> bool:
    """True for ``a = delta + gamma * lambda * a * (1 - done)``, where ``delta`` has the values of its own: such a sum
    ends with its episode, whatever ended it (Schulman et al., arXiv:1506.02438)."""
    if node.place is None:
        return False
    for before in near(rest, 40):
        if before.op != "add" or len(before.inputs) < 2:
            continue
        for carried, own in (before.inputs[:2], before.inputs[1::-1]):
            again = any(n.place is not None and n.place[0] is node.place[0] for n in near(carried, 6))
            if again and any(n.op == "param" for n in ancestors(own, through=carries)):
                return True
    return False


def _open(value: Value, depth: int = 0) -> Node | None:
    if not isinstance(value, Node) or depth > 6:
        return None
    if value.op == "sub" and value.inputs and number_of(value.inputs[0]) == 1.0:
        return value
    if value.op in NEGATED or (_zero_or_one(value) and number_of(value.inputs[0]) == 0.0):
        return value
    if value.op == "setitem" and len(value.inputs) > 1:
        return _open(value.inputs[1], depth + 1)  # written into an array one by one: ``alive[i] = not over``
    if value.op == "mul" or value.op in STRUCTURE:
        inner = [p for i in value.inputs for p in parts(i)]
        return next((f for i in inner[:6] if (f := _open(i, depth + 1)) is not None), None)
    return None


def _kept_at(run: Rehearsing, flag: Node, made: Place) -> Place:
    """Where the flag is put aside for the update, as seen where it is made; else where it is made."""
    for event in run.tape:
        if event.name in KEEPS and any(_holds(a, flag) for a in event.args):
            for place in (*event.stack, event.place):
                if place is not None and place[1] is made[1]:
                    return place
    return made


def _holds(value: Value, flag: Node) -> bool:
    if isinstance(value, Obj):
        return any(_holds(v, flag) for v in value.attributes.values())
    return any(n is flag or any(i is flag for i in n.inputs) for n in parts(value))
