"""Gates of a mixture of experts: along which axis they compete, whether the best are taken, and what they weigh."""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Value
from trainwreck.code.rehearsal.graph import ancestors
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.axes import along
from trainwreck.code.rehearsal.questions.roles import RAW, STRUCTURE, trained, users

PUTS = frozenset(
    ["index_add", "index_add_", "scatter_add", "index_copy", "index_put", "setitem", "mul", "add", "einsum"]
)


def _gates(run: Rehearsing) -> Iterator[tuple[Node, Node]]:
    """Each choice of the largest probabilities of a router, with those probabilities."""
    for node in run.nodes:
        if node.op != "topk" or not node.inputs or not isinstance(node.inputs[0], Node):
            continue
        soft = next((n for n in ancestors(node.inputs[0], through=_moved) if n.op in ("softmax", "sigmoid")), None)
        if (
            soft is not None
            and soft.grad
            and any(n.op in RAW for n in ancestors(soft, through=lambda n: n.op not in RAW))
        ):
            yield node, soft


def _moved(node: Node) -> bool:
    return node.op in STRUCTURE


def across_tokens(run: Rehearsing) -> Iterator[Answer]:
    """The softmax runs over the tokens, and the experts of each token are chosen from it."""
    for node, soft in _gates(run):
        over, chosen = along(soft), _axis_of(node)
        if soft.op == "softmax" and over == 0 and chosen in (-1, 1) and soft.place is not None:
            text = "the probabilities compete along the tokens here, and each token's experts are chosen from them"
            yield Answer(soft.place, text, (node.place,) if node.place is not None else ())
            return


def shared_across_tokens(run: Rehearsing) -> Iterator[Answer]:
    """What the chosen experts of a token weigh is made to add up to one along the tokens."""
    table = users(run)
    for node, _ in _gates(run):
        chosen = _axis_of(node)
        picked = [n for n in table.get(id(node), ()) if n.op == "part" and n.inputs[1:] in ((0,), ("values",))]
        for value in picked:
            count = len(value.shape.dims)
            for user in table.get(id(value), ()):
                below = user.inputs[1] if user.op == "div" and len(user.inputs) > 1 else None
                summed = below if isinstance(below, Node) and below.op == "sum" and below.inputs[0] is value else None
                shares = user if user.op == "softmax" else summed
                over = along(shares) if shares is not None else None
                if not isinstance(over, int) or not isinstance(chosen, int) or count != AXES:
                    continue
                if over % count != chosen % count and user.place is not None:
                    text = (
                        "the weights of the chosen experts are to add up to one for each token, and do over the tokens"
                    )
                    yield Answer(user.place, text, (node.place,) if node.place is not None else ())
                    return


AXES = 2
"""Tokens and experts."""


def _axis_of(node: Node) -> Value:
    return node.options.get("dim", node.inputs[2] if len(node.inputs) > 2 and isinstance(node.inputs[2], int) else -1)


def worst_experts(run: Rehearsing) -> Iterator[Answer]:
    """Each token goes to the experts with the smallest probability."""
    for node, _soft in _gates(run):
        if node.get("largest", 3) is False and node.place is not None:
            yield Answer(node.place, "the experts with the smallest probabilities are taken here")
            return


def weighs_nothing(run: Rehearsing) -> Iterator[Answer]:
    """The probabilities choose the experts and weigh nothing of what these give back: the router learns nothing from
    the task."""
    inside = {id(n) for n in trained(run)}
    table = users(run)
    for node, soft in _gates(run):
        values = [n for n in run.nodes if n.op == "part" and n.inputs and n.inputs[0] is node]
        picked = [n for n in values if n.inputs[1:] in ((0,), ("values",))]
        indices = [n for n in values if n not in picked]
        if not indices or any(_weighs(table, n, inside) for n in picked):
            continue
        beside = [u for n in (soft,) for u in table.get(id(n), ()) if u is not node and u.grad]
        if any(u.op in TAKES and _weighs_experts(table, u, soft) for u in beside):
            continue
        cut = next((n for p in picked for n in _following(table, p) if n.op in ("detach", "detach_") and n.place), None)
        used = next(
            (n for i in indices for n in _following(table, i) if id(n) in inside and n.op in PUTS and n.place), None
        )
        place = cut.place if cut is not None else used.place if used is not None else None
        if place is not None and any(id(n) in inside for i in indices for n in _following(table, i)):
            text = "the router's probabilities weigh nothing of what the experts give: the task teaches it nothing"
            yield Answer(place, text, (node.place,) if node.place is not None else ())
            return


TAKES = frozenset(["gather", "mul", "getitem", "where", "masked_fill", "scatter"])


def _weighs_experts(table: dict[int, list[Node]], taken: Node, soft: Node) -> bool:
    """True where what is taken of the probabilities meets something else that learns, in a product; in a term that
    balances the experts it meets counts."""
    for node in (taken, *_following(table, taken)):
        others = [i for i in node.inputs if isinstance(i, Node) and i.grad and not _hangs_on(i, soft)]
        if node.op in PRODUCTS and others and any(_hangs_on(i, soft) for i in node.inputs if isinstance(i, Node)):
            return True
    return False


PRODUCTS = frozenset("mul matmul bmm mm einsum index_add index_add_ scatter_add setitem stack cat".split())


def _following(table: dict[int, list[Node]], node: Node) -> list[Node]:
    found, level, seen = [], [node], {id(node)}
    for _ in range(10):
        level = [u for n in level for u in table.get(id(n), ()) if id(u) not in seen]
        seen |= {id(u) for u in level}
        found += level
        if len(found) > 400:
            break
    return found


def _weighs(table: dict[int, list[Node]], value: Node, inside: set[int]) -> bool:
    return any(n.grad and id(n) in inside for n in _following(table, value) if any(
        i.grad for i in n.inputs if isinstance(i, Node)) and _hangs_on(n, value))  # fmt: skip


def _hangs_on(node: Node, value: Node) -> bool:
    return any(
        n is value for n in ancestors(node, through=lambda n: n.grad and n.op not in ("detach", "detach_", "data"))
    )


__all__ = ["across_tokens", "shared_across_tokens", "weighs_nothing", "worst_experts"]
