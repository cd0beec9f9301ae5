"""Rankings and areas below curves: is what they are worked out from a score, or a decision that was made of it?

A decision has two values: a curve of it has one point, and most pairs are ties.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Items, Node, Obj, Value
from trainwreck.code.rehearsal.graph import ancestors, near, parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.roles import JOINS, STRUCTURE, behind, core, given, users

RANKS = frozenset(["argsort", "sort", "rankdata", "searchsorted", "argpartition"])
HARD = frozenset(["gt", "ge", "lt", "le", "eq", "round", "compare"])
ORDERS = frozenset(["gt", "ge", "lt", "le"])
AREAS = frozenset(
    """roc_auc_score average_precision_score roc_curve precision_recall_curve det_curve log_loss auroc binary_auroc
    average_precision binary_average_precision roc binary_roc binary_precision_recall_curve""".split()
)
METERS = frozenset(["AUROC", "BinaryAUROC", "AveragePrecision", "BinaryAveragePrecision", "ROC", "BinaryROC"])
MEASURES = ("sklearn", "torchmetrics")
LEVELS = frozenset(["linspace", "unique", "arange", "geomspace", "logspace", "quantile"])
"""What gives the thresholds of a curve, one after the other."""
SAME = frozenset(
    """float long int astype numpy cpu detach to squeeze view reshape double item flatten tensor asarray array
    as_tensor from_numpy ascontiguousarray ravel tolist clone type half unsqueeze element""".split()
)
CHOSEN = 3
"""Arguments of ``where`` with what is taken if the test holds, and if it doesn't."""
PICKS = frozenset(["getitem", "gather", "index_select", "take_along_dim", "take_along_axis"])
MAX_CHAIN = 24


def ranked_labels(run: Rehearsing) -> Iterator[Answer]:
    """Hard decisions of a network that are put in order, or given to a measure that needs scores."""
    told: set[int] = set()
    for node in run.nodes:
        if node.grad or not node.inputs:
            continue
        for value, strictly in _ranked(node):
            found = decision(value, classes=strictly)
            if found is None or found.place is None or id(found.place[0]) in told:
                continue
            if node.op in RANKS and _moves_to_front(run, node, found):
                continue
            right = found.op == "eq" and all(isinstance(i, Node) for i in found.inputs[:2])  # is it the label?
            if not right and any(n.op == "param" for n in ancestors(found)):
                told.add(id(found.place[0]))
                text = "hard decisions are ranked: the scores before the threshold are meant"
                yield Answer(found.place, text, (node.place,) if node.place is not None else ())


def _ranked(node: Node) -> Iterator[tuple[Value, bool]]:
    """What an operation takes for scores, and whether a number of a class is none either."""
    first = node.inputs[0]
    if node.op in RANKS:
        yield first, False
    elif node.op in AREAS and node.full.startswith(MEASURES):
        yield (given(node, "y_score", 1) or given(node, "y_pred", 1) or node.options.get("probas_pred")
               if node.full.startswith("sklearn") else given(node, "preds", 0)), True  # fmt: skip
    elif node.op in ("update", "call", "forward") and isinstance(first, Obj) and first.name in METERS:
        if first.kind.startswith(MEASURES) and len(node.inputs) > 1:
            yield node.inputs[1], True
    elif node.op == "getitem" and len(node.inputs) > 1:
        yield _mid_ranks(*node.inputs[:2]), False
    elif node.op in ORDERS and len(node.inputs) > 1:
        yield from ((value, False) for value in _compared(*node.inputs[:2]))


def _moves_to_front(run: Rehearsing, order: Node, decided: Node) -> bool:
    """True for a sort that is asked to leave equal ones as they stand, and for one by which nothing is picked but what
    was decided about (the tokens that are kept): no ranking."""
    if order.options.get("stable") is True or order.options.get("kind") in ("stable", "mergesort"):
        return True
    taught = _learned(decided)
    known = {
        id(n) for n in ancestors(decided, through=lambda n: id(n) in taught or n.op in SAME or behind(n) is not None)
    }
    picks, queue = [], [order]
    for _ in range(MAX_CHAIN):
        if not queue:
            break
        at = queue.pop()
        for user in users(run).get(id(at), ()):
            if user.op in PICKS and user.inputs[0] is not at:
                picks.append(user.inputs[0])
            elif user.op in SAME or user.op in STRUCTURE or user.op == "part":
                queue.append(user)
            else:
                return False
    return bool(picks) and all(any(id(n) in known for n in core(p)) for p in picks)


