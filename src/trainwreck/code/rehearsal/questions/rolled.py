"""Batches that are rolled, turned round or put in a random order along the axis of their samples, while their labels
stay as they are."""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Items, Node, Value
from trainwreck.code.rehearsal.graph import parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.left_turned import indices
from trainwreck.code.rehearsal.questions.paths import meets
from trainwreck.code.rehearsal.questions.roles import backwards
from trainwreck.code.rehearsal.questions.sampleaxis import sample_axis

TURNS = {"roll": 2, "flip": 1}
"""Where the axes stand among the arguments."""
MOST = 4_000


def rolled_apart(run: Rehearsing) -> Iterator[Answer]:
    """All that a network is given of a batch was moved along the samples, and nothing of what it is compared with.

    A way of the inputs without it (a mixture, negative pairs, both views side by side) makes it meant."""
    for event in backwards(run):
        for node, inside, outside in meets(event.subject):
            here, there = _ways(run, inside), _ways(run, outside)
            for key, found in here.items():
                other = there.get(key, {})
                moved = next((n for n in found.values() if n is not None), None)
                if moved is None or None in found.values() or not other or any(n is not None for n in other.values()):
                    continue
                if moved.place is not None:
                    text = "this moves the samples of the batch, and what they are compared with stays where it is"
                    yield Answer(moved.place, text, (node.place,) if node.place is not None else ())
                    return


def _ways(run: Rehearsing, values: list[Node]) -> dict[int, dict[int, Node | None]]:
    """For all that rows were picked by on the way to ``values``: what moved the samples since, None where nothing."""
    found: dict[int, dict[int, Node | None]] = {}
    queue: list[tuple[Node, Node | None]] = [(v, None) for v in values]
    seen: set[tuple[int, int]] = set()
    for at in range(MOST):
        if at >= len(queue):
            break
        node, moved = queue[at]
        if (id(node), id(moved)) in seen or node.op in ("param", "buffer", "randperm"):
            continue
        seen.add((id(node), id(moved)))
        for key in indices([node]):
            found.setdefault(key, {})[id(moved)] = moved
        if moved is None and ((node.op in TURNS and _of_samples(run, node)) or _put_in_order(node)):
            moved = node
        items: tuple[Value, ...] = (*node.inputs, *node.options.values())
        if node.op in ("getitem", "index_select", *TURNS):
            items = node.inputs[:1]
        queue += [(inner, moved) for item in items for inner in parts(item)]
    return found


def _put_in_order(node: Node) -> bool:
    """True for what a network computed of a batch, taken in a random order: ``z[torch.randperm(len(z))]``."""
    index = node.inputs[1] if node.op == "getitem" and len(node.inputs) > 1 else None
    index = index[0] if isinstance(index, tuple) and index else index
    return node.grad and isinstance(index, Node) and index.op in ("randperm", "permutation")


def _of_samples(run: Rehearsing, node: Node) -> bool:
    """True where the axis of the samples is among those that the elements are moved along, by more than nothing."""
    first = node.inputs[0] if node.inputs else None
    axis = sample_axis(run, first) if isinstance(first, Node) else None
    if axis is None or not isinstance(first, Node):
        return False
    own = node.inputs[1 : max(1, len(node.inputs) - len(node.options))]
    if node.op == "flip":
        given = node.options.get("dims", own[0] if len(own) == 1 else own)
        shifts: list[Value] = []
    else:
        given = node.options.get("dims", (*own, None, None)[1] if "shifts" not in node.options else (*own, None)[0])
        shifts = _listed(node.options.get("shifts", (*own, None)[0]))
    axes = _listed(given)
    if not axes or not all(isinstance(a, int) and not isinstance(a, bool) for a in axes):
        return False
    if any(a < 0 for a in axes) and first.shape.open:
        axes = [a if a >= 0 else -99 for a in axes]
    axes = [a if a >= 0 or a == -99 else a + len(first.shape.dims) for a in axes]
    if axis not in axes:
        return False
    return not (len(shifts) == len(axes) and shifts[axes.index(axis)] == 0)


def _listed(value: Value) -> list[Value]:
    if isinstance(value, tuple):
        return list(value)
    if isinstance(value, Items):
        return [] if value.more else list(value.items)
    return [] if value is None else [value]


__all__ = ["rolled_apart"]
