"""Which drawn numbers a coordinate is made of, through arrays of points, rows of annotations and unpacking."""

from __future__ import annotations

from trainwreck.code.rehearsal.domain import Items, Node, Obj, Value
from trainwreck.code.rehearsal.questions.paths import RANDOM
from trainwreck.code.rehearsal.questions.roles import STRUCTURE

Root = tuple[int, object]
"""What was drawn (by ``id``), and which of its components."""
NUMBERWISE = frozenset(
    ["add", "sub", "mul", "div", "neg", "floor_divide", "clip", "clamp", "round", "floor", "maximum"]
)
SAME = (STRUCTURE | frozenset("int float long item astype tolist tensor array asarray as_tensor".split())) - frozenset(
    """getitem T t mT transpose permute swapaxes swapdims movedim chunk split unbind gather diagonal flip roll
    rearrange""".split()
)
MADE = frozenset(["array", "tensor", "as_tensor", "asarray", "stack", "column_stack", "FloatTensor", "LongTensor"])
MAX_DEPTH = 60
NONE: frozenset[Root] = frozenset()


class Sources:
    """Follows numbers back to what was drawn, each once."""

    def __init__(self) -> None:
        self.memo: dict[tuple[int, object], frozenset[Root]] = {}

    def roots(self, value: Value, depth: int = 0) -> frozenset[Root]:
        """Of a number, or of one number for each sample."""
        if isinstance(value, Items | tuple):
            items = value.items if isinstance(value, Items) else value
            return frozenset(r for i in items for r in self.roots(i, depth + 1))
        return self._once(value, None, depth)

    def component(self, value: Value, number: int, depth: int = 0) -> frozenset[Root]:
        """Of one place of the last axis."""
        if isinstance(value, Items | tuple):
            items = list(value.items if isinstance(value, Items) else value)
            if all(_vector(i) for i in items):
                return frozenset(r for i in items for r in self.component(i, number, depth + 1))
            return self.roots(items[number], depth + 1) if -len(items) <= number < len(items) else NONE
        return self._once(value, number, depth)

    def _once(self, value: Value, number: int | None, depth: int) -> frozenset[Root]:
        if not isinstance(value, Node) or depth > MAX_DEPTH:
            return NONE
        key = (id(value), number)
        if key not in self.memo:
            self.memo[key] = NONE
            found = self._roots(value, depth + 1) if number is None else self._component(value, number, depth + 1)
            self.memo[key] = found
        return self.memo[key]

    def _roots(self, node: Node, depth: int) -> frozenset[Root]:
        first = node.inputs[0] if node.inputs else None
        if node.op in RANDOM:
            return frozenset([(id(node), None)]) if len(node.shape.dims) <= 1 else NONE
        if node.op == "part" and isinstance(first, Node) and isinstance(node.inputs[1], int):
            if first.op in ("T", "unbind", "split", "chunk", "tensor_split", "hsplit") and first.inputs:
                return self.component(first.inputs[0], node.inputs[1], depth)
            return self.component(first, node.inputs[1], depth) if len(first.shape.dims) == 1 else NONE
        if node.op == "either":
            return frozenset(r for i in node.inputs for r in self.roots(i, depth))
        if node.op == "getitem" and isinstance(first, Node) and len(node.inputs) > 1:
            if not first.shape.open and not first.shape.dims:
                return self.roots(first, depth)  # one of many, each of which is such a number
            last = _last(node, first)
            if isinstance(last, int):
                return self.component(first, last, depth)
            return self.roots(first, depth) if last is None else NONE
        if node.op in MADE and isinstance(first, Items | tuple):
            return self.roots(first, depth)
        if node.op in NUMBERWISE:
            return frozenset(r for i in node.inputs[:2] for r in self.roots(i, depth))
        if node.op == "setitem" and len(node.inputs) > 1:
            return self.roots(first, depth) | self.roots(node.inputs[1], depth)
        return self.roots(first, depth) if node.op in SAME else NONE

    def _component(self, node: Node, number: int, depth: int) -> frozenset[Root]:
        first = node.inputs[0] if node.inputs else None
        width = node.shape.dims[-1] if node.shape.dims else None
        if number < 0 and isinstance(width, int):
            number += width
        if node.op in RANDOM:
            return frozenset([(id(node), number)]) if isinstance(width, int) and width > 1 else NONE
        if node.op in MADE and isinstance(first, Items | tuple):
            axis = node.options.get("dim", node.options.get("axis", node.inputs[1] if len(node.inputs) > 1 else 0))
            items = list(first.items if isinstance(first, Items) else first)
            along = (
                node.op == "column_stack" or axis == -1 or (isinstance(axis, int) and axis == len(node.shape.dims) - 1)
            )
            if node.op in ("stack", "column_stack") and along:
                return self.roots(items[number], depth) if -len(items) <= number < len(items) else NONE
            return self.component(first, number, depth)
        if node.op in ("cat", "concat", "concatenate") and isinstance(first, Items | tuple):
            return self._joined(node, first, number, depth)
        if node.op == "getitem" and isinstance(first, Node) and len(node.inputs) > 1:
            last = _last(node, first)
            if last is None:
                return self.component(first, number, depth)
            start = last.args[0] if isinstance(last, Obj) and (*last.args, None, None, None)[2] in (None, 1) else None
            step = last.args[2] if isinstance(last, Obj) and len(last.args) > 2 else None
            if isinstance(last, Obj) and step == -1 and isinstance(width, int) and last.args[:2] == (None, None):
                return self.component(first, width - 1 - number, depth)
            if isinstance(start, int) or (isinstance(last, Obj) and start is None and step is None):
                return self.component(first, number + (start or 0), depth)
            if isinstance(last, Items) and all(isinstance(i, int) for i in last.items) and number < len(last.items):
                return self.component(first, last.items[number], depth)
            return NONE
        if node.op == "flip" and isinstance(width, int) and node.inputs[1:] in ((-1,), ((-1,),)):
            return self.component(first, width - 1 - number, depth)
        if node.op == "either":
            return frozenset(r for i in node.inputs for r in self.component(i, number, depth))
        if node.op in NUMBERWISE:
            sides = [i for i in node.inputs[:2] if isinstance(i, Node) and i.shape.dims[-1:] == node.shape.dims[-1:]]
            return frozenset(r for i in sides for r in self.component(i, number, depth))
        if node.op == "setitem" and len(node.inputs) > 2:
            return self.component(first, number, depth) | self._written(node, number, depth)
        return self.component(first, number, depth) if node.op in SAME or node.op in ("batch", "element") else NONE

    def _joined(self, node: Node, held: Items | tuple[Value, ...], number: int, depth: int) -> frozenset[Root]:
        """Columns beside each other, or rows below each other."""
        items = list(held.items if isinstance(held, Items) else held)
        axis = node.options.get("dim", node.options.get("axis", node.inputs[1] if len(node.inputs) > 1 else 0))
        if node.shape.open or not isinstance(axis, int):
            return NONE
        if axis not in (-1, len(node.shape.dims) - 1):
            return frozenset(r for i in items for r in self.component(i, number, depth))
        for item in items:
            width = item.shape.dims[-1] if isinstance(item, Node) and item.shape.dims else None
            if width is None:
                return NONE
            if number < width:
                return self.component(item, number, depth)
            number -= width
        return NONE

    def _written(self, node: Node, number: int, depth: int) -> frozenset[Root]:
        """What ``rows[index] = value`` puts into one place of the last axis."""
        base, value, index = node.inputs[:3]
        items = spread(index, len(base.shape.dims)) if isinstance(base, Node) and not base.shape.open else None
        if items is None:
            return NONE
        last = items[-1]
        if isinstance(last, int):
            return self.roots(value, depth) if last == number else NONE
        whole = isinstance(last, Obj) and last.kind == "builtins.slice" and set(last.args) <= {None}
        return self.component(value, number, depth) if whole else NONE