def _learned(value: Node) -> set[int]:
    """``id`` of what parameters stand behind, among ``value`` and what it was made of: not what the inputs of a network
    were made of, which may be the labels."""
    found: set[int] = set()
    for node in sorted(ancestors(value), key=lambda n: n.serial):
        if node.op == "param" or any(id(i) in found for item in node.inputs for i in parts(item)):
            found.add(id(node))
    return found


def _mid_ranks(base: Value, index: Value) -> Value:
    """What ``unique`` was asked of, whose running counts are spread over the values again: mean ranks."""
    if not isinstance(index, Node) or index.op not in (*SAME, "part") or not isinstance(base, Node):
        return None
    inverse = _part(index)
    counted = [n for n in near(base, MAX_CHAIN) if n.op == "cumsum"]
    known = inverse is not None and any(_part(i) is inverse for n in counted for i in n.inputs[:1])
    return inverse.inputs[0] if known and inverse is not None else None


def _part(value: Value) -> Node | None:
    """The ``unique`` that a value is one result of."""
    for _ in range(4):
        if isinstance(value, Node) and value.op in SAME and value.inputs:
            value = value.inputs[0]
    whole = value.inputs[0] if isinstance(value, Node) and value.op == "part" else None
    return whole if isinstance(whole, Node) and whole.op == "unique" and whole.inputs else None


def _compared(one: Value, other: Value) -> Iterator[Value]:
    """Values of which some are compared with others (positives with negatives), or all with the levels of a curve."""
    mine, its = decision(one, selected=True), decision(other, selected=True)
    if mine is not None and mine is its and one is not other:
        yield mine
    for value, level in ((one, other), (other, one)):
        if decision(value) is not None and _levels(level):
            yield value


def _levels(value: Value) -> bool:
    """True for the thresholds of a curve, or one of them."""
    for _ in range(MAX_CHAIN):
        if not isinstance(value, Node) or value.op in LEVELS:
            return isinstance(value, Node)
        numbers = value.op in ("mul", "div", "add", "sub") and sum(isinstance(i, Node) for i in value.inputs[:2]) == 1
        goes_on = numbers or value.op in SAME or value.op in ("element", "getitem", "flip")
        value = next((i for i in value.inputs if isinstance(i, Node)), None) if goes_on else None
    return False


def decision(value: Value, *, classes: bool = False, selected: bool = False) -> Node | None:
    """The decision that a value is, behind changes of type, what puts the batches of a loop together and, with
    ``selected``, a choice of rows. With ``classes`` the number of a class is one as well."""
    for _ in range(MAX_CHAIN):
        if isinstance(value, Items) and value.items:
            value = value.items[-1]
        elif isinstance(value, Node) and value.inputs and (value.op in SAME | JOINS or _axes_only(value, selected)):
            value = value.inputs[0]
        elif isinstance(value, Node) and (mirrored := _mirrored(value)) is not None:
            value = mirrored
        else:
            break
    if not isinstance(value, Node):
        return None
    if value.op == "where" and len(value.inputs) == CHOSEN:
        test, *both = value.inputs
        numbers = all(isinstance(i, int | float) for i in both)
        return value if numbers and isinstance(test, Node) and test.op in HARD else None
    return value if value.op in HARD or (classes and value.op == "argmax") else None


def _mirrored(value: Node) -> Node | None:
    """Of ``-x``, ``1 - x`` and ``-1 * x``, by which the highest comes first: ``x``."""
    if value.op in ("neg", "negative"):
        return value.inputs[0] if value.inputs and isinstance(value.inputs[0], Node) else None
    sides = value.inputs[:2] if value.op in ("sub", "mul") and len(value.inputs) > 1 else ()
    inner = [i for i in sides if isinstance(i, Node)]
    numbers = [i for i in sides if isinstance(i, int | float) and not isinstance(i, bool)]
    if len(inner) != 1 or len(numbers) != 1 or (value.op == "sub" and sides[1] is not inner[0]):
        return None
    return inner[0] if value.op == "sub" or numbers[0] < 0 else None


def _axes_only(value: Node, selected: bool) -> bool:
    """True for an index that adds axes, and for one that chooses rows where that is asked for."""
    if value.op != "getitem" or len(value.inputs) < 2:
        return False
    index = value.inputs[1] if isinstance(value.inputs[1], tuple) else (value.inputs[1],)
    whole = [
        i is None or i is Ellipsis or (isinstance(i, Obj) and i.kind == "builtins.slice" and set(i.args) <= {None})
        for i in index
    ]
    return all(whole) or (selected and all(w or isinstance(i, Node) for w, i in zip(whole, index, strict=True)))
