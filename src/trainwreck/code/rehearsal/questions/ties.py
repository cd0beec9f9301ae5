"""Along which axis of an array which number runs, as far as the program draws the array itself (``orientation``)."""

from __future__ import annotations

from trainwreck.code.rehearsal.domain import Items, Node, Obj, Value
from trainwreck.code.rehearsal.questions.coordinates import NUMBERWISE, Root, Sources, spread
from trainwreck.code.rehearsal.questions.paths import RANDOM
from trainwreck.code.rehearsal.questions.roles import STRUCTURE
from trainwreck.core.row import Row

LINKS = frozenset(["sub", "add", "gt", "ge", "lt", "le", "eq", "ne"])
"""What sets positions against a number."""
POINTWISE = (
    NUMBERWISE
    | LINKS
    | frozenset(
        """exp pow neg sqrt abs and or where maximum minimum clip clamp astype sigmoid relu logical_and logical_or
        invert log square fmax fmin exp_ either hypot floor round int float tanh normalize log1p nan_to_num copy
        ascontiguousarray""".split()
    )
)
GRIDS = frozenset(["mgrid", "ogrid", "indices", "meshgrid"])
SWAPS = frozenset(["transpose", "swapaxes", "swapdims", "T", "mT", "t", "permute", "movedim"])
GATHERS = frozenset(["array", "stack", "tensor", "as_tensor", "asarray", "cat", "concatenate", "vstack"])
KEEPS = (
    STRUCTURE
    - SWAPS
    - frozenset(
        """view reshape flatten squeeze unsqueeze getitem repeat_interleave gather take_along_dim masked_select diagonal
    rearrange chunk split unbind roll narrow select view_as reshape_as ravel unflatten tile diag index_select""".split()
    )
)
MAX_DEPTH = 200


class Info(Row):
    """``grid``: the axes (from the right) along which an array only tells positions. ``links``: where a number is tied
    to an axis. ``grids``: the positions that it was set against."""

    grid: frozenset[int]
    links: dict[tuple[Root, int], Node]
    grids: dict[tuple[Root, int], Node]


NOTHING = Info(frozenset(), {}, {})


