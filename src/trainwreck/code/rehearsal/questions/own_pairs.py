"""Every row of a list is compared with the whole list, itself too: is that pair taken out of what it competes with?"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Items, Node, Value
from trainwreck.code.rehearsal.graph import ancestors, parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.roles import JOINS, PRODUCTS, trained, users
from trainwreck.code.rehearsal.questions.terms import number_of

TURNS = frozenset(["t", "T", "mT", "transpose", "permute", "contiguous", "unsqueeze", "swapaxes"])
SAME = frozenset(["float", "double", "contiguous", "clone", "to"])
"""What leaves a table of pairs as it is."""
COUNTED = frozenset("arange cat concat concatenate add sub mod remainder mul roll long to view reshape int".split())
"""What numbers of rows are made of where no label of the data has a part in them."""
PICKS = frozenset(["gather", "getitem", "take_along_dim"])
FAR = 12
MANY = 65_536
"""Rows of a batch that are looked at one by one."""


def unmasked(run: Rehearsing) -> Iterator[Answer]:
    """Two views of each sample stand in one list, and a row's positive competes with the row itself, the most alike of
    all: nothing takes the diagonal out before the softmax over the row."""
    table = users(run)
    for node in trained(run):
        scores = _over_rows(node, table)
        pairs = _pairs(scores) if scores is not None else None
        if pairs is None or not _two_views(pairs):
            continue
        if node.op == "cross_entropy" and not (len(node.inputs) > 1 and _by_number(node.inputs[1])):
            continue
        place = node.place if pairs.place is None else pairs.place
        if place is None:
            continue
        text = "each row is compared with itself too, and this pair, more alike than any other, is not taken out"
        yield Answer(place, text, (node.place,) if node.place is not None and node.place != place else ())
        return


def beside_the_partner(run: Rehearsing) -> Iterator[Answer]:
    """Two views of ``n`` samples stand one behind the other, so that the partner of row ``i`` is ``i + n``, and the
    targets, all known, name another row."""
    for node in trained(run):
        if node.op != "cross_entropy" or len(node.inputs) < 2 or not isinstance(node.inputs[1], Node):
            continue
        product, target = _behind_masks(node.inputs[0]), node.inputs[1]
        if product is None or target.place is None or not _two_views(product):
            continue
        named = _numbers(target)
        count = len(named or ())
        if not named or count % 2 or product.shape.open or product.shape.dims[-1:] != (count,):
            continue
        if all(t != (i + count // 2) % count for i, t in enumerate(named)):
            text = "the second views stand behind all of the first ones, and the targets name another row than these"
            yield Answer(target.place, text, (node.place,) if node.place is not None else ())
            return


def _behind_masks(value: Value) -> Node | None:
    """The product of a list with itself behind scores of all pairs, whatever is filled in on the way."""
    for _ in range(FAR):
        if not isinstance(value, Node) or not value.inputs:
            return None
        found = _pairs(value)
        if found is not None:
            return found
        masks = ("masked_fill", "fill_diagonal", "fill_diagonal_", "masked_fill_", "setitem")
        if value.op not in (*masks, "div", *SAME) or (value.op == "div" and not _scale(value.inputs[1])):
            return None
        value = value.inputs[0]
    return None


def _numbers(value: Value, depth: int = 0) -> list[int] | None:
    """The whole numbers in a vector that is computed from nothing but numbers of rows; None where one isn't known."""
    if not isinstance(value, Node) or not value.inputs or depth > FAR:
        return None
    given = [i for i in value.inputs if not isinstance(i, str)]
    if value.op == "arange":
        bounds = [i for i in given if isinstance(i, int) and not isinstance(i, bool)]
        whole = len(bounds) == len(given) - sum(i in value.options.values() for i in given if not isinstance(i, int))
        return list(range(*bounds)) if whole and len(bounds) in (1, 2) and max(bounds) <= MANY else None
    first = _numbers(given[0], depth + 1) if given else None
    if value.op in ("cat", "concat") and isinstance(given[0], tuple | Items):
        lists = [_numbers(i, depth + 1) for i in parts(given[0])]
        return [n for one in lists for n in one or ()] if all(one is not None for one in lists) else None
    if value.op in ("long", "to", "contiguous", "clone"):
        return first
    other = given[1] if len(given) > 1 else None
    if first is None or not isinstance(other, int) or isinstance(other, bool):
        return None
    if value.op == "roll":
        return [first[(i - other) % len(first)] for i in range(len(first))] if first else None
    if value.op in ("add", "sub"):
        return [n + other if value.op == "add" else n - other for n in first]
    return [n % other for n in first] if value.op in ("mod", "remainder") and other else None


def _over_rows(node: Node, table: dict[int, list[Node]]) -> Value:
    """The scores of a row that ``node`` weighs against each other; None for another kind of value."""
    given = node.inputs[0] if node.inputs else None
    if node.op == "cross_entropy":
        return given
    whole = _axis(node) in (1, -1)
    if node.op == "log_softmax" and whole:
        return given if _picked(node, table) else None
    if node.op == "logsumexp" and whole:
        return given if all(_taken_off(u, node, table) for u in table.get(id(node), [])) else None
    if node.op == "sum" and whole and isinstance(given, Node) and given.op == "exp" and given.inputs:
        return given.inputs[0] if _divides(node, table) else None
    return None


