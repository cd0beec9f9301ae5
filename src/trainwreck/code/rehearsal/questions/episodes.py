"""Ends of episodes: what a flag that is also set at a time limit takes away."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.pattern import pattern
from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Obj, Place, Value
from trainwreck.code.rehearsal.graph import ancestors, carries, near, parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.roles import STRUCTURE
from trainwreck.code.rehearsal.questions.terms import losses_of, number_of

LIMIT = pattern(r"trunc|time_?(out|limit|up)|out_of_time|horizon|max_(steps|t)\b|limit", re.IGNORECASE)

BOTH = STRUCTURE | {"and", "logical_and", "bitwise_and", "mul"}
"""What a flag goes through that stays set only where it was."""


def cut_as_end(run: Rehearsing) -> Iterator[Answer]:
    """A flag that is also set at the time limit takes away the value of what follows."""
    told: set[int] = set()
    flags = {id(n) for n in run.nodes if _ended(n)}
    if not flags:
        return
    for event, _ in losses_of(run):
        for node in ancestors(event.subject):
            goes_on = _goes_on(node)
            if goes_on is None:
                continue
            flag = next((n for n in ancestors(goes_on, through=_of_flags) if id(n) in flags), None)
            if flag is None or flag.place is None or id(flag.place[0]) in told or _paid_before(event.subject, flag):
                continue
            told.add(id(flag.place[0]))
            text = "this flag is set at the time limit too, and takes the value of what follows away"
            yield Answer(_kept_at(run, flag), text, tuple(p for p in (node.place, event.place) if p is not None))
            return


def _of_flags(node: Node) -> bool:
    """False where something else is compared or counted: what a state was before does not make this flag."""
    if node.op in ("lt", "gt", "le", "ge", "eq", "ne"):
        return any(number_of(i) in (0.0, 0.5, 1.0) for i in node.inputs)
    return carries(node) and node.op != "index"


def _paid_before(loss: Value, flag: Node) -> bool:
    """True where the value of what follows is added to the reward at the time limit: ``r + gamma * v(last) * cut``."""
    both = list(enumerate(flag.inputs[:2]))
    sides = {id(i) for number, i in both if isinstance(i, Node) and (_of_time(i) or _called_so(flag, number))}
    for node in ancestors(loss):
        if node.op != "mul" or len(node.inputs) < 2:
            continue
        for factor, rest in (node.inputs[:2], node.inputs[1::-1]):
            cut = any(id(n) in sides for n in ancestors(factor, through=lambda n: n is not flag and n.op in BOTH))
            if cut and any(n.op == "param" for n in ancestors(rest)):
                return True
    return False


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


def _counts(node: Node) -> bool:
    """A comparison of a count of steps with a limit."""
    if node.op not in ("ge", "gt", "eq"):
        return False
    counted = (n for i in node.inputs for n in near(i, 4))
    return any(n.op == "counter" for n in counted) and any(isinstance(i, int) for i in node.inputs)


def _goes_on(node: Node) -> Node | None:
    """In ``gamma * (1 - done) * value``: ``1 - done``."""
    if node.op != "mul" or len(node.inputs) < 2:
        return None
    for factor, rest in ((node.inputs[0], node.inputs[1]), (node.inputs[1], node.inputs[0])):
        found = _open(factor)
        if found is None or not isinstance(rest, Node) or _trace(node, rest):
            continue
        if any(n.op == "param" for n in ancestors(rest, through=carries)):
            return found
    return None


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
    if value.op in ("not", "invert", "logical_not"):
        return value
    if value.op == "mul" or value.op in STRUCTURE:
        inner = [p for i in value.inputs for p in parts(i)]
        return next((f for i in inner[:6] if (f := _open(i, depth + 1)) is not None), None)
    return None


def _kept_at(run: Rehearsing, flag: Node) -> Place:
    """Where the flag is put aside for the update, as seen where it is made; else where it is made."""
    assert flag.place is not None
    for event in run.tape:
        keeps = event.name in ("append", "add", "put", "appendleft", "setitem", "insert", "extend")
        if keeps and any(_holds(a, flag) for a in event.args):
            for place in (*event.stack, event.place):
                if place is not None and place[1] is flag.place[1]:
                    return place
    return flag.place


def _holds(value: Value, flag: Node) -> bool:
    if isinstance(value, Obj):
        return any(_holds(v, flag) for v in value.attributes.values())
    return any(n is flag or any(i is flag for i in n.inputs) for n in parts(value))