class Ties:
    """Works out ``Info`` of values, each once."""

    def __init__(self) -> None:
        self.memo: dict[int, Info] = {}
        self.sources = Sources()

    def info(self, value: Value, depth: int = 0) -> Info:
        if not isinstance(value, Node) or depth > MAX_DEPTH:
            return NOTHING
        if id(value) not in self.memo:
            self.memo[id(value)] = NOTHING
            self.memo[id(value)] = self._info(value, depth + 1)
        return self.memo[id(value)]

    def _info(self, node: Node, depth: int) -> Info:
        first = node.inputs[0] if node.inputs else None
        axis = positions(node)
        if axis is not None:
            return Info(frozenset([axis]), {}, {})
        if node.op in RANDOM:
            return _own(node)
        if node.op in POINTWISE:
            return self._pointwise(node, depth)
        if node.op == "setitem" and len(node.inputs) > 2:
            return self._written(node, depth)
        if node.op == "outer" and len(node.inputs) > 1:
            upper = _moved(self.info(node.inputs[0], depth), {-1: -2})
            return merged([upper, self.info(node.inputs[1], depth)])
        if node.op in SWAPS:
            order = _order(node)
            return _moved(self.info(first, depth), order, node) if order else NOTHING
        if node.op in ("batch", "element") or node.op in KEEPS:
            return self.info(first, depth)
        if node.op in GATHERS:
            return self._gathered(node, depth)
        if node.op in ("getitem", "unsqueeze", "squeeze", "view", "reshape") and isinstance(first, Node):
            kept = _kept_axes(node, first)
            return _moved(self.info(first, depth), kept) if kept else NOTHING
        return NOTHING

    def _pointwise(self, node: Node, depth: int) -> Info:
        sides = [i for i in node.inputs[:3] if isinstance(i, Node)]
        infos = [self.info(s, depth) for s in sides]
        found = merged(infos)
        if node.op not in LINKS or len(sides) != 2:
            return found
        for grid, flat, side, base in (
            (infos[0], infos[1], sides[1], sides[0]),
            (infos[1], infos[0], sides[0], sides[1]),
        ):
            if len(grid.grid) == 1 and not grid.links and not flat.grid:
                (axis,) = grid.grid
                for root in self.sources.roots(side):
                    found.links[root, axis] = node
                    found.grids[root, axis] = _named(base)
        return found

    def _written(self, node: Node, depth: int) -> Info:
        """``base[index] = value``: what the index says where, and what was written as a whole."""
        base, value, index = node.inputs[:3]
        infos = [self.info(base, depth)]
        if not isinstance(base, Node) or base.shape.open:
            return NOTHING
        items = spread(index, len(base.shape.dims))
        if items is None:
            return infos[0]
        count = len(base.shape.dims)
        found = merged(infos)
        for number, item in enumerate(items):
            ends = item.args[:2] if isinstance(item, Obj) else (item,)
            for end in ends:
                if isinstance(end, Node) and len(end.shape.dims) <= 1 and end.op != "counter":
                    for root in self.sources.roots(end):
                        found.links[root, number - count] = node
        whole = [i for i in items if isinstance(i, Obj) and i.kind == "builtins.slice" and set(i.args[:2]) <= {None}]
        leading = items[: len(items) - len(whole)]
        if whole and all(i in whole for i in items[len(leading) :]) and isinstance(value, Node):
            infos = [found, self.info(value, depth)]
            found = merged(infos)
        if len(items) == 1 or index is items[0]:
            mask = items[0]
            if isinstance(mask, Node) and len(mask.shape.dims) == count and not mask.shape.open:
                found = merged([found, self.info(mask, depth)])
        return found

    def _gathered(self, node: Node, depth: int) -> Info:
        first = node.inputs[0] if node.inputs else None
        if isinstance(first, Node):
            return self.info(first, depth)
        items = list(first.items) if isinstance(first, Items) else list(first) if isinstance(first, tuple) else []
        inner = [i for i in items if isinstance(i, Node)]
        if not inner or len(inner) != len(items):
            return NOTHING
        axis = node.options.get("dim", node.options.get("axis", node.inputs[1] if len(node.inputs) > 1 else 0))
        axis = axis if isinstance(axis, int) and not isinstance(axis, bool) else 0
        found = merged([self.info(i, depth) for i in inner])
        if node.op in ("cat", "concatenate", "vstack"):
            return found
        count = len(inner[0].shape.dims)
        if inner[0].shape.open or not count:
            return NOTHING
        at = axis if axis < 0 else axis - count - 1
        return _moved(found, {a: a if a > at else a - 1 for a in range(-count, 0)})


def merged(infos: list[Info]) -> Info:
    links: dict[tuple[Root, int], Node] = {}
    grids: dict[tuple[Root, int], Node] = {}
    for info in infos:
        links.update(info.links)
        grids.update(info.grids)
    return Info(frozenset(a for i in infos for a in i.grid), links, grids)


def _moved(info: Info, order: dict[int, int], by: Node | None = None) -> Info:
    """The same with each axis where ``order`` says that it comes to; the others are gone."""
    links = {
        (root, order[axis]): by if by is not None and order[axis] != axis else was
        for (root, axis), was in info.links.items()
        if axis in order
    }
    kept = {} if by is not None else {(r, order[a]): g for (r, a), g in info.grids.items() if a in order}
    return Info(frozenset(order[a] for a in info.grid if a in order), links, kept)


def positions(node: Node) -> int | None:
    """The axis (from the right) along which a value counts positions."""
    if node.op in ("arange", "linspace") and len(node.shape.dims) == 1:
        return -1
    number = node.inputs[1] if node.op in ("part", "getitem") and len(node.inputs) == 2 else None
    if not isinstance(number, int) or isinstance(number, bool):
        return None
    base: Value = node.inputs[0]
    for _ in range(6):
        if isinstance(base, Node) and base.op in KEEPS and base.op not in GRIDS and base.inputs:
            base = base.inputs[0]
    if not isinstance(base, Node) or base.op not in GRIDS:
        return None
    if base.op == "meshgrid":
        arrays = [i for i in base.inputs if isinstance(i, Node)]
        if len(arrays) != 2 or number not in (0, 1):
            return None
        way = base.options.get("indexing", "xy" if base.full.startswith("numpy") else "ij")
        return number - 2 if way == "ij" else -1 - number if way == "xy" else None
    if base.op == "indices":
        return number - 2 if isinstance(base.inputs[0], tuple) and len(base.inputs[0]) == 2 else None
    return number - 2 if len(base.inputs) == 2 else None


