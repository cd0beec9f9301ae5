"""The token that ends a text: is it among the labels that a network is trained on?

Generation stops at a token, rows of the data end with it, and the labels that equal it are left out of the loss, since
padding has the same number: the network never learns to stop."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Items, Node, Obj, Place, Value
from trainwreck.code.rehearsal.graph import ancestors
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.roles import STRUCTURE, trained, users
from trainwreck.core.row import Row

LOSSES = frozenset(["cross_entropy", "nll_loss"])
CHOSEN = frozenset(["argmax", "multinomial", "topk", "max", "sample", "choice"])
"""How a token is chosen from what a network gives."""
FILLS = frozenset(["full", "full_like", "new_full", "zeros", "zeros_like", "new_zeros", "pad_sequence", "pad", "ones"])
IGNORED = -100
"""What both losses leave out unless they are told another number."""
DEEP = 60


class LeftOut(Row):
    """Labels with this number are no part of the loss; where that is decided."""

    number: int
    place: Place
    labels: Node


def left_out(run: Rehearsing) -> Iterator[LeftOut]:
    """What is left out of a loss by the number of the label alone."""
    for loss in (n for n in trained(run) if n.op in LOSSES and len(n.inputs) > 1):
        labels = loss.inputs[1]
        ignored = loss.options.get("ignore_index", IGNORED)
        if not isinstance(labels, Node) or not isinstance(ignored, int):
            continue
        masked = _masked(labels, ignored)
        if masked is not None:
            yield masked
        elif ignored >= 0 and loss.place is not None:
            owner = loss.owner.place if isinstance(loss.owner, Obj) else None
            yield LeftOut(ignored, owner or loss.place, labels)
        elif loss.options.get("reduction") == "none":
            yield from _weighed(run, loss, labels)


def _masked(labels: Node, ignored: int) -> LeftOut | None:
    """Labels of one number that were set to the one that the loss ignores, as the last thing that was done to them."""
    at: Value = labels
    for _ in range(DEEP):
        if not isinstance(at, Node):
            return None
        mask: Value = None
        if at.op == "setitem" and len(at.inputs) > 2:
            if at.inputs[1] != ignored:
                return None
            mask = at.inputs[2]
        elif at.op == "masked_fill" and len(at.inputs) > 2:
            if at.inputs[2] != ignored:
                return None
            mask = at.inputs[1]
        elif at.op == "where" and len(at.inputs) > 2:
            test, one, other = at.inputs[:3]
            number = _equal(test, "eq" if one == ignored else "ne")
            if number is not None and at.place is not None and ignored in (one, other):
                return LeftOut(number, at.place, at)
            return None
        elif at.op not in STRUCTURE and at.op not in ("batch", "copy", "stack"):
            return None
        number = _equal(mask, "eq") if mask is not None else None
        if number is not None and at.place is not None:
            return LeftOut(number, at.place, at)
        first = at.inputs[0] if at.inputs else None
        at = first.items[0] if isinstance(first, Items) and first.items else first
    return None


def _equal(test: Value, op: str) -> int | None:
    """The number that values are compared with, by nothing but ``op``."""
    if isinstance(test, Node) and test.op in ("invert", "not", "logical_not") and test.inputs:
        return _equal(test.inputs[0], "ne" if op == "eq" else "eq")
    if not isinstance(test, Node) or test.op != op or len(test.inputs) != 2:
        return None
    number = next((i for i in test.inputs if isinstance(i, int) and not isinstance(i, bool)), None)
    return number if any(isinstance(i, Node) and not i.grad for i in test.inputs) else None


def _weighed(run: Rehearsing, loss: Node, labels: Node) -> Iterator[LeftOut]:
    """Losses of single labels, of which those of one number are multiplied by 0 or not selected."""
    at = [loss]
    for _ in range(6):
        following = [u for n in at for u in users(run).get(id(n), ())]
        for user in following:
            tests = (
                [i for i in user.inputs if isinstance(i, Node) and not i.grad] if user.op in ("mul", "getitem") else []
            )
            for test in tests:
                kept = next((n for n in ancestors(test, through=_cast) if n.op in ("ne", "invert")), None)
                number = _equal(kept, "ne")
                if number is not None and kept is not None and kept.place is not None and not _earlier(test, labels):
                    yield LeftOut(number, kept.place, labels)
                    return
        at = [u for u in following if u.op in STRUCTURE]


def _earlier(test: Node, labels: Node) -> bool:
    """True where the test looks at tokens before the labels (the inputs): the first end has a token before it."""
    mine, theirs = _first(test), _first(labels)
    return mine is not None and theirs is not None and mine < theirs


def _first(value: Value) -> int | None:
    """From which place on a row of tokens is taken; None where that isn't known."""
    start = 0
    for _ in range(DEEP):
        if not isinstance(value, Node) or not value.inputs:
            break
        if value.op == "getitem" and len(value.inputs) > 1:
            index = value.inputs[1]
            last = index[-1] if isinstance(index, tuple) and index else None
            if isinstance(last, Obj) and last.kind == "builtins.slice":
                begin = last.args[0]
                if not (begin is None or isinstance(begin, int)) or (isinstance(begin, int) and begin < 0):
                    return None
                start += begin or 0
        elif value.op not in STRUCTURE and value.op not in ("ne", "eq", "invert", "float"):
            break
        value = next((i for i in value.inputs if isinstance(i, Node)), None)
    return start


