"""Are inputs and labels in the same order when they meet in the loss?"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TypeGuard

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Place, Value
from trainwreck.code.rehearsal.graph import ancestors, carries, parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.mixing import unmixed_inputs
from trainwreck.code.rehearsal.questions.paths import ORDERS, Path, Step, meets, paths

COMPARES = frozenset(
    """cross_entropy binary_cross_entropy binary_cross_entropy_with_logits kl_div sub mul gather eq cosine_similarity
    log_prob call""".split()
)
"""Where a prediction meets its label; other operations take lengths, masks and weights beside data."""


def misaligned(run: Rehearsing) -> Iterator[Answer]:
    """An order (a permutation, an argsort, a selection) that the inputs went through and the labels did not.

    Both must have been indexed together afterwards, or by another order before: then they had one axis in common. All
    ways of the inputs must have gone through it (mixup and negative samples keep a way without), and all backwards of
    the place: a loss that is also fed with the pairs as they are is compared with chance on purpose."""
    found: dict[int, list[Answer | None]] = {}
    for event in run.tape:
        if event.name != "backward":
            continue
        for meeting, inside, outside in meets(event.subject):
            if meeting.op not in COMPARES and not meeting.op.endswith("_loss"):
                continue
            answer = _apart(run, meeting, inside, outside)
            if answer is not None or (inside and outside):
                found.setdefault(id(meeting.place[0]) if meeting.place else 0, []).append(answer)
    if next(unmixed_inputs(run), None) is not None:
        return  # labels that were mixed on purpose, and inputs that were not: told by another rule
    for at_place in found.values():
        if all(answer is not None for answer in at_place):
            yield from (answer for answer in at_place[:1] if answer is not None)


def _apart(run: Rehearsing, meeting: Node, inside: list[Node], outside: list[Node]) -> Answer | None:
    """The order that only one side of a loss went through."""
    inputs = [p for node in inside for p in paths(run, node) if p.steps]
    labels = [p for node in outside for p in paths(run, node) if p.steps]
    if not inputs or not labels:
        return None
    for here, there in ((inputs, labels), (labels, inputs)):
        step = _alone(here, there)
        if step is not None and step.place is not None:
            which = "inputs" if here is inputs else "labels"
            text = f"the {which} are put in another order here, and what they are paired with is not"
            place = step.place
            scope = place[1]
            sorts = isinstance(step.index, Node) and step.index.op in ("argsort", "part") and meeting.place is not None
            if sorts and any(n.grad and n.place is not None and n.place[1] is scope for n in here[0].nodes):
                place = given_back(step.place, meeting.place or place)  # the network's own: it is to put them back
            proof = (there[0].steps[-1].place, meeting.place)
            return Answer(place, text, tuple(p for p in proof if p is not None))
    return None


def given_back(made: Place, meeting: Place) -> Place:
    """What the function that sorts gives back; where it does all by itself, the comparison."""
    scope = made[1]
    value = next((v for v in scope.returns if v is not None), None)
    return (value, scope) if value is not None and scope is not meeting[1] else meeting


def _alone(here: list[Path], there: list[Path]) -> Step | None:
    """The order that every way in ``here`` went through and none in ``there``."""
    shared = {s.key for p in there for s in p.steps}
    for number, step in enumerate(here[0].steps):
        if step.key in shared or not _orders(step):
            continue
        if not all(any(s.key == step.key for s in p.steps) for p in here) or _put_back(here[0], step):
            continue
        if any(_inverse(step.index, s.index) for s in here[0].steps[:number]):
            continue  # this puts back what an earlier one moved
        made_together = all(paired(p, q) for p in here for q in there)
        if not made_together and not all(any(p.root is q.root for p in here) for q in there):
            continue
        after = [s.key for s in here[0].steps[number + 1 :]]
        before = [s for s in here[0].steps[:number] if _orders(s) and not _whole(s)]
        common_after = any(k in shared for k in after)
        common_before = any(s.key in shared for s in before)
        if common_after or common_before or _in_step(here, there, step):
            return step
    return None


def _put_back(path: Path, step: Step) -> bool:
    """True where what was put in an order is picked by the inverse of it later, or written to the numbers in it."""
    for node in path.nodes:
        if node.op not in (*PICKS, *WRITES):
            continue
        for index in (n for item in (*node.inputs[1:], *node.options.values()) for n in parts(item)):
            if (node.op in WRITES and index is step.index) or _inverse(index, step.index):
                return True
    return False


def _inverse(index: Value, order: Value) -> bool:
    """True for the order of an order, or numbers that were written by it: ``back[order] = arange(n)``."""
    for node in ancestors(index, through=lambda n: n.op in CASTS | INVERTS or n.op == "part"):
        given = ancestors(node.inputs, through=lambda n: n.op in CASTS) if node.op in INVERTS else ()
        if any(n is order for n in given):
            return True
    return False


CASTS = frozenset("to cpu cuda long int clone detach numpy tolist tensor as_tensor contiguous view reshape".split())
INVERTS = frozenset(["argsort", "sort", "setitem", "scatter"])
PICKS = frozenset(["getitem", "index_select", "gather", "take_along_dim"])
WRITES = frozenset(["setitem", "scatter", "index_copy", "index_put"])


def _in_step(here: list[Path], there: list[Path], step: Step) -> bool:
    """True where one loop takes parts of an order for ``here`` and, one after the other, parts of ``there``."""
    numbers = [n.inputs[1] for p in here for n in p.nodes if n.op == "getitem" and len(n.inputs) > 1]
    taken = {id(n.place[0]) for n in numbers if _part_of_split(n) and n.inputs[0] is step.index and n.place is not None}
    return bool(taken) and all(
        any(_part_of_split(n) and n.place is not None and id(n.place[0]) in taken for n in p.nodes) for p in there
    )


def _part_of_split(node: object) -> TypeGuard[Node]:
    if not isinstance(node, Node) or node.op != "element" or not node.inputs:
        return False
    return isinstance(node.inputs[0], Node) and node.inputs[0].op in ("split", "chunk", "tensor_split", "array_split")


def _orders(step: Step) -> bool:
    if not isinstance(step.index, Node):
        return False
    return any(n.op in ORDERS for n in islice(ancestors(step.index, through=carries), 12))


def _whole(step: Step) -> bool:
    """True for the number of one element."""
    return isinstance(step.index, Node) and step.index.op == "index"


def paired(one: Path, other: Path) -> bool:
    """True where two arrays were made together: in one call, or as parts of one value."""
    if one.root.stack == other.root.stack:
        return True
    depth = min(len(one.root.stack), len(other.root.stack))
    return depth > 0 and one.root.stack[:depth] == other.root.stack[:depth]
