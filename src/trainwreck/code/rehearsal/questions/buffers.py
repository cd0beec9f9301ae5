"""Is one buffer, filled anew each time, kept as if every filling were an array of its own?"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Event, Items, Node, Obj, Place, Value
from trainwreck.code.rehearsal.graph import parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.paths import feeding
from trainwreck.code.rehearsal.questions.roles import users

VIEWS = frozenset(
    """view reshape permute transpose t T mT squeeze unsqueeze expand expand_as detach detach_ data from_numpy numpy
    as_tensor asarray requires_grad_ contiguous narrow swapaxes movedim ravel""".split()
)
"""What shares its memory with what it is made of (``to`` and ``float`` may: no conclusion is drawn through them)."""
MADE = frozenset(
    """zeros ones full empty zeros_like ones_like full_like empty_like randn rand normal tensor array arange linspace
    uniform standard_normal clone copy random new_zeros new_empty new_full""".split()
)
"""What makes an array, with memory of its own."""
FILLS = frozenset(["fill", "copyto"])
MAX_DEPTH = 60


def reused(run: Rehearsing) -> Iterator[Answer]:
    """A list that keeps one array again and again, while it is written over; a sample that is such an array."""
    writes = _writes(run)
    if not writes:
        return
    told: set[int] = set()
    for first, last, one, other in _kept(run):
        root = memory(one)
        if root is None or root is not memory(other) or not _written(writes, root, first.serial, last.serial):
            continue
        place = _handed_out(other, last)
        if place is None or id(place[0]) in told or not _trained(run, one, other, first.subject):
            continue
        told.add(id(place[0]))
        text = "this is one buffer that is written over each time: all that the list keeps of it are equal"
        yield Answer(place, text, tuple(p for p in (other.place, last.place) if p is not None and p != place))
        return
    yield from _samples(run, writes)


def memory(node: Node) -> Node | None:
    """The array whose memory a value lies in; None where it isn't known."""
    for _ in range(MAX_DEPTH):
        base = node.inputs[0] if node.inputs and isinstance(node.inputs[0], Node) else None
        if node.options.get("inplace") is True or node.op == "setitem" or node.op in VIEWS:
            if base is None or (node.op == "asarray" and len(node.inputs) + len(node.options) > 1):
                return None
            node = base
        elif node.op == "getitem" and base is not None and _slices(node.inputs[1] if len(node.inputs) > 1 else None):
            node = base
        else:
            return node if node.op in MADE and not _number(node) else None
    return None


def _number(node: Node) -> bool:
    return not node.shape.open and not node.shape.dims


def _slices(index: Value) -> bool:
    items = index if isinstance(index, tuple) else (index,)
    return all(isinstance(i, Obj) and i.kind == "builtins.slice" for i in items)


def _writes(run: Rehearsing) -> dict[int, list[int]]:
    """When (serial) each array (by ``id``) is written over."""
    found: dict[int, list[int]] = {}
    for node in run.nodes:
        inner = node.options.get("out")
        changed = node.options.get("inplace") is True or node.op == "setitem" or node.op in FILLS
        target = inner if isinstance(inner, Node) else node.inputs[0] if changed and node.inputs else None
        root = memory(target) if isinstance(target, Node) else None
        if root is not None:
            found.setdefault(id(root), []).append(node.serial)
    return found


def _written(writes: dict[int, list[int]], root: Node, after: int, before: int) -> bool:
    return any(after < serial < before for serial in writes.get(id(root), ()))


def _kept(run: Rehearsing) -> Iterator[tuple[Event, Event, Node, Node]]:
    """What one ``append`` put into one list in two turns of its loop, part by part."""
    before: dict[tuple[int, int], Event] = {}
    for event in run.tape:
        if event.name != "append" or not isinstance(event.subject, Items) or event.place is None:
            continue
        key = (id(event.subject), id(event.place[0]))
        first = before.setdefault(key, event)
        if first is not event:
            for one, other in zip(parts(first.args), parts(event.args), strict=False):
                yield first, event, one, other


def _trained(run: Rehearsing, one: Node, other: Node, kept: Value) -> bool:
    """True where what stands in the list is put together, or picked from it, on the way to a loss."""
    used = feeding(run)
    for user in users(run).get(id(other), ()):
        for item in user.inputs:
            many = item is kept or (isinstance(item, Items | tuple) and any(p is one for p in parts(item)))
            if id(user) in used and many:
                return True
    return any(id(node) in used and _picks(node, kept) for node in run.nodes)


def _picks(node: Node, kept: Value) -> bool:
    return any(item is kept or (isinstance(item, Items) and item.source is kept) for item in node.inputs)


def _handed_out(value: Node, kept: Event) -> Place | None:
    """Where a copy belongs: the last view that is made of the buffer, or the call that gets the buffer as it is."""
    if value.op in VIEWS and value.place is not None:
        return value.place
    scope = kept.place[1] if kept.place is not None else None
    inside = next((p for p in reversed(value.stack) if p[1] is scope), None)
    return inside or kept.place


def _samples(run: Rehearsing, writes: dict[int, list[int]]) -> Iterator[Answer]:
    """A data set that gives out its buffer: the samples of a batch are gathered before they are stacked."""
    for node in run.nodes:
        loader = node.owner
        if node.op != "batch" or loader is None or loader.get("batch_size", 1, 1) in (1, None):
            continue
        for item in parts(node.inputs):
            root = memory(item)
            if root is None or root is item or root.serial > loader.serial or item.serial < loader.serial:
                continue
            if item.place is None or id(node) not in feeding(run):
                continue
            if _written(writes, root, loader.serial, node.serial):
                text = "this is one buffer that is written over for each sample: all samples of a batch are equal"
                yield Answer(item.place, text, (root.place,) if root.place is not None else ())
                return
