"""Vectors of unit length: are they scaled along the axis that their products are summed over?"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Items, Node, Value
from trainwreck.code.rehearsal.graph import near, parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.axes import along
from trainwreck.code.rehearsal.questions.roles import JOINS, learns, trained, users
from trainwreck.core.row import Row

NORMS = frozenset(["norm", "vector_norm", "linalg_norm"])
KEEPS = frozenset(
    """contiguous detach clone float to div mul dropout half double type_as scale identity cuda
    all_gather gather_all""".split()
)
"""What leaves the axes where they are."""
MAX_STEPS = 80


class Unit(Row):
    """A value that is scaled to unit length along ``axis`` (from the left; None: as a whole) of ``rank`` axes."""

    node: Node
    axis: int | None
    rank: int


def apart(run: Rehearsing) -> Iterator[Answer]:
    """Embeddings that are scaled over the samples (or another axis, or as a whole), and compared over the features."""
    judged = (n for n in run.nodes if not n.grad and n.op in ("normalize", "div") and learns(n))
    for node in (*trained(run), *judged):
        unit = unit_of(run, node)
        if unit is None or node.place is None or unit.axis == unit.rank - 1:
            continue
        meeting = _compared(run, unit)
        if meeting is not None:
            what = "the whole batch is scaled by one number" if unit.axis is None else _words(unit.axis)
            proof = (meeting.place,) if meeting.place is not None else ()
            yield Answer(node.place, f"{what}, and the similarities are sums over the last axis", proof)


def _words(axis: int) -> str:
    if axis == 0:
        return "each feature is scaled over the samples of the batch, not each sample"
    return f"the vectors are scaled along axis {axis}"


def unit_of(run: Rehearsing, node: Node) -> Unit | None:
    """The value as a batch of unit vectors; None where it is none or the number of its axes isn't known."""
    source = node.inputs[0] if node.inputs else None
    if not isinstance(source, Node):
        return None
    if node.op in ("normalize", "linalg_normalize"):
        dim = along(node)
        dim = 1 if dim is None else dim
    elif node.op == "div" and len(node.inputs) > 1 and (norm := _norm(node.inputs[1], source)) is not None:
        dim = _reduced(norm)
    else:
        return None
    rank = _rank(run, node)
    if rank is None or rank < 2:
        return None
    if dim is None:
        return Unit(node, None, rank)
    return Unit(node, dim % rank, rank) if isinstance(dim, int) and -rank <= dim < rank else None


def _norm(value: Value, source: Node) -> Node | None:
    """The length of ``source`` that it is divided by: a norm, or the root of a sum of squares."""
    for node in near(value, 10):
        if node.op in NORMS and node.inputs and node.inputs[0] is source:
            return node
        if node.op in ("sum", "mean") and node.inputs and isinstance(node.inputs[0], Node):
            square = node.inputs[0]
            if square.op in ("pow", "square", "mul") and square.inputs[0] is source and square.inputs[1:2] != (3,):
                rooted = any(n.op in ("sqrt", "rsqrt") or (n.op == "pow" and n.inputs[1:2] == (0.5,))
                             for n in near(value, 10))  # fmt: skip
                return node if rooted else None
        if node is source:
            return None
    return None


def _reduced(norm: Node) -> Value:
    """The axis of a norm; None for all."""
    dim = along(norm)
    if isinstance(dim, tuple | Items):
        listed = list(dim) if isinstance(dim, tuple) else dim.items
        return listed[0] if len(listed) == 1 else "several"
    return dim


