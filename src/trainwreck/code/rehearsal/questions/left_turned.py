"""Sums over what is still to come, made from the end on: are they turned round before a network is shown them?"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Items, Node, Obj, Value
from trainwreck.code.rehearsal.graph import ancestors, carries, parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.roles import JOINS, STRUCTURE, backwards
from trainwreck.code.rehearsal.questions.turning import _gathered, _side_by_side

FLIPS = {"flipud": 0, "fliplr": 1}
TURNERS = frozenset(["flip", "flipud", "fliplr", "reversed", "reverse"])
MOVES = (STRUCTURE | JOINS | {"array", "asarray", "ascontiguousarray", "copy", "batch", "either", "where"}) - {"flip"}
SUMS = frozenset(["cumsum", "logcumsumexp"])


def left_turned(run: Rehearsing) -> Iterator[Answer]:
    """Sums of rewards from the last step to the first, beside states that stand from the first to the last.

    Where anything else that the loss is made of is turned round too, all of it may stand in that order."""
    placed = {id(n) for e in run.tape if e.name == "placed" for n in parts(e.args[1])}
    told: set[int] = set()
    for event in backwards(run):
        behind = list(ancestors(event.subject, through=carries))
        for node in behind:
            if node.grad or node.place is None or id(node.place[0]) in told:
                continue
            turned = _summed_from_the_end(node)
            place = node.place if turned is not None else _gathered(node, placed)
            if place is None:
                continue
            own = {id(n) for n in ancestors(node)}
            rest = [n for n in behind if id(n) not in own]
            if any(_turns(n) for n in rest) or not _meets_other_rows(rest, own, node):
                continue
            if turned is None and _side_by_side(run, node, {id(n) for n in rest}):
                continue
            told.add(id(node.place[0]))
            text = "these sums stand from the last step to the first, and what they are shown with from the first on"
            yield Answer(place, text, (event.place,) if event.place is not None else ())


def _summed_from_the_end(node: Node) -> Node | None:
    """What was turned round along the axis that a running sum goes along; None for any other value."""
    first = node.inputs[0] if node.inputs else None
    if node.op not in SUMS or not isinstance(first, Node) or any(n.op == "param" for n in ancestors(first)):
        return None
    rest = node.inputs[1 : max(1, len(node.inputs) - len(node.options))]
    along = node.options.get("dim", node.options.get("axis", rest[0] if rest else None))
    if along is None and len(first.shape.dims) == 1 and not first.shape.open:
        along = 0
    if not isinstance(along, int) or isinstance(along, bool):
        return None
    axis = _axis_turned(first)
    count = len(first.shape.dims)
    same = axis == along or (count > 0 and not first.shape.open and axis is not None and (axis - along) % count == 0)
    return first if same and first.op != "arange" else None


def _axis_turned(node: Node) -> int | None:
    """The one axis along which a value is another one from the end to the beginning."""
    if node.op in FLIPS:
        return FLIPS[node.op]
    if node.op == "flip":
        given = [a for i in (*node.inputs[1:], *node.options.values()) for a in _numbers(i)]
        if len(set(given)) == 1:
            return given[0]
        return 0 if not given and len(node.shape.dims) == 1 else None
    if node.op != "getitem" or len(node.inputs) < 2:
        return None
    index = node.inputs[1] if isinstance(node.inputs[1], tuple) else (node.inputs[1],)
    slices = [i for i in index if isinstance(i, Obj) and i.kind == "builtins.slice"]
    found = [n for n, i in enumerate(index) if i in slices and i.args[2:] == (-1,)]
    if len(found) != 1 or (Ellipsis not in index and len(slices) != len(index)):
        return None
    return found[0] - len(index) if Ellipsis in index[: found[0]] else found[0]


def _numbers(value: Value) -> list[int]:
    items = value.items if isinstance(value, Items) else value if isinstance(value, tuple) else (value,)
    return [i for i in items if isinstance(i, int) and not isinstance(i, bool)]


def _turns(node: Node) -> bool:
    """True for anything that may put rows in another order: turned, or picked by numbers that count down or sort."""
    if node.op in TURNERS or node.op in ("argsort", "sort", "searchsorted"):
        return True
    index = node.inputs[-1] if node.op in ("getitem", "setitem", "index_select") and len(node.inputs) > 1 else None
    items = index if isinstance(index, tuple) else (index,)
    for item in items:
        if isinstance(item, Obj) and item.kind == "builtins.slice" and item.args[2:] == (-1,):
            return True
        # an index that is computed from numbers in a row, taken off another number, counts down
        if isinstance(item, Node) and any(n.op in ("arange", "range") for n in ancestors(item)):
            return any(n.op in ("sub", "neg", *TURNERS) or -1 in n.inputs for n in ancestors(item))
    return False


def _meets_other_rows(rest: list[Node], own: set[int], node: Node) -> bool:
    """True where an array of the same rows is picked from by the very index that these sums are picked by, or goes
    through the same loader."""
    mine = indices([node, *(n for n in rest if _made_of(n, node))])
    return any(indices([n]) & mine and not _made_of(n, node) for n in rest if id(n) not in own)


def _made_of(value: Node, node: Node) -> bool:
    return any(n is node for n in ancestors(value, through=lambda n: n.op in MOVES or n.op in ("div", "mul", "sub")))


def indices(nodes: list[Node]) -> set[int]:
    """What picks rows: the numbers, or the loader."""
    found: set[int] = set()
    for node in nodes:
        if node.op in ("getitem", "index_select") and len(node.inputs) > 1 and not node.grad:
            item = node.inputs[1][0] if isinstance(node.inputs[1], tuple) and node.inputs[1] else node.inputs[1]
            found |= {id(item)} if isinstance(item, Node) else set()
        if node.op == "batch" and node.owner is not None:
            found.add(id(node.owner))
    return found