def _cast(node: Node) -> bool:
    return node.op in STRUCTURE


def end_left_out(run: Rehearsing) -> Iterator[Answer]:
    """Labels that equal the token at which generation stops are left out, padding and end alike."""
    told: set[int] = set()
    for out in left_out(run):
        if id(out.place[0]) in told:
            continue
        stops = _stops(run)
        end = _ended(run, out)
        if end is None or {n for n, _ in stops} != {out.number} or not _filled(out):
            continue
        told.add(id(out.place[0]))
        text = f"labels of {out.number} are left out with the padding: that is also the token at which a text ends"
        yield Answer(out.place, text, (end, *(p for _, p in stops[:1])))


def _stops(run: Rehearsing) -> list[tuple[int, Place]]:
    """Numbers that chosen tokens are compared with, and where."""
    found = []
    for node in run.nodes:
        if node.op not in ("eq", "ne") or len(node.inputs) != 2 or node.place is None:
            continue
        number = next((i for i in node.inputs if isinstance(i, int) and not isinstance(i, bool)), None)
        given = next((i for i in node.inputs if isinstance(i, Node)), None)
        if number is not None and given is not None and _chosen(given):
            found.append((number, node.place))
    return found


def _chosen(value: Node) -> bool:
    at: Value = value
    for _ in range(DEEP):
        if not isinstance(at, Node):
            return False
        if at.op in CHOSEN:
            return any(n.op == "param" for n in ancestors(at))
        if at.op not in STRUCTURE and at.op not in ("int", "item", "part", "tolist", "cat", "either", "element"):
            return False
        at = next((i for i in at.inputs if isinstance(i, Node)), None)
    return False


def _filled(out: LeftOut) -> bool:
    """True if rows are filled up with the number."""
    for node in ancestors(out.labels):
        given = (*node.inputs, *node.options.values())
        if node.op in FILLS and (out.number in _numbers(given) or (out.number == 0 and not _numbers(given))):
            return True
        if any(out.number in _numbers(i.items) for v in given for i in _lists(v) if i.more):
            return True
    return False


def _numbers(values: object) -> list[int]:
    held = list(values) if isinstance(values, tuple | list) else []
    return [v for v in held if isinstance(v, int) and not isinstance(v, bool)]


def _lists(value: Value, depth: int = 0) -> Iterator[Items]:
    if isinstance(value, Items):
        yield value
    if isinstance(value, Items | tuple) and depth < 4:
        for item in value.items if isinstance(value, Items) else value:
            yield from _lists(item, depth + 1)


def _ended(run: Rehearsing, out: LeftOut) -> Place | None:
    """Where the number is put behind a row once."""
    for node in run.nodes:
        for items in (i for v in (*node.inputs, *node.options.values()) for i in _lists(v)):
            last = items.items[-1] if len(items.items) > 1 else None
            if items.place is not None and last == out.number and _puts_one(items.place[0]):
                return items.place
        if node.place is None:
            continue
        if node.op in ("cat", "concatenate", "hstack", "append") and _one(node, out.number):
            return node.place
        behind = node.inputs[-1] if node.op == "add" and len(node.inputs) == 2 else None
        if isinstance(behind, Items) and behind.items == [out.number] and _puts_one(node.place[0]):
            return node.place
        by_one = node.op == "pad" and len(node.inputs) > 1 and node.inputs[1] == (0, 1)
        if by_one and node.options.get("value", 0) == out.number:
            return node.place
    for event in run.tape:
        if event.name == "append" and event.args == (out.number,) and event.place is not None:
            return event.place if _outside(run, event.place) else None
    return None


def _puts_one(node: ast.AST) -> bool:
    """True for ``row + [end]`` and ``[*row, end]``."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return isinstance(node.right, ast.List) and len(node.right.elts) == 1
    if not isinstance(node, ast.List) or not node.elts:
        return False
    starred = any(isinstance(e, ast.Starred) for e in node.elts)
    return starred and not isinstance(node.elts[-1], ast.Starred)


def _one(node: Node, number: int) -> bool:
    """True where the last of several arrays is one that holds the number alone."""
    first = node.inputs[0] if node.inputs else None
    held = list(first) if isinstance(first, tuple) else first.items if isinstance(first, Items) else list(node.inputs)
    last = held[-1] if len(held) > 1 else None
    if isinstance(last, Items):
        return last.items == [number] and not last.more
    if not isinstance(last, Node) or not last.inputs or any(n.grad for n in held if isinstance(n, Node)):
        return False
    inner = last.inputs[0]
    alone = last.op in ("tensor", "as_tensor", "array", "new_tensor") and isinstance(inner, Items)
    return alone and inner.items == [number] and not inner.more


def _outside(run: Rehearsing, place: Place) -> bool:
    """True for an ``append`` that no ``while`` repeats: that fills up."""
    return not any(isinstance(a, ast.While) for a in run.project.ancestors(*place))