def _rank(run: Rehearsing, node: Node) -> int | None:
    """How many axes there are; two where this or another value of the same line is turned by ``t()``."""
    if not node.shape.open and node.shape.dims:
        return len(node.shape.dims)
    turned = run.memo.get("turned")
    if turned is None:
        turned = set()
        for other in run.nodes:
            if other.op in ("t", "T") and isinstance(other.inputs[0], Node):
                at: Value = other.inputs[0]
                for _ in range(6):
                    if not isinstance(at, Node):
                        break
                    turned.add(id(at.place[0]) if at.place else 0)
                    inner = at.inputs[0] if at.inputs else None
                    known = at.op in KEEPS or at.op in JOINS
                    at = next(iter(parts(inner)), None) if known and inner is not None else None
        run.memo["turned"] = turned
    return 2 if node.place is not None and id(node.place[0]) in turned else None


def _compared(run: Rehearsing, unit: Unit) -> Node | None:
    """Where products with other unit vectors are summed over the last axis of ``unit``."""
    queue: list[tuple[Node, tuple[int, ...]]] = [(unit.node, tuple(range(unit.rank)))]
    for _ in range(MAX_STEPS):
        if not queue:
            return None
        value, order = queue.pop(0)
        for user in users(run).get(id(value), ()):
            summed = _summed(run, user, value, len(order))
            if summed is not None and -len(order) <= summed < len(order) and order[summed] == unit.rank - 1:
                return user
            if user.op in KEEPS or (user.op in JOINS and user.op != "stack"):
                queue.append((user, order))
            elif user.op in ("t", "T", "mT") or (user.op == "transpose" and set(user.inputs[1:3]) in _LAST):
                queue.append((user, (*order[:-2], order[-1], order[-2])))
    return None


_LAST: list[set[Value]] = [{-1, -2}, {0, 1}]


def _summed(run: Rehearsing, user: Node, value: Node, rank: int) -> int | None:
    """The axis of ``value`` that a product with other unit vectors is summed over."""
    if user.op in ("matmul", "mm", "bmm") and len(user.inputs) > 1:
        left = user.inputs[0] is value
        other = user.inputs[1] if left else user.inputs[0]
        return (-1 if left else -2) if _is_unit(run, other) else None
    if user.op == "linear" and user.owner is None and len(user.inputs) > 1:
        return -1 if _is_unit(run, user.inputs[1] if user.inputs[0] is value else user.inputs[0]) else None
    if user.op == "mul" and len(user.inputs) > 1 and all(_is_unit(run, i) for i in user.inputs[:2]):
        for total in users(run).get(id(user), ()):
            dim = along(total) if total.op in ("sum", "mean") else None
            if isinstance(dim, int):
                return dim
    if user.op == "einsum" and len(user.inputs) == 3 and isinstance(user.inputs[0], str):
        letters, _, right = user.inputs[0].replace(" ", "").partition("->")
        operands = letters.split(",")
        if len(operands) == 2 and right and all(_is_unit(run, i) for i in user.inputs[1:]):
            mine = operands[0 if user.inputs[1] is value else 1]
            gone = [n for n, letter in enumerate(mine) if letter not in right and letter in operands[0] + operands[1]]
            return gone[0] if len(gone) == 1 and len(mine) == rank else None
    return None


def _is_unit(run: Rehearsing, value: Value) -> bool:
    """True for unit vectors, also turned, joined, cut off from the graph or scaled."""
    for _ in range(12):
        if not isinstance(value, Node):
            return False
        if value.op in ("normalize", "linalg_normalize"):
            return True
        base = value.inputs[0] if value.inputs else None
        if value.op == "div" and isinstance(base, Node) and _norm(value.inputs[1], base) is not None:
            return True
        if value.op in ("mul", "div") and len(value.inputs) > 1:
            wide = [i for i in value.inputs[:2] if isinstance(i, Node) and (i.shape.open or i.shape.dims)]
            if len(wide) != 1:
                return False
            value = wide[0]
            continue
        turned = value.op in KEEPS or value.op in ("t", "T", "mT", "transpose", "unsqueeze", "permute", "getitem")
        if not turned and value.op not in JOINS:
            return False
        inner = value.inputs[0] if value.inputs else None
        value = next(iter(parts(inner)), None) if inner is not None else None
    return False
