"""Are there copies of a row on both sides of a split?"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Place
from trainwreck.code.rehearsal.graph import ancestors, near, parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.paths import RANDOM, Path, Step
from trainwreck.code.rehearsal.questions.places import asked
from trainwreck.code.rehearsal.questions.splits import keys, sides

JOINS = frozenset(["cat", "concatenate", "concat", "vstack", "append", "extend"])
REPEATS = frozenset(["repeat", "tile", "repeat_interleave"])


def before_the_split(run: Rehearsing) -> Iterator[Answer]:
    """Rows that are copied (jittered, repeated) before a random order parts them.

    Said where a way of the training and one of the evaluation lead through the same copies and part after them."""
    both = sides(run)
    told: set[int] = set()
    for event, held in both.held:
        for train in both.train:
            if held.root is not train.root or keys(held) == keys(train) or not _parted(train, held):
                continue
            copied = _copied(held, train)
            if copied is None or id(copied[0]) in told:
                continue
            told.add(id(copied[0]))
            split = next((s.place for s in reversed(held.fixed) if s.place is not None), None)
            text = "rows are copied here before they are split, so that copies of a row are on both sides"
            yield Answer(copied, text, tuple(p for p in (split, event.place) if p is not None))


def _parted(train: Path, held: Path) -> bool:
    """True where a random order stands before the two ways part: without one, copies stay where they are."""
    shared = [a for a, b in zip(train.fixed, held.fixed, strict=False) if a.key == b.key]
    return any(_random(step) for step in shared) or any(_random(s) for s in (*train.fixed, *held.fixed))


def _random(step: Step) -> bool:
    return isinstance(step.index, Node) and any(n.op in RANDOM or n.op == "split" for n in near(step.index, 20))


def _copied(held: Path, train: Path) -> Place | None:
    """The place on both ways at which one array is put behind itself, before any part is taken of it."""
    other = {id(n) for n in train.nodes}
    first = next((s.place for s in held.fixed if s.place is not None), None)
    for node in held.nodes:
        if id(node) not in other:
            return None
        if first is not None and node.place is first:
            return None
        if node.op in REPEATS and node.inputs and _many(node):
            return asked(node)
        if node.op in JOINS and node.inputs:
            pieces = list(parts(node.inputs[0]))
            sources = [{id(n) for n in near(p, 60)} for p in pieces]
            if len(pieces) > 1 and any(id(pieces[0]) in source for source in sources[1:]):
                return asked(node)
    return None


def _many(node: Node) -> bool:
    """True for a repetition of rows (along the first axis) of an array that holds data."""
    axis = node.options.get("axis", node.options.get("dim", 0))
    return axis == 0 and not all(
        n.op in ("arange", "tensor", "array", "unknown") for n in ancestors(node) if n is not node
    )