def _axis(node: Node) -> Value:
    return node.options.get("dim", node.options.get("axis", node.inputs[1] if len(node.inputs) > 1 else None))


def _picked(node: Node, table: dict[int, list[Node]]) -> bool:
    """One column of each row is read by its number, and nothing else is done with the scores."""
    read = table.get(id(node), [])
    return bool(read) and all(u.op in PICKS and len(u.inputs) > 1 and _by_number(u.inputs[-1]) for u in read)


def _taken_off(user: Node, node: Node, table: dict[int, list[Node]]) -> bool:
    """The scores less the logarithm of their sum."""
    return user.op == "sub" and len(user.inputs) > 1 and user.inputs[1] is node


def _divides(node: Node, table: dict[int, list[Node]]) -> bool:
    """The sum is what something is divided by, or goes into a logarithm, as it is."""
    read = table.get(id(node), [])
    fine = [
        u.op == "log"
        or (u.op == "div" and len(u.inputs) > 1 and u.inputs[1] is node)
        or (u.op == "add" and len(u.inputs) > 1 and number_of(u.inputs[1]) is not None and _divides(u, table))
        for u in read
    ]
    return bool(fine) and all(fine)


def _by_number(target: Value) -> bool:
    """True for numbers of columns that count the rows, moved on."""
    found = list(ancestors(target))
    return any(n.op == "arange" for n in found) and all(n.op in COUNTED for n in found)


def _pairs(value: Value) -> Node | None:
    """The product of a list with itself behind scores, where nothing but a scale (or the row's highest) came between;
    None where anything may have taken pairs out."""
    for _ in range(FAR):
        if not isinstance(value, Node) or not value.inputs:
            return None
        if value.op in PRODUCTS or value.op == "cosine_similarity":
            return value if _with_itself(value) else None
        if value.op in ("mul", "div") and len(value.inputs) > 1:
            one, other = value.inputs[:2]
            value = one if _scale(other) else other if value.op == "mul" and _scale(one) else None
        elif value.op in SAME or (
            value.op == "sub" and len(value.inputs) > 1 and _highest(value.inputs[1], value.inputs[0])
        ):
            value = value.inputs[0]
        else:
            return None
    return None


def _scale(value: Value) -> bool:
    """One number, given or learned."""
    if number_of(value) is not None or isinstance(value, int | float):
        return True
    return isinstance(value, Node) and not value.shape.open and value.shape.dims in ((), (1,))


def _highest(value: Value, scores: Value) -> bool:
    """The largest of each row, taken off for the sake of ``exp``."""
    for _ in range(4):
        if not isinstance(value, Node) or not value.inputs:
            return False
        if value.op in ("max", "amax"):
            return value.inputs[0] is scores
        value = value.inputs[0] if value.op in ("detach", "part", "getitem", "attribute", "values") else None
    return False


def _with_itself(product: Node) -> bool:
    sides = [i for i in product.inputs if isinstance(i, Node)]
    if len(sides) != 2 or (product.op in ("matmul", "mm") and sides[0].op in TURNS):
        return False
    if product.op not in ("matmul", "mm", "cosine_similarity") and not _rows_by_rows(product):
        return False
    one, other = (_rows(i) for i in sides)
    return one is other and one.grad and not one.shape.open and len(one.shape.dims) == 2


def _rows_by_rows(product: Node) -> bool:
    """``einsum("nd,md->nm", ...)``: the features are what is summed over."""
    equation = next((i for i in product.inputs if isinstance(i, str)), "").replace(" ", "")
    one, _, rest = equation.partition(",")
    other, _, out = rest.partition("->")
    return len(one) == len(other) == 2 and one[1] == other[1] and out == one[0] + other[0]


def _rows(node: Node) -> Node:
    """What is compared, without transposition."""
    for _ in range(FAR):
        inner = node.inputs[0] if node.inputs else None
        if node.op not in TURNS or not isinstance(inner, Node):
            break
        node = inner
    return node


def _two_views(product: Node) -> bool:
    """True where the list is two lists of embeddings, one behind the other."""
    at: Value = next(i for i in product.inputs if isinstance(i, Node))
    at = _rows(at) if isinstance(at, Node) else at
    for _ in range(FAR):
        if not isinstance(at, Node) or not at.inputs:
            return False
        if at.op in JOINS and at.op != "stack":
            halves = list(parts(at.inputs[0]))
            axis = at.options.get("dim", at.options.get("axis", at.inputs[1] if len(at.inputs) > 1 else 0))
            alike = len(halves) == 2 and halves[0].shape.dims == halves[1].shape.dims
            return axis == 0 and alike and all(h.grad for h in halves)
        if at.op not in ("normalize", *SAME):
            return False
        at = at.inputs[0]
    return False


__all__ = ["beside_the_partner", "unmasked"]
