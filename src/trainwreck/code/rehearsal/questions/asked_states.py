"""Which states networks are asked about on the way to a value: data that were put aside, rows that were chosen."""

from __future__ import annotations

from trainwreck.code.rehearsal.domain import Items, Node, Place, Value
from trainwreck.code.rehearsal.graph import ancestors, parts
from trainwreck.code.rehearsal.questions.roles import RAW, STRUCTURE

CUTS = frozenset(["sample", "argmax", "multinomial", "round", "bernoulli", "one_hot", "item", "numpy", "tolist", "int",
                  "float", "clip", "choice"])  # fmt: skip
"""Behind these stand actions: that they came from a network makes a reward no value."""
SELECTS = frozenset(["element", "setitem", "roll", "flip", "either", "narrow", "index_select"])


def selected(value: Node) -> bool:
    """True where rows are chosen from what a network said: of many states in a row, perhaps the next one."""
    return any(
        n.op in SELECTS
        or (n.op == "getitem" and not (isinstance(n.inputs[1], tuple) and len(n.inputs[1]) > 1) and not _of_two(n))
        for n in ancestors(value, through=lambda n: n.op not in RAW and n.op != "param")
    )


def _of_two(node: Node) -> bool:
    """``q.max(1)[0]``: the largest values, of them and where they stand."""
    both = node.inputs[0]
    pair = isinstance(both, Node) and both.op in ("max", "min", "sort", "topk", "median", "cummax")
    return pair and type(node.inputs[1]) is int


def states(value: Node) -> set[int]:
    """The data that networks are asked about, on the way to a value: what was put aside, or came from no network."""
    found: set[int] = set()
    queue, seen = [value], {id(value)}
    while queue and len(seen) < 600:
        node = queue.pop()
        for item in node.inputs[:1] if node.op.endswith("_as") else node.inputs:
            for inner in parts(item):
                if id(inner) in seen or inner.op == "param":
                    continue
                seen.add(id(inner))
                if not put_aside(inner) and any(n.op == "param" for n in ancestors(inner, through=_not_cut)):
                    queue.append(inner)
                elif node.op in RAW | {"cat", "concat", "embedding"}:
                    both = inner.op in ("cat", "concat", "concatenate") and not put_aside(inner)
                    joined = parts(inner.inputs[:1]) if both else (inner,)
                    found |= {id(n) for n in joined}
    return found


def _not_cut(node: Node) -> bool:
    return node.op not in CUTS and not put_aside(node)


def put_aside(node: Node) -> bool:
    """True for rows of what a program gathered before."""
    at: Value = node
    for _ in range(8):
        if not isinstance(at, Node):
            return isinstance(at, Items)
        if at.op in ("setitem", "batch", "element"):
            return True
        if at.op in ("cat", "concat") and at.inputs and isinstance(rows := at.inputs[0], Items) and rows.more:
            return True  # of as many records as were drawn
        if at.op not in STRUCTURE | {"array", "asarray", "stack", "concatenate", "as_tensor", "part"} or not at.inputs:
            return False
        at = at.inputs[0]
    return False


def first_call(value: Node, seen: Place | None) -> Place | None:
    """Where the network is asked: the call on the way to a layer that stands where ``seen`` does, or the layer's."""
    layer = next((n for n in ancestors(value) if n.op in RAW), None)
    if layer is None:
        return None
    return next((p for p in (*layer.stack, layer.place) if p is not None and seen and p[1] is seen[1]), layer.place)
