"""Documents packed into one row: what was worked out to keep them apart, and is not used."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.pattern import pattern
from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Place, Value
from trainwreck.code.rehearsal.graph import ancestors
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.roles import STRUCTURE, trained, users
from trainwreck.code.rehearsal.questions.visibility import ORDERED, Masked, attentions, documents, of_pairs, seen
from trainwreck.code.rehearsal.trial.bench import Unknown
from trainwreck.code.scopes import Scope

DOCUMENT = pattern(r"^(doc|docs|document|documents|seg|segs|segment|segments)(_?(id|ids|index|mask))?$")
POSITION = pattern(r"^(pos|position)(_?(id|ids|s|index|idx|itions?))?$")


def unheeded(run: Rehearsing) -> Iterator[Answer]:
    """Which tokens are of one document is worked out beside an attention, and nothing uses it."""
    table = users(run)
    learned = {id(n.place[0]) for n in trained(run) if n.place is not None}
    for node in run.nodes:
        if node.op not in ("eq", "ne") or node.place is None or not of_pairs(node) or not _outer(node):
            continue
        if _used(node, table) or not attentions(run):
            continue
        after = [m.node.place for m in attentions(run) if m.node.serial > node.serial and m.node.place is not None]
        inside = [place for place in after if id(place[0]) in learned]
        if inside:
            text = "which tokens are of one document is worked out here, and no mask uses it: documents see one another"
            yield Answer(node.place, text, (inside[0],))
            return


def documents_unread(run: Rehearsing) -> Iterator[Answer]:
    """The attention's function is handed which token is of which document, and does not look at it."""
    told: set[int] = set()
    for masked in attentions(run):
        if _of_order_alone(masked) and (place := _unread_around(masked.node)) is not None:
            at = next((p for _, v, _ in masked.steps for p in _places(v, place[1])), masked.node.place)
            if at is not None and id(at[0]) not in told:
                told.add(id(at[0]))
                text = "which tokens are of one document is handed in and not looked at: documents see one another"
                yield Answer(at, text, (masked.node.place,) if masked.node.place is not None else ())
                return
    for node in trained(run):
        plain = node.op == "scaled_dot_product_attention" and node.options.get("is_causal") is True
        if not plain or node.options.get("attn_mask") is not None:
            continue
        if node.place is None or node.place[1].kind != "function" or id(node.place[0]) in told:
            continue
        scope = node.place[1]
        read = {n.id for n in ast.walk(scope.node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
        if any(DOCUMENT.search(name) and name not in read and _handed(node, name) for name in scope.params):
            told.add(id(node.place[0]))
            text = "which tokens are of one document is handed in and not looked at: documents see one another"
            yield Answer(node.place, text)


def starts_again(run: Rehearsing) -> Iterator[Answer]:
    """Positions begin anew with each document of a row, and the mask knows of no documents."""
    for masked in attentions(run):
        if not _of_order_alone(masked):
            continue
        for node in ancestors(masked.node):
            given = node.inputs[0] if node.op == "embedding" and node.inputs else None
            if not isinstance(given, Node) or given.grad or not _restarts(given):
                continue
            places = [n.place for _, v, _ in masked.steps if isinstance(v, Node) for n in ancestors(v)]
            place = next((p for p in places if p is not None), masked.node.place)
            if place is not None:
                text = (
                    "positions begin anew with each document of the row, and this mask lets documents see one another"
                )
                yield Answer(place, text, (node.place,) if node.place is not None else ())
                return


ORDER = frozenset(
    """tril triu ones full zeros arange expand unsqueeze getitem bool invert logical_not view reshape repeat to float
    repeat_interleave masked_fill size attribute lt le gt ge eq part either buffer generate_square_subsequent_mask
    ones_like full_like tri sub add int len""".split()
)
"""What a mask is made with that knows nothing but which token comes before which."""


def _of_order_alone(masked: Masked) -> bool:
    """True for a mask that looks at no data, but for how many tokens there are."""
    masks = [v for _, v, _ in masked.steps if isinstance(v, Node)]
    inside = [n for v in masks for n in ancestors(v, through=lambda n: n.op not in ("size", "attribute", "len"))]
    return bool(inside) and all(n.op in ORDER for n in inside) and any(n.op in ORDERED for n in inside)


def _restarts(positions: Node) -> bool:
    """``index - start``, where the start is the last place at which the document changed."""
    behind = list(ancestors(positions, through=lambda n: n.op not in ("embedding", "param")))
    last = any(n.op in ("cummax", "maximum.accumulate") for n in behind)
    changed = any(n.op in ("ne", "eq", "diff") and not n.grad for n in behind)
    return positions.op in ("sub", *STRUCTURE) and last and changed and any(n.op == "arange" for n in behind)


def _unread_around(node: Node) -> tuple[str, Scope] | None:
    """A function on the way to an attention that takes which token is of which document and does not read it."""
    for scope in {
        id(p[1]): p[1] for p in (*node.stack, node.place) if p is not None and p[1].kind == "function"
    }.values():
        read = {n.id for n in ast.walk(scope.node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
        for name in scope.params:
            if DOCUMENT.search(name) and name not in read and _handed(node, name, scope):
                return name, scope
    return None


def _places(value: Value, scope: Scope) -> Iterator[Place]:
    """Where a mask is made in this function."""
    for node in ancestors(value) if isinstance(value, Node) else ():
        if node.place is not None and node.place[1] is scope and node.op in ORDER:
            yield node.place


def _handed(node: Node, name: str, scope: Scope | None = None) -> bool:
    """False where the call of the function leaves this argument at its default."""
    assert node.place is not None
    scope = scope or node.place[1]
    way = [*node.stack, node.place]
    inside = next((n for n, at in enumerate(way) if at[1] is scope), 0)
    outer = [at for at in way[:inside] if isinstance(at[0], ast.Call)]
    if not outer:
        return True
    call = outer[-1][0]
    assert isinstance(call, ast.Call)
    if any(k.arg in (None, name) for k in call.keywords) or any(isinstance(a, ast.Starred) for a in call.args):
        return True
    names = [p for p in scope.params if p not in ("self", "cls")]
    return names.index(name) < len(call.args) if name in names else True


def _outer(node: Node) -> bool:
    """True for a comparison of each with each: ``ids[:, :, None] == ids[:, None, :]``."""
    sides = [i for i in node.inputs[:2] if isinstance(i, Node)]
    return len(sides) == 2 and all(s.op in ("getitem", "unsqueeze", "view", "reshape") for s in sides)


def _used(node: Node, table: dict[int, list[Node]]) -> bool:
    queue, seen_ = [node], {id(node)}
    while queue:
        for user in table.get(id(queue.pop()), ()):
            if user.grad:
                return True
            if id(user) not in seen_ and len(seen_) < 200:
                seen_.add(id(user))
                queue.append(user)
    return len(seen_) > 1  # it went into something else


def positions_unheeded(run: Rehearsing) -> Iterator[Answer]:
    """Positions are handed to a network that keeps documents apart, and it counts along the whole row instead."""
    for masked in attentions(run):
        try:
            allowed = seen(masked, documents)
        except Unknown:
            continue
        import numpy as np

        size = allowed.shape[-1]
        if allowed.shape[-2] != size or size < 4:
            continue
        group = np.arange(size) // -(-size // 2)
        if allowed[..., group[:, None] != group[None, :]].any():
            continue
        for node in ancestors(masked.node):
            given = node.inputs[0] if node.op == "embedding" and node.inputs else None
            if not isinstance(given, Node) or node.place is None or not counts_along(given):
                continue
            if _unread(node.place[1]) or _left_over(run, node.place[1]):
                text = "positions run on over all documents of a row: those that are handed in here are not read"
                yield Answer(node.place, text, (masked.node.place,) if masked.node.place is not None else ())
                return


def counts_along(node: Node) -> bool:
    return all(
        n.op in ("arange", "size", "attribute", "getitem", "unsqueeze", "expand", "len", "batch")
        for n in (*[node], *[i for i in node.inputs if isinstance(i, Node)])
    ) and any(n.op == "arange" for n in ancestors(node))


def _left_over(run: Rehearsing, scope: Scope) -> bool:
    """True where the place at which each document starts is worked out beside, and nothing uses it."""
    table = users(run)
    for node in run.nodes:
        last = node.op in ("cummax", "cumsum", "part", "where") and node.place is not None and node.place[1] is scope
        if last and not table.get(id(node)) and any(n.op in ("eq", "ne") for n in ancestors(node)):
            return True
    return False


def _unread(scope: Scope) -> bool:
    """True where a function takes positions and does not look at them."""
    read = {n.id for n in ast.walk(scope.node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    return any(POSITION.search(name) and name not in read for name in scope.params)
