"""Copies of a sample on both sides of a random split, that stand in data sets of their own or overlap as windows."""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Items, Node, Obj, Value
from trainwreck.code.rehearsal.graph import near
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.paths import Path
from trainwreck.code.rehearsal.questions.splits import sides

DRAWS = frozenset(["randperm", "permutation", "split"])


def joined_with_itself(run: Rehearsing) -> Iterator[Answer]:
    """``random_split(ConcatDataset([data, Flipped(data)]))``: a sample and its changed copy come to different parts."""
    parts: dict[int, list[Obj]] = {}
    for part in run.objects:
        whole = part.get("dataset", 0) if part.name == "Subset" else None
        index = part.get("indices", 1) if part.name == "Subset" else None
        drawn = isinstance(index, Node) and any(n.op in DRAWS for n in near(index, 12))
        if isinstance(whole, Obj) and whole.name == "ConcatDataset" and drawn:
            parts.setdefault(id(whole), []).append(part)
    for found in parts.values():
        whole = found[0].get("dataset", 0)
        held = whole.args[0] if whole.args else None
        items = held.items if isinstance(held, Items) else list(held) if isinstance(held, tuple) else []
        if len(found) > 1 and whole.place is not None and any(_holds(b, a) for a in items for b in items if a is not b):
            text = "a data set and a changed copy of it are joined before they are divided at random"
            yield Answer(whole.place, text, tuple(p for p in (found[0].place,) if p is not None))
            return


def _holds(wrapper: Value, inner: Value) -> bool:
    """True for a data set that gives the samples of another one."""
    return (
        isinstance(wrapper, Obj)
        and isinstance(inner, Obj)
        and any(v is inner for v in (*wrapper.attributes.values(), *wrapper.args))
    )


def overlapping_at_random(run: Rehearsing) -> Iterator[Answer]:
    """Windows that overlap are put in a random order, and then divided."""
    both = sides(run)
    for event, held in both.held:
        for train in both.train:
            cut = next((n for n in held.nodes if _overlaps(n) and any(n is m for m in train.nodes)), None)
            if cut is None or held.root is not train.root or (order := _order(held, train)) is None:
                continue
            if order.place is not None:
                text = "windows that overlap are put in a random order and divided: pieces of each are on both sides"
                yield Answer(order.place, text, tuple(p for p in (cut.place, event.place) if p is not None))
                return


def _overlaps(node: Node) -> bool:
    """True for windows that begin before the one before them ends, as written."""
    if node.op == "sliding_window_view":
        return len(node.inputs) > 1 and isinstance(node.inputs[1], int) and node.inputs[1] > 1
    given = [v for v in (*node.inputs[1:], *node.options.values()) if isinstance(v, int)]
    size = node.options.get("size", given[1] if len(given) > 2 else None)
    step = node.options.get("step", given[2] if len(given) > 2 else None)
    return node.op == "unfold" and isinstance(size, int) and isinstance(step, int) and 0 < step < size


def _order(held: Path, train: Path) -> Node | None:
    """The random order that both sides were taken from, in different parts."""
    shared: Node | None = None
    for mine, other in zip(held.steps, train.steps, strict=False):
        if mine.key != other.key:
            ends = [i.args[:2] for s in (mine, other) if isinstance(i := s.index, Obj) and i.kind == "builtins.slice"]
            return shared if len(ends) == 2 and (None in ends[0] or None in ends[1]) else None
        if isinstance(mine.index, Node):
            shared = next((n for n in near(mine.index, 4) if n.op in DRAWS), shared)
    return None


__all__ = ["joined_with_itself", "overlapping_at_random"]
