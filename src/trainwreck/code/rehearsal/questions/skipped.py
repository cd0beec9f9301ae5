"""Blocks of a residual network in which one branch is put in place of what it should be added to."""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.roles import RAW, trained, users

NORMS = frozenset(["layer_norm", "rms_norm", "rmsnorm"])
SIZES = frozenset(["size", "len", "attribute", "numel"])
ATTENDS = frozenset(["scaled_dot_product_attention", "multiheadattention", "softmax"])
LAYERS = 2
"""Linear layers of a branch: a single one after a norm is a head or a projection."""
MAX_BRANCH = 120
"""Values of a branch that are looked at."""


def replaced(run: Rehearsing) -> Iterator[Answer]:
    """``x = mlp(norm(x))`` in a block whose other branches are added: what was in the stream is lost there."""
    norms = [n for n in trained(run) if n.op in NORMS and n.inputs and isinstance(n.inputs[0], Node)]
    if len(norms) < 2:
        return
    order = sorted(trained(run), key=lambda n: n.serial)
    table = users(run)
    found = {id(n): _ends(n, order) for n in norms}
    told: set[int] = set()
    for node in norms:
        end = found[id(node)]
        stream = node.inputs[0]
        if end is None or end.op not in NORMS or node.place is None or id(node.place[0]) in told:
            continue
        beside = [u for u in table.get(id(stream), ()) if u.op not in SIZES and u is not node]
        if beside or not _alike(stream, end.inputs[0]) or _goes_round(node, table):
            continue
        scope = node.place[1]
        others = [n for n in norms if n.place is not None and n.place[1] is scope and n.place[0] is not node.place[0]]
        added = [n for n in others if (e := found[id(n)]) is not None and e.op == "add"]
        if not added and _after_sums(node, end, norms):
            told.add(id(node.place[0]))
            text = "this norm follows a branch that was not added to what it came from, and the other one follows a sum"
            yield Answer(end.place or node.place, text, (node.place,))
        elif added:
            told.add(id(node.place[0]))
            text = "this branch takes the place of the stream, and the other one of the block is added to it"
            yield Answer(node.place, text, (added[0].place,) if added[0].place is not None else ())


def _after_sums(norm: Node, end: Node, norms: list[Node]) -> bool:
    """True where the block's norms stand behind its sums: ``n2(mlp(n1(x + attention(x))))``, block after block."""
    if norm.place is None or end.place is None or end.place[1] is not norm.place[1] or end.place[0] is norm.place[0]:
        return False
    owners = {id(n.owner) for n in norms if n.place is not None and n.place[0] is end.place[0]}
    before, last = norm.inputs[0], end.inputs[0]
    return len(owners) > 1 and isinstance(before, Node) and before.op == "add" and last.op != "add"


def _ends(norm: Node, order: list[Node]) -> Node | None:
    """The addition that joins the stream with its branch, or the next norm that the branch alone comes to."""
    stream = norm.inputs[0]
    inside = {id(norm)}
    layers = 0
    for node in order:
        if node.serial <= norm.serial:
            continue
        given = [i for i in node.inputs if isinstance(i, Node) and i.grad and i.op != "param"]
        mine = [i for i in given if id(i) in inside]
        if not mine:
            continue
        if len(mine) < len(given):
            joins = node.op == "add" and any(i is stream for i in given)
            return node if joins else None
        if node.op in NORMS:
            return node if layers >= LAYERS else None
        layers += node.op in RAW or (node.op in ATTENDS and node.op != "softmax")
        layers += node.op == "multiheadattention"  # with layers of its own before and behind
        inside.add(id(node))
        if len(inside) > MAX_BRANCH:
            return None
    return None


def _goes_round(norm: Node, table: dict[int, list[Node]]) -> bool:
    """True where the norm's own output goes on as the stream: a norm behind an embedding, or after the addition."""
    return any(user.op in ("add", *NORMS) for user in table.get(id(norm), ()))


def _alike(stream: Node, end: object) -> bool:
    """True where the branch ends as wide as the stream is, as far as that is known."""
    if not isinstance(end, Node) or not stream.shape.dims or not end.shape.dims:
        return False
    return stream.shape.dims[-1] is not None and stream.shape.dims[-1] == end.shape.dims[-1]


__all__ = ["replaced"]
