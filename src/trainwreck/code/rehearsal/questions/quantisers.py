"""Quantisers beside their codebook's loss: estimators with the wrong sign, the farthest code, codes that stay."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import written
from trainwreck.code.pattern import pattern
from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Place, Value
from trainwreck.code.rehearsal.graph import ancestors
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.roles import PRODUCTS, STRUCTURE, trained, users
from trainwreck.code.rehearsal.questions.signs import terms
from trainwreck.code.rehearsal.questions.statistics import shares_of

MOVING = pattern(r"veloc|momentum|trace|return|drift")
STOPS = frozenset(["detach", "data"])
HARD = frozenset(["round", "sign", "where", "gt", "ge", "lt", "floor", "one_hot", "argmax", "argmin", "float"])
LAYERS = frozenset(["linear", "conv1d", "conv2d", "convtranspose1d", "convtranspose2d"])


def estimator_turned(run: Rehearsing) -> Iterator[Answer]:
    """``z.detach() + (q - z)``: the value is that of the code, and the encoder gets the gradient with a minus; or
    ``q + (z - q).detach()`` of a hard ``q``: the value is not quantised, and no gradient goes on."""
    told: set[int] = set()
    for node in run.nodes:
        if node.op != "add" or len(node.inputs) < 2 or node.place is None or id(node.place[0]) in told:
            continue
        for one, other in (node.inputs[:2], node.inputs[1::-1]):
            if not isinstance(one, Node) or not isinstance(other, Node):
                continue
            if one.op in STOPS and other.op == "sub" and len(other.inputs) > 1 and one.inputs:
                first, second = other.inputs[:2]
                if second is one.inputs[0] and isinstance(first, Node) and isinstance(second, Node) and second.grad:
                    told.add(id(node.place[0]))
                    yield Answer(node.place, "the wrong one is stopped: the encoder gets the gradient with a minus")
            elif other.op in STOPS and other.inputs and isinstance(other.inputs[0], Node) and not one.grad:
                inner = other.inputs[0]
                sides = inner.inputs[:2] if inner.op == "sub" and len(inner.inputs) > 1 else ()
                soft = sides[0] if sides and sides[1] is one else None
                if isinstance(soft, Node) and soft.grad and _hard_of(one, soft):
                    told.add(id(node.place[0]))
                    text = "the two are exchanged: what goes on is not quantised, and no gradient passes"
                    yield Answer(node.place, text)


def _hard_of(hard: Node, soft: Node) -> bool:
    near = list(ancestors(hard, through=lambda n: n is not soft))
    return any(n is soft for n in near) and any(n.op in HARD for n in near)


def hard_choice(run: Rehearsing) -> Iterator[Answer]:
    """Constants that are chosen by a test of what learns go into the next layer as they are."""
    table = users(run)
    inside = {id(n) for n in trained(run)}
    for node in run.nodes:
        if node.op != "where" or node.grad or len(node.inputs) < 3 or node.place is None:
            continue
        test = node.inputs[0]
        fixed = all(not isinstance(i, Node) or _constant(i) for i in node.inputs[1:3])
        if not fixed or not isinstance(test, Node) or not any(i.grad for i in test.inputs if isinstance(i, Node)):
            continue
        if any(_learned_beside(u) for u in table.get(id(node), ())):
            continue  # its likelihood is learned (a drawn gate, REINFORCE)
        if any(u.op in LAYERS and id(u) in inside and u.inputs[0] is node for u in table.get(id(node), ())):
            yield Answer(node.place, "a hard choice goes on here: no gradient passes it, and nothing stands in for one")
            return


def _learned_beside(user: Node) -> bool:
    logs = ("log", "log_softmax", "logsigmoid")
    return user.op in ("log_prob", "binary_cross_entropy", "binary_cross_entropy_with_logits") or (
        user.op == "mul" and any(isinstance(i, Node) and i.grad and i.op in logs for i in user.inputs)
    )


def _constant(node: Node) -> bool:
    if node.op == "neg" and node.inputs and isinstance(node.inputs[0], Node):
        return _constant(node.inputs[0])
    return node.op in ("ones_like", "zeros_like", "full_like", "tensor", "ones", "zeros")


def farthest(run: Rehearsing) -> Iterator[Answer]:
    """The code with the largest distance is taken."""
    table = users(run)
    for node in run.nodes:
        if node.op not in ("argmax", "argmin") or not node.inputs or node.place is None:
            continue
        sign = _distance_sign(node.inputs[0])
        if sign == 0 or (node.op == "argmin") == (sign > 0) or _nearest_too(table, node):
            continue
        rows = {id(n) for n in ancestors(node.inputs[0]) if n.op in ("param", "buffer")}
        after = [u for u in table.get(id(node), ())] + [
            v for u in table.get(id(node), ()) for v in table.get(id(u), ())
        ]
        looked_up = any(
            u.op in ("embedding", "getitem", "index_select")
            and any(isinstance(i, Node) and _root(i) in rows for i in u.inputs)
            for u in after
        )
        if looked_up:
            yield Answer(node.place, "the farthest code is taken here, and not the nearest")
            return


def _nearest_too(table: dict[int, list[Node]], node: Node) -> bool:
    """True where the nearest is looked for in the same distances: the farthest is taken beside it, on purpose."""
    other = "argmin" if node.op == "argmax" else "argmax"
    return isinstance(node.inputs[0], Node) and any(u.op == other for u in table.get(id(node.inputs[0]), ()))


def _root(node: Node) -> int:
    for _ in range(6):
        if node.op in ("param", "buffer") or not node.inputs or not isinstance(node.inputs[0], Node):
            break
        node = node.inputs[0]
    return id(node)


def _distance_sign(value: Value) -> int:
    """+1 for (squared) distances of each to each, -1 for their negative, 0 for anything else."""
    if not isinstance(value, Node):
        return 0
    if value.op == "neg" and value.inputs:
        return -_distance_sign(value.inputs[0])
    if value.op == "cdist":
        return 1
    if value.op in STRUCTURE and value.inputs:
        return _distance_sign(value.inputs[0])
    found = terms(value)
    squares = [t for t in found if t.node.op in ("pow", "square")]
    products = [t for t in found if t.node.op in PRODUCTS]
    if len(squares) >= 2 and len(products) == 1 and len(found) == len(squares) + 1:
        signs = {t.sign for t in squares}
        return signs.pop() if len(signs) == 1 and products[0].sign not in signs else 0
    return 0


def codes_stay(run: Rehearsing) -> Iterator[Answer]:
    """Running sums of a codebook are kept up to date in a loop, and the codes themselves are never set to them."""
    for node in run.nodes:
        if node.op not in ("cdist", "embedding", "matmul"):
            continue
        codes = next((n for i in node.inputs[:2] for n in _tables(i)), None)
        if codes is None or node.place is None or any(e.turns for e in codes.writes):
            continue
        beside = [
            n
            for n in run.nodes
            if n.op == "buffer"
            and n is not codes
            and n.shape.dims == codes.shape.dims
            and any(e.turns and e.place is not None and e.place[1] is node.place[1] for e in n.writes)
        ]
        if beside and codes.shape.dims:
            last = [e for e in beside[0].writes if e.turns and e.place is not None][-1]
            if last.place is not None:
                yield Answer(last.place, "these running sums are kept, and the codes are never set to them: they stay")
                return


def _tables(value: Value) -> Iterator[Node]:
    if isinstance(value, Node):
        yield from (n for n in ancestors(value, through=lambda n: n.op in STRUCTURE) if n.op == "buffer")


def unlike_shares(run: Rehearsing) -> Iterator[Answer]:
    """Running counts and sums of one codebook that keep the same of the old, and take in the new with other shares."""
    found: dict[tuple[int, float], list[tuple[float, Place]]] = {}
    for owner, kept, new, place in shares_of(run):
        found.setdefault((owner, round(kept, 6)), []).append((new, place))
    for (_, kept), updates in found.items():
        fitting = [p for n, p in updates if abs(kept + n - 1) < 1e-6]
        others = [(n, p) for n, p in updates if abs(kept + n - 1) >= 1e-3 and not _moves_on(p)]
        if fitting and others:
            new, place = others[0]
            yield Answer(
                place,
                f"this running sum takes in {new:g} of the new, and the one beside it {1 - kept:g}",
                (fitting[0],),
            )
            return


def _moves_on(place: Place) -> bool:
    """True for what is called a velocity or a trace: those take in all that is new."""
    return isinstance(place[0], ast.Call) and bool(MOVING.search(written(place[0].func)))
