"""Rankings of an evaluation (nearest neighbours, the k best items): are the best taken, for each row, of all others?"""

from __future__ import annotations

import math
from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Value
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.axes import along
from trainwreck.code.rehearsal.questions.own_pairs import TURNS
from trainwreck.code.rehearsal.questions.roles import PRODUCTS, STRUCTURE, learns, users

TAKES = {"argmax": True, "argmin": False, "topk": True, "argsort": False, "sort": False}
"""What takes the best of scores, and whether it is the largest where nothing is said."""
HELD_AGAINST = frozenset(["eq", "ne", "isin"])
PASSES = STRUCTURE | {"part", "append", "floor_divide", "floordiv", "getitem", "tolist", "numpy", "item", "element"}
SCALES = frozenset(["mul", "div", "float", "double", "to", "contiguous", "detach", "cpu", "numpy"])
FILLS = frozenset(["setitem", "masked_fill", "fill_diagonal", "index_fill", "scatter"])
FAR = 8


def least_alike(run: Rehearsing) -> Iterator[Answer]:
    """The smallest of products of embeddings are taken for an answer that is held against labels: they are trained to
    be largest for what belongs together."""
    for node, largest in _rankings(run):
        scores = node.inputs[0]
        if (
            largest is False
            and _product(scores, filled=True) is not None
            and learns(scores)
            and _held_against(run, node)
        ):
            text = "the least similar are taken: what belongs together has the largest products"
            if node.place is not None:
                yield Answer(node.place, text)
                return


def itself_nearest(run: Rehearsing) -> Iterator[Answer]:
    """Each row of a list is looked up in the same list, and the nearest, which is the row itself, is the answer."""
    for node, largest in _rankings(run):
        scores = node.inputs[0]
        if node.op not in ("argmax", "argmin") or along(node) not in (1, -1):
            continue
        product = _product(scores)
        alike = product is not None and largest is True and _same_rows(product)
        apart = isinstance(scores, Node) and scores.op == "cdist" and largest is False and _same_rows(scores)
        if (alike or apart) and learns(scores) and _held_against(run, node) and node.place is not None:
            yield Answer(node.place, "the nearest of all rows is each row itself: it is not left out of the list")
            return


def left_out_wins(run: Rehearsing) -> Iterator[Answer]:
    """What is to be left out of a ranking gets the value that comes first in it."""
    for node, largest in _rankings(run):
        filled = _filled(node.inputs[0])
        if filled is None or largest is None or filled.place is None or not learns(filled) or node.grad:
            continue
        value = _infinite(filled)
        if value is not None and (value > 0) is largest:
            if largest is False and _product(filled, filled=True) is not None:
                continue  # the ranking is the wrong way round, and not what is written
            text = "what is left out here gets the value that comes first in the ranking"
            yield Answer(filled.place, text, (node.place,) if node.place is not None else ())
            return


def any_of_the_samples(run: Rehearsing) -> Iterator[Answer]:
    """A hit among the k best is looked for over the samples, not over the k places of each sample."""
    for node in run.nodes:
        if node.op not in ("any", "amax") or node.grad or node.place is None or not node.inputs:
            continue
        hits = node.inputs[0]
        axis = along(node)
        if not isinstance(hits, Node) or hits.op != "eq" or axis not in (0, 1, -1):
            continue
        places = next((a for i in hits.inputs[:2] if (a := _places(i)) is not None), None)
        if places is not None and axis % 2 != places and hits.place is not None:
            yield Answer(node.place, "a hit is looked for over the samples, not among the best of each sample")
            return


def _places(value: Value) -> int | None:
    """The axis of the k best in a table of samples by places; None where that isn't known."""
    axis: int | None = None
    turned = False
    for _ in range(FAR):
        if not isinstance(value, Node) or not value.inputs:
            return None
        if value.op in ("t", "T", "mT") or (value.op == "transpose" and set(value.inputs[1:3]) in ({0, 1}, {-1, -2})):
            turned = not turned
        elif value.op == "topk":
            given = along(value)
            scores = value.inputs[0]
            flat = isinstance(scores, Node) and not scores.shape.open and len(scores.shape.dims) == 2
            axis = {1: 1, -1: 1, 0: 0, None: 1}.get(given if isinstance(given, int) else None)
            return None if not flat or axis is None else 1 - axis if turned else axis
        elif value.op not in ("part", "cpu", "numpy", "detach", "long", "to", "int"):
            return None
        value = value.inputs[0]
    return axis


def _rankings(run: Rehearsing) -> Iterator[tuple[Node, bool | None]]:
    """Where the best of scores are taken outside of the training, and whether these are the largest; None if open."""
    for node in run.nodes:
        if node.op not in TAKES or not node.inputs or node.grad or not isinstance(node.inputs[0], Node):
            continue
        largest: Value = TAKES[node.op]
        if node.op == "topk":
            largest = node.options.get("largest", True)
        elif node.op in ("argsort", "sort"):
            largest = node.options.get("descending", None)
            inner = node.inputs[0]
            if inner.op == "neg" and node.full.startswith("numpy"):
                continue
        yield node, largest if isinstance(largest, bool) else None


def _product(scores: Value, *, filled: bool = False) -> Node | None:
    """The product of embeddings that scores are, scaled at most; ``filled``: also with a bias, and partly written."""
    for _ in range(FAR):
        if not isinstance(scores, Node) or not scores.inputs:
            return None
        if filled and (scores.op in FILLS or (scores.op == "add" and _product(scores.inputs[0]) is not None)):
            scores = scores.inputs[0]
            continue
        if scores.op in PRODUCTS or scores.op == "cosine_similarity":
            return scores
        if scores.op not in SCALES or (scores.op == "mul" and not isinstance(scores.inputs[1], int | float)):
            return None
        if any(isinstance(i, int | float) and i < 0 for i in scores.inputs[1:2]):
            return None
        scores = scores.inputs[0]
    return None


def _same_rows(product: Node) -> bool:
    sides = [i for i in product.inputs if isinstance(i, Node)][:2]
    for at, side in enumerate(sides):
        while side.op in TURNS and side.inputs and isinstance(side.inputs[0], Node):
            side = side.inputs[0]
        sides[at] = side
    return len(sides) == 2 and sides[0] is sides[1]


def _held_against(run: Rehearsing, node: Node, depth: int = 0) -> bool:
    """True where what was taken (or a label that it picks) is compared with something else."""
    for user in users(run).get(id(node), ()):
        if user.op in HELD_AGAINST or user.op in ("compare", "in"):
            return True
        if depth < FAR and user.op in PASSES and _held_against(run, user, depth + 1):
            return True
    return False


def _filled(scores: Value) -> Node | None:
    """The last change of single scores before they are ranked."""
    for _ in range(FAR):
        if not isinstance(scores, Node) or not scores.inputs:
            return None
        if scores.op in FILLS:
            return scores
        if scores.op not in SCALES | STRUCTURE:
            return None
        scores = scores.inputs[0]
    return None


def _infinite(node: Node) -> float | None:
    """The infinite (or as good as infinite) number that is written in."""
    given = [*node.inputs[1:], *node.options.values()]
    found = [float(v) for v in given if isinstance(v, int | float) and not isinstance(v, bool) and abs(v) >= HUGE]
    return found[0] if len(found) == 1 and not math.isnan(found[0]) else None


HUGE = 1e6
"""No score of a network is as large as this; programs that mask write 1e9 or infinity."""

__all__ = ["any_of_the_samples", "itself_nearest", "least_alike", "left_out_wins"]
