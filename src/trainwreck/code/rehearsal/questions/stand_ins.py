"""Labels without a class that get a stand-in before the loss: are their places left out of the mean afterwards?"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Value
from trainwreck.code.rehearsal.graph import ancestors, near
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.pixels import CONVOLUTIONS
from trainwreck.code.rehearsal.questions.roles import STRUCTURE, core, given, trained, users

EACH = frozenset(["cross_entropy", "nll_loss", "gather", "take_along_dim"])
"""What gives a number for each label (losses with ``reduction="none"``)."""
NOTHING = frozenset(["zeros_like", "zeros", "new_zeros"])
VOID = 255
"""The number of pixels without a class in most palettes; all others of that kind are negative."""


def pixels_counted(run: Rehearsing) -> Iterator[Answer]:
    """Of the classes of pixels."""
    for answer, loss in _counted(run):
        if any(n.op in CONVOLUTIONS for n in core(loss.inputs[0])):
            yield answer


def tokens_counted(run: Rehearsing) -> Iterator[Answer]:
    """Of anything else."""
    for answer, loss in _counted(run):
        if not any(n.op in CONVOLUTIONS for n in core(loss.inputs[0])):
            yield answer


def _counted(run: Rehearsing) -> Iterator[tuple[Answer, Node]]:
    """Means over losses of single labels, some of which stand for no class, and no mask takes those out."""
    for node in trained(run):
        if node.op not in EACH or not node.inputs or not isinstance(node.inputs[0], Node):
            continue
        if node.op in ("cross_entropy", "nll_loss"):
            if _reduction(node) != "none":
                continue
            labels = given(node, "target", 1)
        else:
            labels = node.options.get("index", node.inputs[2 if node.op == "gather" else 1 : 3][:1])
            labels = labels[0] if isinstance(labels, tuple) and labels else labels
            if not any(n.op in ("log_softmax", "log") for n in core(node.inputs[0])):
                continue
        swap = _stand_in(labels)
        if swap is None:
            continue
        number, where, original = swap
        if number == VOID and node.op != "gather" and _at_once(run, where):
            continue  # pixels without a class are taken for the first one, on purpose
        if _ignored(node) == 0:
            continue
        mean = _plain_mean(run, node, {id(n) for n in core(original)})
        if mean is not None and mean.place is not None:
            text = f"labels of {number} got a stand-in, and their losses are counted: no mask takes them out"
            yield Answer(mean.place, text, (where.place,) if where.place is not None else ()), node
            return


def _at_once(run: Rehearsing, where: Node) -> bool:
    """True where the test for such labels is written in the statement that replaces them: nothing else is to use it."""
    if where.place is None or where.op not in ("where", "masked_fill", "setitem"):
        return False
    tests = [n for n in near(where, 6) if n.op in ("eq", "ne") and n.place is not None and VOID in n.inputs[1:]]
    here = run.project.statement(*where.place)
    return bool(tests) and all(n.place is not None and run.project.statement(*n.place) is here for n in tests)


def _reduction(loss: Node) -> Value:
    own = loss.owner.options.get("reduction", "mean") if loss.owner is not None else "mean"
    return loss.options.get("reduction", own)


def _ignored(loss: Node) -> Value:
    own = loss.owner.options.get("ignore_index") if loss.owner is not None else None
    return loss.options.get("ignore_index", own)


def _stand_in(labels: Value) -> tuple[int, Node, Value] | None:
    """(the number that stands for no class, where it is replaced by a class, the labels before)."""
    at = labels
    for _ in range(12):
        if not isinstance(at, Node) or not at.inputs:
            return None
        mask: Value = None
        fill: Value = None
        kept: Value = at.inputs[0]
        if at.op == "masked_fill" and len(at.inputs) > 2:
            mask, fill = at.inputs[1], at.inputs[2]
        elif at.op == "where" and len(at.inputs) > 2:
            mask = at.inputs[0]
            if isinstance(mask, Node) and core(mask) and mask.op not in ("eq", "ne", "ge", "lt", "and", "invert"):
                mask, kept, fill = at.inputs[1], at.inputs[0], at.inputs[2]  # labels.where(mask, other)
            else:
                sides = at.inputs[1:3]
                fill = next((s for s in sides if _is_class(s)), None)
                kept = next((s for s in sides if s is not fill), None)
        elif at.op == "setitem" and len(at.inputs) > 2:
            fill, mask = at.inputs[1], at.inputs[2]
        elif at.op in ("clamp", "clamp_min") and _lowest(at) == 0:
            tested = [n for n in near(kept, 30) if n.op in ("masked_fill", "setitem", "where", "full", "full_like")]
            low = [i for n in tested for i in n.inputs if type(i) is int and i < 0]
            return (low[0], at, kept) if low else None
        if _is_class(fill) and isinstance(kept, Node):
            number = next((n for n in _tested(mask, kept)), None)
            return None if number is None else (number, at, kept)
        if at.op not in STRUCTURE and at.op not in ("long", "int"):
            return None
        at = at.inputs[0]
    return None


def _lowest(node: Node) -> Value:
    rest = node.inputs[1 : len(node.inputs) - len(node.options)]
    return node.options.get("min", rest[0] if rest else None)


def _is_class(value: Value) -> bool:
    return (type(value) is int and value >= 0) or (isinstance(value, Node) and value.op in NOTHING)


def _tested(mask: Value, labels: Value) -> Iterator[int]:
    """The numbers that no class has, which a mask looks for in the labels."""
    mine = {id(n) for n in core(labels)}
    for node in near(mask, 10):
        if node.op in ("eq", "ne") and len(node.inputs) == 2 and mine & {id(n) for n in core(node.inputs[0])}:
            number = node.inputs[1]
            if type(number) is int and (number < 0 or number == VOID):
                yield number


def _plain_mean(run: Rehearsing, loss: Node, labels: set[int]) -> Node | None:
    """The mean or sum that the single losses go into without anything that the labels decide; None where it is
    another way round, or can't be followed."""
    at = loss
    table = users(run)
    for _ in range(12):
        after = [u for u in table.get(id(at), ()) if u.grad]
        if len(after) != 1:
            return None
        at = after[0]
        beside = [i for i in (*at.inputs, *at.options.values()) if isinstance(i, Node) and i is not loss and not i.grad]
        if any(id(n) in labels for b in beside for n in ancestors(b)):
            return None
        if at.op in ("mean", "sum") and not at.shape.open and not at.shape.dims:
            return at if at.op == "mean" else None
        if at.op not in STRUCTURE and at.op not in ("neg", "mul", "div"):
            return None
        if at.op == "getitem" or any(n.op in ("batch", "argument", "call") for b in beside for n in near(b, 8)):
            return None
    return None