def _vector(value: Value) -> bool:
    if isinstance(value, Node):
        return bool(value.shape.dims) and not value.shape.open
    return isinstance(value, Items | tuple)


def _last(node: Node, first: Node) -> Value:
    """How an index takes the last axis: a place, a slice or a list; None where it leaves it as it is."""
    items = spread(node.inputs[1], len(first.shape.dims)) if not first.shape.open else None
    if items is None:
        return node  # not known
    last = items[-1]
    if isinstance(last, Obj) and last.kind == "builtins.slice":
        start, end = (*last.args, None, None)[:2]
        if set(last.args) <= {None}:
            return None
        first_one = 0 if start is None else start
        single = node.shape.dims[-1:] == (1,) and not node.shape.open
        return first_one if isinstance(first_one, int) and (end == first_one + 1 or single) else last
    return None if isinstance(last, Node) and len(items) == 1 else last


def spread(index: Value, count: int, *, added: bool = False) -> list[Value] | None:
    """The items of an index, one for each axis (and ``None`` for each new one with ``added``); None where unclear."""
    items = list(index) if isinstance(index, tuple) else [index]
    if any(isinstance(i, Node) and (i.shape.open or len(i.shape.dims) > 1) for i in items):
        return items if len(items) == 1 and isinstance(items[0], Node) and not items[0].shape.open else None
    taken = sum(i is not None and i is not Ellipsis for i in items)
    if taken > count:
        return None
    whole = [Obj("builtins.slice", args=(None, None, None)) for _ in range(count - taken)]
    at = items.index(Ellipsis) if any(i is Ellipsis for i in items) else len(items)
    full = [*items[:at], *whole, *items[at + 1 :]]
    return full if added else [i for i in full if i is not None]