def _named(base: Node) -> Node:
    """The positions as they were first given a name."""
    at = base
    for _ in range(8):
        if positions(at) is not None or not at.inputs or not isinstance(at.inputs[0], Node):
            break
        at = at.inputs[0]
    return at


def _own(node: Node) -> Info:
    """What is drawn as a picture: its own axes are known by themselves."""
    plane = node.shape.dims[-2:]
    if node.shape.open or len(plane) < 2 or None in plane:
        return NOTHING
    return Info(frozenset(), {((id(node), (*plane, a)), a): node for a in (-1, -2)}, {})


def _order(node: Node) -> dict[int, int]:
    """For each axis from the right the one that it comes to; nothing where that is not known."""
    first = node.inputs[0] if node.inputs else None
    if not isinstance(first, Node) or first.shape.open:
        return {}
    count = len(first.shape.dims)
    rest = node.inputs[1:]
    axes = list(rest[0]) if len(rest) == 1 and isinstance(rest[0], tuple) else list(rest)
    if node.op in ("T", "t") or (node.op == "transpose" and not axes):
        return {a: -count - 1 - a for a in range(-count, 0)}
    if node.op == "mT":
        return {a: {-1: -2, -2: -1}.get(a, a) for a in range(-count, 0)}
    if not axes or not all(isinstance(a, int) for a in axes) or node.op == "movedim":
        return {}
    numbers = [a % count for a in axes]
    if len(numbers) == 2 and (node.op != "permute" or count == 2) and not (node.full.startswith("numpy.transpose")):
        order = list(range(count))
        order[numbers[0]], order[numbers[1]] = order[numbers[1]], order[numbers[0]]
    else:
        order = numbers
    if sorted(order) != list(range(count)):
        return {}
    return {was - count: now - count for now, was in enumerate(order)}


def _kept_axes(node: Node, first: Node) -> dict[int, int]:
    """For an index or another view: the axes that are left as they are, with their new place."""
    if first.shape.open or node.shape.open:
        return {}
    before, after = len(first.shape.dims), len(node.shape.dims)
    if node.op == "getitem":
        return _indexed(node.inputs[1] if len(node.inputs) > 1 else None, before, after)
    if node.op == "unsqueeze":
        at = node.inputs[1] if len(node.inputs) > 1 else node.options.get("dim")
        if not isinstance(at, int):
            return {}
        at = at if at < 0 else at - after
        return {a: a if a > at else a - 1 for a in range(-before, 0)}
    old = [(n - before, d) for n, d in enumerate(first.shape.dims) if d != 1]
    new = [(n - after, d) for n, d in enumerate(node.shape.dims) if d != 1]
    same = len(old) == len(new) and all(o[1] == n[1] for o, n in zip(old, new, strict=True))
    return {o[0]: n[0] for o, n in zip(old, new, strict=True)} if same else {}


def _indexed(index: Value, before: int, after: int) -> dict[int, int]:
    items = spread(index, before, added=True)
    if items is None:
        return {}
    order: dict[int, int] = {}
    old = new = 0
    for item in items:
        if item is None:
            new += 1
        elif isinstance(item, Obj):
            order[old - before] = new
            old, new = old + 1, new + 1
        elif isinstance(item, int) or (isinstance(item, Node) and not item.shape.open and not item.shape.dims):
            old += 1
        elif isinstance(item, Node) and len(item.shape.dims) == 1 and item is items[0]:
            old, new = old + 1, new + 1  # rows are chosen
        else:
            return {}
    return {a: n - new for a, n in order.items()} if new == after else {}
