"""Are inputs and labels in the same order when they meet in the loss?"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node
from trainwreck.code.rehearsal.graph import ancestors
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.paths import ORDERS, Path, Step, meets, paths


def misaligned(run: Rehearsing) -> Iterator[Answer]:
    """An order (a permutation, an argsort, a selection) that the inputs went through and the labels did not.

    Both must have been indexed together afterwards, or by another order before: then they had one axis in common. All
    ways of the inputs must have gone through it (mixup and negative samples keep a way without)."""
    for event in run.tape:
        if event.name != "backward":
            continue
        for meeting, inside, outside in meets(event.subject):
            inputs = [p for node in inside for p in paths(node)]
            labels = [p for node in outside for p in paths(node)]
            inputs = [p for p in inputs if p.steps]
            labels = [p for p in labels if p.steps]
            if not inputs or not labels:
                continue
            for here, there in ((inputs, labels), (labels, inputs)):
                step = _alone(here, there)
                if step is not None and step.place is not None:
                    which = "inputs" if here is inputs else "labels"
                    text = f"the {which} are put in another order here, and what they are paired with is not"
                    proof = tuple(p for p in (there[0].steps[-1].place, meeting.place) if p is not None)
                    yield Answer(step.place, text, proof)
                    break


def _alone(here: list[Path], there: list[Path]) -> Step | None:
    """The order that every way in ``here`` went through and none in ``there``."""
    shared = {s.key for p in there for s in p.steps}
    for number, step in enumerate(here[0].steps):
        if step.key in shared or not _orders(step):
            continue
        if not all(any(s.key == step.key for s in p.steps) for p in here):
            continue
        if not all(_paired(p, q) for p in here for q in there):
            continue
        after = [s.key for s in here[0].steps[number + 1 :]]
        before = [s for s in here[0].steps[:number] if _orders(s) and not _whole(s)]
        common_after = any(k in shared for k in after)
        common_before = any(s.key in shared for s in before)
        if common_after or common_before:
            return step
    return None


def _orders(step: Step) -> bool:
    if not isinstance(step.index, Node):
        return False
    return any(n.op in ORDERS for n in list(ancestors(step.index))[:12])


def _whole(step: Step) -> bool:
    """True for the number of one element."""
    return isinstance(step.index, Node) and step.index.op == "index"


def _paired(one: Path, other: Path) -> bool:
    """True where two arrays were made together: in one call, or as parts of one value."""
    if one.root.stack == other.root.stack:
        return True
    depth = min(len(one.root.stack), len(other.root.stack))
    return depth > 0 and one.root.stack[:depth] == other.root.stack[:depth]
