"""Labels that stand for no class: the evaluation leaves them out, and the loss counts them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.pattern import pattern
from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Items, Node, Obj, Place, Value
from trainwreck.code.rehearsal.graph import ancestors, near, parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.classes import DEFAULT
from trainwreck.code.rehearsal.questions.monotone import judged
from trainwreck.code.rehearsal.questions.pixels import CONVOLUTIONS, written
from trainwreck.code.rehearsal.questions.roles import STRUCTURE, core, given, loss_place, losses, users
from trainwreck.code.rehearsal.reshaping import MASKS

VOID = pattern(
    r"(?<![a-z])(pad|padding|ignored?|void|unlabell?ed|dont_?care|no_?label|invalid|missing)(?![a-hj-z])",
    re.IGNORECASE,
)
"""Names of labels that stand where there is nothing to learn."""
CLASS = pattern(
    r"(?<![a-z])(bg|background|others?|outside|none|empty|no_?relation|negative|blank)(?![a-z])", re.IGNORECASE
)
"""Names of labels that scores often leave out, and that are learned all the same."""
FILLS = frozenset(["at", "index_add_", "scatter_add_", "index_put_", "put_"])
"""What counts in place (``np.add.at``)."""
COUNTS = FILLS | frozenset(
    "bincount histc histogram2d confusion_matrix index_add scatter_add index_put setitem".split()
)
"""What fills a table of how often one class is taken for another."""
KEEPS = frozenset("add view reshape float double to long zeros loaded tensor".split())
TESTS = frozenset(["eq", "ne", "lt", "ge"])
SCORES = frozenset(["softmax", "log_softmax", "sigmoid"])
STEPS = 5
"""Values that lie between a mask and the predictions that it is used with."""


def void_pixels(run: Rehearsing) -> Iterator[Answer]:
    """Of the classes of pixels, points and whole samples."""
    for answer, scores in _counted(run):
        if not _of_tokens(scores):
            yield answer


def void_tokens(run: Rehearsing) -> Iterator[Answer]:
    """Of what is told for each token of a text."""
    for answer, scores in _counted(run):
        if _of_tokens(scores):
            yield answer


def _of_tokens(scores: Node) -> bool:
    if any(n.op in CONVOLUTIONS for n in near(scores, 6)):
        return False
    return any(n.op == "embedding" for n in ancestors(scores, through=lambda n: n.op not in ("param", "batch")))


def _counted(run: Rehearsing) -> Iterator[tuple[Answer, Node]]:
    told: set[int] = set()
    left_out = None
    for loss in losses(run, "cross_entropy", "nll_loss"):
        scores, target = given(loss, "input", 0), given(loss, "target", 1)
        place = loss_place(loss)
        if not isinstance(scores, Node) or not isinstance(target, Node) or place is None or id(place[0]) in told:
            continue
        if (
            _option(loss, "reduction", "mean") not in ("mean", "sum")
            or _option(loss, "ignore_index", DEFAULT) != DEFAULT
        ):
            continue
        left_out = list(_left_out(run)) if left_out is None else left_out
        if not left_out or judged_whole(run):
            return
        numbers = {n for n, _ in written(target)}
        for number, labels, where, name in left_out:
            named = bool(VOID.search(name))
            if CLASS.search(name) or number < 0 or not (named or number):
                continue
            if number not in numbers and not (named and _alike(labels, target)):
                continue
            if _told_apart(run, number) or _tested(number, scores, target) or not _weighs(loss, number):
                continue
            told.add(id(place[0]))
            text = f"the evaluation leaves out the label {number}, which stands for no class, and this loss counts it"
            yield Answer(place, text, (where,)), scores
            break


def _option(loss: Node, name: str, default: Value) -> Value:
    own = loss.owner.options.get(name, default) if loss.owner is not None else default
    return loss.options.get(name, own)


def _weighs(loss: Node, number: int) -> bool:
    """False where a weight of zero takes the label out, or weights are not known."""
    weight = _option(loss, "weight", None)
    if weight is None:
        return True
    held = weight.inputs[0] if isinstance(weight, Node) and weight.op in ("tensor", "as_tensor") else None
    listed = held.items if isinstance(held, Items) else held
    if not isinstance(listed, tuple | list) or not 0 <= number < len(listed):
        return False
    return isinstance(listed[number], int | float) and listed[number] != 0


def _tested(number: int, *values: Node) -> bool:
    """True where what the loss is given was chosen, or replaced, by a test for the label."""
    behind = ancestors(values, through=lambda n: n.op != "param")
    return any(n.op in TESTS and any(i is not True and i == number for i in n.inputs[1:2]) for n in behind)


def _left_out(run: Rehearsing) -> Iterator[tuple[int, Node, Place, str]]:
    """(the label, all labels, where, what the program calls it) of what evaluations pass over."""
    for node in run.nodes:
        if node.grad or node.place is None:
            continue
        number, labels = _slice(run, node) or _mask(run, node) or _given_so(node) or (None, None)
        if number is not None and labels is not None:
            place = (
                node.place if "ignore_index" in node.options or node.owner is None else node.owner.place or node.place
            )
            yield number, labels, node.place, " ".join(_names(place))


def _slice(run: Rehearsing, node: Node) -> tuple[int, Node] | None:
    """``table[:n]`` of a table of counts, true classes along an axis: rows of the last class are cut off."""
    base = node.inputs[0] if node.op == "getitem" and len(node.inputs) > 1 else None
    if not isinstance(base, Node) or base.shape.open or len(base.shape.dims) != 2:
        return None
    index = node.inputs[1][0] if isinstance(node.inputs[1], tuple) else node.inputs[1]
    end = index.args[1] if isinstance(index, Obj) and index.kind == "builtins.slice" and len(index.args) > 1 else None
    count = base.shape.dims[0]
    if index is None or type(end) is not int or index.args[0] not in (None, 0) or count not in (None, end + 1):
        return None
    queue, seen = [base], set[int]()
    while queue and len(seen) < 40:
        at = queue.pop()
        if id(at) in seen:
            continue
        seen.add(id(at))
        if at.op in COUNTS:
            compared = [n for n in near(at, 40) if n.op == "batch" or n.op in ("element", "getitem")]
            return (end, compared[0]) if compared else (end, at)
        if at.op in KEEPS or at.op in STRUCTURE:
            queue += [n for i in at.inputs for n in parts(i)]
            queue += [u for u in users(run).get(id(at), ()) if u.op in FILLS and u.inputs and u.inputs[0] is at]
    return None


def _mask(run: Rehearsing, node: Node) -> tuple[int, Node] | None:
    """``labels != n`` where predictions are judged."""
    if node.op not in TESTS or len(node.inputs) < 2 or not isinstance(node.inputs[0], Node):
        return None
    labels, number = node.inputs[:2]
    if type(number) is not int or not core(labels) or any(n.op == "param" for n in near(labels, 60)):
        return None
    after = users(run).get(id(node), ())
    if node.op in ("eq", "ge"):
        after = [u for a in after if a.op in ("invert", "logical_not") for u in users(run).get(id(a), ())]
    if not any(_judges(run, u, node) for u in after):
        return None
    return number, labels


def _told_apart(run: Rehearsing, number: int) -> bool:
    """True where the hits on this very label are counted as well, or its score is looked at: it is a class."""
    scored = (n for n in run.nodes if n.op == "getitem" and not n.grad and _last(n) == number)
    if any(n.op in SCORES for s in scored for n in near(s, 4)):
        return True
    return any(
        n.op == "eq"
        and not n.grad
        and n.inputs[1:2] == (number,)
        and isinstance(n.inputs[0], Node)
        and not judged(n.inputs[0])
        and any(u.op not in ("invert", "logical_not") and _judges(run, u, n) for u in users(run).get(id(n), ()))
        for n in run.nodes
    )


def _last(node: Node) -> Value:
    index = node.inputs[1] if len(node.inputs) > 1 else None
    return index[-1] if isinstance(index, tuple) and index else None


def judged_whole(run: Rehearsing) -> bool:
    """True where all predictions and labels are compared for a mean: none is left out."""
    for node in run.nodes:
        sides = [i for i in node.inputs[:2] if isinstance(i, Node)] if node.op == "eq" and not node.grad else []
        if len(sides) != 2 or judged(sides[0]) is judged(sides[1]):
            continue
        if any(_picked(n) for s in sides for n in near(s, 4)):
            continue
        queue, steps = [node], 0
        while queue and steps < 2 * STEPS:
            at, steps = queue.pop(0), steps + 1
            after = [u for u in users(run).get(id(at), ()) if u.inputs and u.inputs[0] is at and not _picked(u)]
            if any(u.op in ("mean", "sum") for u in after):
                return True
            queue += [u for u in after if u.op in STRUCTURE]
    return False


def _picked(node: Node) -> bool:
    """True for elements that an array of the program chooses."""
    index = node.inputs[1] if node.op in ("getitem", "masked_select") and len(node.inputs) > 1 else None
    return any(n.op in MASKS for n in parts(index))


def _judges(run: Rehearsing, user: Node, mask: Node) -> bool:
    """True where something that a network told is picked, or counted, with the mask."""
    queue = [(user, mask)]
    for _ in range(STEPS):
        if not queue:
            return False
        at, before = queue.pop(0)
        if at.grad:
            return False
        rest = [i for i in at.inputs if i is not before]
        if any(n.op == "param" for n in ancestors(tuple(rest))):
            return True
        queue += [(u, at) for u in users(run).get(id(at), ())]
    return False


def _given_so(node: Node) -> tuple[int, Node] | None:
    """A figure that is told which label to ignore."""
    own = node.owner.options.get("ignore_index") if node.owner is not None else None
    number = node.options.get("ignore_index", own)
    if type(number) is not int or number == DEFAULT:
        return None
    sides = [i for i in node.inputs[:3] if isinstance(i, Node)]
    told = [any(n.op == "param" for n in ancestors(s)) for s in sides]
    return (number, sides[told.index(False)]) if len(sides) == 2 and any(told) and not all(told) else None


def _alike(labels: Node, target: Node) -> bool:
    """True for labels that come from data sets of one class."""
    kinds = [{id(k) for n in near(v, 40) if (k := _kind(n)) is not None} for v in (labels, target)]
    return bool(kinds[0] & kinds[1])


def _kind(node: Node) -> object | None:
    dataset = node.owner.get("dataset", 0) if node.op == "batch" and node.owner is not None else None
    return dataset.cls if isinstance(dataset, Obj) else None


def _names(place: Place) -> list[str]:
    """The names that the label is written with: of a figure what it is told to ignore, of a part its index."""
    at: ast.AST = place[0]
    if isinstance(at, ast.Call):
        at = next((k.value for k in at.keywords if k.arg == "ignore_index"), at)
    elif isinstance(at, ast.Subscript):
        at = at.slice
    found = [n for n in ast.walk(at) if isinstance(n, ast.Name | ast.Attribute)]
    return [n.id if isinstance(n, ast.Name) else n.attr for n in found]


__all__ = ["judged_whole", "void_pixels", "void_tokens"]
