"""One learned token that stands for everything hidden: does attention get told which place each copy stands at?"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Place, Value
from trainwreck.code.rehearsal.graph import ancestors, parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.attending import STACKS
from trainwreck.code.rehearsal.questions.roles import JOINS, PRODUCTS, RAW, STRUCTURE, trained
from trainwreck.code.rehearsal.questions.sampleaxis import RECURRENT

ALONE = STRUCTURE | frozenset("linear layer_norm rms_norm dropout relu gelu silu tanh part".split())
"""What each token goes through by itself; the first input is what it is of."""
SUMS = frozenset(["add", "sub", "mul", "div"])
SCALES = STRUCTURE | frozenset(["mul", "div"])
ONE_BY_ONE = frozenset("layer_norm dropout relu gelu silu tanh contiguous".split())
TURNED = frozenset(["transpose", "permute", "mT", "T", "t", "swapaxes", "movedim", "flatten"])
PLACING = (RAW - {"linear"}) | RECURRENT
"""What looks at neighbours, or goes from one end to the other: it tells places apart by itself."""
TOKENS = 3
"""Axes of a batch of tokens: samples, places, features."""
LONGEST = 400


def same_everywhere(run: Rehearsing) -> Iterator[Answer]:
    """Copies of one learned token are put in the places of what is hidden, and go into attention as they are: all of a
    sample's hidden places get one and the same answer."""
    every = trained(run)
    for node in every:
        sides = _asked(node)
        found = [_filled(s) for s in sides]
        filled = next((f for f in found if f is not None), None)
        if not sides or filled is None or any(f is not filled for f in found) or filled.place is None:
            continue
        if any(_tells_places(n, filled) for n in every):
            continue
        place = _entered(node, filled.place)
        if place is not None:
            text = "copies of one learned token reach attention without their places: all hidden ones come out alike"
            yield Answer(place, text, (filled.place,))
            return


def _asked(node: Node) -> list[Node]:
    """Queries and keys of an attention that has no mask and no bias of its own; none for anything else."""
    data = [i for i in node.inputs if isinstance(i, Node) and i.op != "param"]
    if node.op == "scaled_dot_product_attention":
        return data[:2] if len(data) == TOKENS and not node.options.keys() - {"dropout_p"} else []
    if node.op in STACKS or node.op == "multiheadattention":
        count = TOKENS if node.op == "multiheadattention" else 1
        if len(data) != count or node.options.keys() - {"need_weights", "average_attn_weights"}:
            return []
        return data[: min(count, 2)]
    at: Value = node.inputs[0] if node.op == "softmax" and node.inputs else None
    for _ in range(6):
        if not isinstance(at, Node):
            return []
        if at.op in PRODUCTS and at.op != "baddbmm":
            sides = [s for s in at.inputs if isinstance(s, Node)]
            return sides if len(sides) == 2 else []
        if at.op not in SCALES or sum(isinstance(i, Node) and bool(i.shape.dims) for i in at.inputs) != 1:
            return []
        at = next(i for i in at.inputs if isinstance(i, Node) and i.shape.dims)
    return []


def _filled(side: Node) -> Node | None:
    """Where copies were put between tokens, if nothing else went into what attention is given."""
    joins: dict[int, Node] = {}
    queue: list[Value] = [side]
    seen: set[int] = set()
    while queue:
        node = queue.pop()
        if isinstance(node, int | float) or node is None:
            continue
        if not isinstance(node, Node) or len(seen) > LONGEST:
            return None
        if id(node) in seen:
            continue
        seen.add(id(node))
        if _with_copies(node):
            joins[id(node)] = node
        elif node.op in ALONE and node.inputs:
            queue.append(node.inputs[0])
        elif node.op in JOINS and node.inputs:
            queue += [n for n in parts(node.inputs[0]) if not (n.op == "param" or _learned(n) is not None)]
        elif node.op in SUMS:
            queue += node.inputs[:2]
        elif node.shape.open or node.shape.dims:
            return None  # something that was added, or that isn't known
    return next(iter(joins.values())) if len(joins) == 1 else None


def _with_copies(node: Node) -> bool:
    """True where tokens are put beside, or in the place of others by, copies of one that is learned."""
    dims = node.shape.dims
    if len(dims) != TOKENS or node.shape.open or not node.grad:
        return False
    if node.op in ("cat", "concat", "concatenate") and node.inputs:
        axis = node.options.get("dim", node.inputs[1] if len(node.inputs) > 1 else 0)
        held = list(parts(node.inputs[0]))
        return axis in (1, -2) and len(held) > 1 and sum(_copies(n) for n in held) == 1
    if node.op == "where" and len(node.inputs) > 2:
        one, other = (_learned(i) for i in node.inputs[1:3])
        mask = node.inputs[0]
        by_place = isinstance(mask, Node) and (mask.shape.dims[-1:] == (1,) or len(mask.shape.dims) < TOKENS)
        return (one is None) is not (other is None) and by_place
    if node.op == "setitem" and len(node.inputs) > 2:
        index = node.inputs[2]
        return _learned(node.inputs[1]) is not None and isinstance(index, Node) and len(index.shape.dims) == TOKENS - 1
    return False


def _copies(node: Node) -> bool:
    return _learned(node) is not None and len(node.shape.dims) == TOKENS and node.shape.dims[1] != 1


def _learned(value: Value) -> Node | None:
    """The one vector that all of ``value`` are copies of."""
    at = value
    for _ in range(6):
        if not isinstance(at, Node):
            return None
        if at.op == "param":
            sizes = at.shape.dims[:-1]
            plain = at.owner is None and not at.shape.open and bool(at.shape.dims) and all(d == 1 for d in sizes)
            return at if plain else None
        if at.op not in STRUCTURE or not at.inputs:
            return None
        at = at.inputs[0]
    return None


def _tells_places(node: Node, filled: Node) -> bool:
    """True for a layer behind the filled places that treats these otherwise than alike: a convolution, a recurrence, or
    a layer over all of them."""
    if node.op not in PLACING and node.op != "linear":
        return False
    given = node.inputs[0] if node.inputs else None
    if not isinstance(given, Node) or not any(n is filled for n in ancestors(given)):
        return False
    return node.op != "linear" or _over_all(given)


def _over_all(given: Node) -> bool:
    """True where the last axis of what a layer is given goes over places: all tokens of a sample in one row, or turned
    round."""
    at: Value = given
    for _ in range(6):
        if not isinstance(at, Node) or at.op in TURNED:
            return True
        if at.op in ("view", "reshape", "rearrange", "unflatten"):
            return at.shape.open or len(at.shape.dims) < TOKENS
        if at.op not in ONE_BY_ONE or not at.inputs:
            return False
        at = at.inputs[0]
    return False


def _entered(node: Node, filled: Place) -> Place | None:
    """Where the filled places are handed on, in the function that filled them."""
    for place in (*node.stack, node.place):
        if place is not None and place[1] is filled[1]:
            return place
    return node.place
