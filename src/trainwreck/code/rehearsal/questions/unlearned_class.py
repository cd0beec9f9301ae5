"""A class that the loss passes over, and that the evaluation counts like any other."""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Items, Node, Obj, Value, candidates
from trainwreck.code.rehearsal.graph import ancestors, near
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.classes import span
from trainwreck.code.rehearsal.questions.monotone import judged
from trainwreck.code.rehearsal.questions.pixels import CONVOLUTIONS
from trainwreck.code.rehearsal.questions.roles import behind, loss_place, unknown, users
from trainwreck.code.rehearsal.questions.void_counted import passed_over
from trainwreck.code.rehearsal.questions.void_labels import judged_whole

PIXELS = 3
"""Axes of a map of scores without the batch or the width: fewer are no pixels."""
TABLES = frozenset(["bincount", "histc", "histogram2d", "confusion_matrix"])
CHOICES = frozenset(["argmax", "max"])
FEW = 12
MOST = 32
"""Classes: of more, one is hardly missed, and the labels are words of a text."""


def class_passed_over(run: Rehearsing) -> Iterator[Answer]:
    """``ignore_index=0`` where 0 is a class that the network has an output for and that the scores count: no pixel of
    it is ever taught.

    Not meant: a label that the evaluation leaves out too, in any way that is seen."""
    for loss, number, scores, _ in passed_over(run):
        if number < 0:
            continue
        classes = scores.shape.dim(1) if not scores.shape.open and len(scores.shape.dims) >= PIXELS else None
        pixels = any(n.op in CONVOLUTIONS for n in near(scores, FEW))
        if not pixels or classes is None or number >= classes or loss.place is None or _left_out(run, number):
            continue
        counted = next((n for n in run.nodes if not n.grad and _counts(n, number)), None)
        if counted is None and judged_whole(run):
            counted = next((n for n in run.nodes if not n.grad and _counts_all(n)), None)
        if counted is not None and counted.place is not None:
            text = (
                f"this loss passes over all pixels of class {number}, which the network tells and the evaluation counts"
            )
            yield Answer(loss.place, text, (counted.place,))
            return


def label_passed_over(run: Rehearsing) -> Iterator[Answer]:
    """``ignore_index`` is the number of a class that is known to occur among the labels (the number of a token that
    fills short texts, given to a loss over classes): no sample of it is ever taught."""
    for loss, number, scores, target in passed_over(run):
        classes = scores.shape.dim(1) if not scores.shape.open and len(scores.shape.dims) > 1 else None
        reach, place = span(target), loss_place(loss)
        if classes is None or classes > MOST or reach != (0, classes - 1) or not 0 <= number < classes or place is None:
            continue
        if judged_whole(run) and not _left_out(run, number, target):
            text = f"this loss passes over all samples of class {number}, which occurs among the labels (0 to "
            text += f"{classes - 1}) and which the evaluation counts"
            yield Answer(place, text, (loss.place,) if loss.place is not None else ())
            return


def sample_passed_over(run: Rehearsing) -> Iterator[Answer]:
    """Samples with one label each, of which nothing is padded, and ``ignore_index`` is the number of an output: this
    class is never taught."""
    for loss, number, scores, target in passed_over(run):
        classes = scores.shape.dims[1] if not scores.shape.open and len(scores.shape.dims) == SAMPLES else None
        place = loss_place(loss)
        if classes is None or classes > MOST or not 0 <= number < classes or place is None:
            continue
        if not _one_for_each(scores) or not _one_for_each(target) or any(n.op in PADS for n in near(target, MOST)):
            continue
        if judged_whole(run) and not _left_out(run, number, target):
            text = f"this loss passes over all samples of class {number}: each has one label, and none is padding"
            yield Answer(place, text, (loss.place,) if loss.place is not None else ())
            return


def filled_with_a_label(run: Rehearsing) -> Iterator[Answer]:
    """Labels of words are brought to one length with the number of a label that occurs among them, and the loss passes
    over that number: this label is never taught."""
    for loss, number, _, target in passed_over(run):
        place = loss_place(loss)
        for pad in (n for n in ancestors(target, through=_arranged) if n.op == "pad_sequence"):
            made = (n for n in ancestors(pad) if n.op in ("tensor", "as_tensor", "LongTensor"))
            if place is None or pad.get("padding_value", 2, 0) != number:
                continue
            if number >= 0 and any(number in _written_numbers(n) for n in made):
                text = f"this loss passes over {number}, which stands for the padding and for one of the labels"
                yield Answer(place, text, (pad.place,) if pad.place is not None else ())
                return


def _arranged(node: Node) -> bool:
    return _handed_on(node) and node.op != "pad_sequence"


