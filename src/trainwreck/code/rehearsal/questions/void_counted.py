"""A label of no class, which the loss passes over: does it reach the loss, and do the scores leave it out?"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Value
from trainwreck.code.rehearsal.graph import ancestors, near
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.monotone import judged
from trainwreck.code.rehearsal.questions.roles import bounds, given, losses, users

CHOICES = frozenset(["argmax", "max", "topk"])
CUTS = frozenset(["clamp", "clip", "clamp_max", "minimum"])
TESTS = frozenset(["eq", "ne", "lt", "le", "gt", "ge", "isin"])
WRITES = frozenset(["setitem", "where", "masked_fill", "full", "full_like", "fill"])
FEW = 12


def void_scored(run: Rehearsing) -> Iterator[Answer]:
    """A share of hits over all places, also those whose label the loss is told to pass over.

    Said of a label beyond the classes, which no choice can hit, in programs that ask no label for it anywhere."""
    for _, number, scores, _ in passed_over(run):
        classes = scores.shape.dim(1) if not scores.shape.open and len(scores.shape.dims) > 1 else None
        if classes is None or 0 <= number < classes or _asked_for(run, number):
            continue
        for node in run.nodes:
            if node.op != "eq" or node.grad or len(node.inputs) < 2 or node.place is None:
                continue
            sides = [isinstance(i, Node) and judged(i) and _choice(i) for i in node.inputs[:2]]
            if sides[0] == sides[1]:
                continue
            truth = node.inputs[sides[0]]
            if isinstance(truth, Node) and truth.op in ("getitem", "masked_select") and _tested(truth):
                continue  # some were picked by what their label is
            place = _over_all(run, node, truth)
            if isinstance(truth, Node) and _occurs(truth, number) and place is not None and place.place is not None:
                text = f"places with the label {number}, which the loss passes over, are counted as misses here"
                yield Answer(place.place, text, (node.place,))
                return


def void_lost(run: Rehearsing) -> Iterator[Answer]:
    """Labels are cut to the highest class before a loss that is to pass over a higher one."""
    for _, number, _, target in passed_over(run):
        if number < 0 or bounds(target).high >= number:
            continue
        cut = next((n for n in ancestors(target) if n.op in CUTS and bounds(n).high < number), None)
        first = cut.inputs[0] if cut is not None and cut.inputs else None
        known = cut is not None and isinstance(first, Node) and _occurs(first, number) and not _asked_for(run, number)
        if known and cut is not None and cut.place is not None:
            text = f"the label {number} becomes that of a class here, and the loss no longer passes over it"
            yield Answer(cut.place, text)
            return


def passed_over(run: Rehearsing) -> Iterator[tuple[Node, int, Node, Node]]:
    """Losses, the label that each is told to pass over, its scores and its labels."""
    for loss in losses(run, "cross_entropy", "nll_loss"):
        own = loss.owner.options.get("ignore_index") if loss.owner is not None else None
        number, scores, target = (
            loss.options.get("ignore_index", own),
            given(loss, "input", 0),
            given(loss, "target", 1),
        )
        if type(number) is int and isinstance(scores, Node) and isinstance(target, Node):
            yield loss, number, scores, target


def _choice(value: Node) -> bool:
    return any(n.op in CHOICES for n in near(value, FEW))


def _occurs(truth: Node, number: int) -> bool:
    """True where the program itself writes the label among the others."""
    return any(n.op in WRITES and any(type(i) is int and i == number for i in n.inputs[1:]) for n in ancestors(truth))


def _asked_for(run: Rehearsing, number: int) -> bool:
    """True where some value is compared with the label, or with what only lies beside it."""
    return any(
        n.op in TESTS and not n.grad and any(type(i) is int and abs(i - number) <= 1 for i in n.inputs[1:2])
        for n in run.nodes
    ) or any(n.op == "isin" for n in run.nodes)


def _tested(picked: Node) -> bool:
    index = picked.inputs[1] if len(picked.inputs) > 1 else None
    return any(n.op in TESTS or n.op in ("and", "invert") for n in near(index, 4))


def _over_all(run: Rehearsing, hits: Node, truth: Value) -> Node | None:
    """What divides by all places: the mean of the hits, or the number of labels beside their sum."""
    table = users(run)
    queue, seen = [hits], {id(hits)}
    summed = False
    while queue and len(seen) < FEW:
        for user in table.get(id(queue.pop()), ()):
            if user.op == "mean" and len(user.inputs) == 1 and not user.options:
                return user
            summed = summed or user.op == "sum"
            if user.op in ("float", "double", "to") and id(user) not in seen:
                seen.add(id(user))
                queue.append(user)
    if not summed:
        return None
    return next((u for u in table.get(id(truth), ()) if u.op == "numel" and u.turns == hits.turns), None)


__all__ = ["passed_over", "void_lost", "void_scored"]