def _written_numbers(node: Node) -> set[int]:
    """The whole numbers that a tensor is surely made of, or may be where branches met."""
    held = node.inputs[0] if node.inputs else None
    items = held.items if isinstance(held, Items) else held if isinstance(held, tuple) else ()
    found = [c for item in items for c in candidates(item)]
    return {c for c in found if isinstance(c, int) and not isinstance(c, bool)}


SAMPLES = 2
"""Axes of scores of whole samples: one row each."""
PADS = frozenset(["pad_sequence", "pad", "full", "full_like", "new_full", "masked_fill", "where", "setitem"])
FLAT = frozenset(["view", "reshape", "flatten", "masked_select", "unbind", "split", "chunk", "permute", "transpose"])


def _one_for_each(value: Node) -> bool:
    """True where the rows are those of the samples: nothing was strung together, or chosen, on the way."""
    for node in ancestors(value, through=lambda n: behind(n) is not None or n.op in ("batch", "element")):
        index = node.inputs[1] if node.op == "getitem" and len(node.inputs) > 1 else None
        masked = isinstance(index, Node) and index.op in ("eq", "ne", "gt", "lt", "ge", "le", "not", "invert", "and")
        if node.op in FLAT or masked or (isinstance(index, tuple) and value is not node and not node.grad):
            return False
        if isinstance(index, tuple) and any(isinstance(i, Node) for i in index):
            return False
    return True


def _of(labels: Node | None, value: Node) -> bool:
    """True where ``value`` may be taken from what ``labels`` are taken from."""
    if labels is None:
        return True
    made = {id(n.place[0]) for n in _first(labels) if n.place is not None}
    return any(unknown(n) or n.place is None or id(n.place[0]) in made for n in _first(value))


def _first(value: Node) -> list[Node]:
    """What the data are that ``value`` is only selected from; a batch of a loader of which nothing is known too."""
    seen = list(ancestors(value, through=_handed_on))
    return [n for n in seen if not _handed_on(n) or not n.inputs]


def _handed_on(node: Node) -> bool:
    return node.op in ("batch", "element") or behind(node) is not None


def _choice(value: Value) -> bool:
    """True for the class that a network chose for each pixel."""
    return isinstance(value, Node) and any(n.op in CHOICES and judged(n) for n in near(value, FEW))


def _counts(node: Node, number: int) -> bool:
    """A table of how often each class is taken for another, hits of this very class, or the share of all hits."""
    if node.op in TABLES:
        seen = list(ancestors(node))
        labels = any(n.op in ("batch", "element", "getitem") and not judged(n) for n in seen)
        return labels and any(n.op in CHOICES and judged(n) for n in seen)
    if node.op != "eq" or len(node.inputs) < 2:
        return False
    if node.inputs[1] is not True and node.inputs[1] == number and type(node.inputs[1]) is int:
        return _choice(node.inputs[0])
    return False


def _left_out(run: Rehearsing, number: int, labels: Node | None = None) -> bool:
    """True where labels (any values, where it isn't said which) are asked for everything but this one, or its figures
    are cut off."""
    for node in run.nodes:
        if node.grad or len(node.inputs) < 2:
            continue
        first, second = node.inputs[:2]
        if type(second) is int and isinstance(first, Node) and _of(labels, first):
            apart = node.op == "ne" and second == number
            above = number == 0 and (node.op, second) in (("gt", 0), ("ge", 1))
            alone = node.op == "eq" and second == number and not _choice(first) and not _beside(run, node, number)
            if apart or above or alone:
                return True
        if node.op == "getitem" and _cuts(second, number) and any(_counts_all(n) for n in near(first, 4 * FEW)):
            return True
    return False


def _beside(run: Rehearsing, test: Node, number: int) -> bool:
    """True where hits are counted with the test: the choices are held against the same number."""
    return any(
        any(isinstance(i, Node) and any(_counts(n, number) for n in near(i, 4)) for i in user.inputs)
        for user in users(run).get(id(test), ())
    )


def _counts_all(node: Node) -> bool:
    return node.op in TABLES or (node.op == "eq" and any(_choice(i) for i in node.inputs[:2]))


def _cuts(index: Value, number: int) -> bool:
    """True for ``[1:]`` and ``[[1, 2]]``: some classes alone."""
    items = index if isinstance(index, tuple) else (index,)
    for item in items:
        if isinstance(item, Obj) and item.kind == "builtins.slice" and item.args[0] not in (None, 0):
            return True
        if isinstance(item, Obj) and item.kind == "builtins.slice" and item.args[1] in (number, -1):
            return True
        if isinstance(item, Items) or (isinstance(item, Node) and item.op not in ("counter", "element")):
            return True
    return False
