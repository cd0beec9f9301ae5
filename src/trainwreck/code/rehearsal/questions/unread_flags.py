"""Flags of the tokens that count (answers, not prompts; real ones, not padding), made beside the tokens and read by
nothing."""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Event, Items, Node, Place, Value
from trainwreck.code.rehearsal.graph import ancestors, parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.marked_masks import marked
from trainwreck.code.rehearsal.questions.roles import STRUCTURE, backwards, users
from trainwreck.code.rehearsal.questions.terms import number_at, number_of, terms

TESTS = frozenset(["eq", "ne", "invert", "lt", "gt", "le", "ge"])
PASSES = STRUCTURE | {"float", "bool", "stack", "cat", "tensor", "as_tensor", "array", "or", "and", "logical_not"}
SCORES = frozenset(["gather", "take_along_dim", "log_softmax"])
MOST = 40
ERRORS = frozenset(["pow", "square", "abs"])
TABLE = 2
"""Axes of flags that tell tokens: samples and positions."""


def never_read(run: Rehearsing) -> Iterator[Answer]:
    """The losses of the tokens are averaged over all of them, and the flags that were made in the same call to tell
    which ones count are used nowhere."""
    table = users(run)
    for event in backwards(run):
        mean = _plain_mean(event)
        if mean is None or not event.turns:
            continue
        behind = {id(n): n for n in ancestors(event.subject)}
        made = {tuple(id(p[0]) for p in n.stack) for n in behind.values() if n.stack and event.turns[0] in n.turns}
        for node in run.nodes:
            together = bool(node.stack) and tuple(id(p[0]) for p in node.stack) in made
            alone = id(node) not in table and id(node) not in behind
            if not alone or not together or not _flags(node) or not _same_round(node, event):
                continue
            if _handed(run, node) or node.place is None or mean.place is None:
                continue
            text = "the loss is averaged over all tokens, and the flags of those that count are read by nothing"
            yield Answer(mean.place, text, (node.place,))
            return


def _same_round(node: Node, event: Event) -> bool:
    return bool(node.turns) and node.turns[0] is event.turns[0]


def _plain_mean(event: Event) -> Node | None:
    """The average of a loss of each token, of which nothing was taken out."""
    found = terms(event.subject)
    for term in found:
        over_all = [r for r in term.reductions if not r.inputs[1:] and not r.options]
        if len(over_all) != 1 or any(r.op != "mean" for r in term.reductions) or term.factors:
            continue
        whole = over_all[0]
        axes = [i for i in (*whole.inputs[1:], whole.options.get("dim"), whole.options.get("axis")) if i is not None]
        behind = list(ancestors(term.node, through=lambda n: n.grad))
        each = any(n.op in SCORES or n.options.get("reduction") == "none" for n in behind) or term.node.op in ERRORS
        kept = any(n.options.get("ignore_index") is not None or n.op in ("where", "masked_fill") for n in behind[:MOST])
        if not axes and each and not kept:
            return whole
    return None


def _flags(node: Node) -> bool:
    """True for zeros and ones, of each token of each sample."""
    if node.op == "setitem":
        return len(node.shape.dims) == TABLE and marked(node) is False
    if node.op not in ("float", "tensor", "as_tensor", "stack", "bool", "long", "int", "to"):
        return False
    dims = node.shape.dims
    if not node.shape.open and len(dims) != TABLE:
        return False
    if node.op in ("tensor", "as_tensor"):
        found = {v for v in _numbers(node.inputs[:1])}
        return found == {0, 1}
    core = [n for n in ancestors(node, through=lambda n: n.op in PASSES) if n.op not in PASSES]
    tested = [n for n in ancestors(node, through=lambda n: n.op in PASSES) if n.op in TESTS]
    return bool(tested) and all(n.op in TESTS | {"zeros", "ones"} for n in core)


def _numbers(value: Value, depth: int = 0) -> Iterator[Value]:
    """All that stands in a list of lists; None for what isn't written out."""
    items = value if isinstance(value, tuple) else value.items if isinstance(value, Items) else ()
    for item in items:
        if isinstance(item, Items | tuple) and depth < TABLE + 1:
            yield from _numbers(item, depth + 1)
        else:
            yield item if isinstance(item, int | float) else None


def _handed(run: Rehearsing, node: Node) -> bool:
    """True where it goes into a call that may keep or show it."""
    for event in run.tape:
        given = (*event.args, *event.options.values())
        if event.serial > node.serial and any(p is node for v in given for p in parts(v)):
            return True
    return False


def sampled_at_zero(run: Rehearsing) -> Iterator[Answer]:
    """Scores are divided by a temperature of zero before a token is drawn."""
    for node in run.nodes:
        if node.op not in ("multinomial", "sample", "gumbel_softmax"):
            continue
        given = node.inputs[0] if node.inputs else None
        if node.owner is not None:
            given = node.owner.attributes.get("logits", node.owner.attributes.get("probs", given))
        way = ancestors(given, through=lambda n: n.op in STRUCTURE | {"softmax", "masked_fill", "where", "div"})
        for divided in (n for n in way if n.op == "div" and len(n.inputs) > 1):
            if number_of(divided.inputs[1]) == 0 and (place := _written(run, divided)) is not None:
                text = "the scores are divided by this, a temperature of zero, before a token is drawn"
                yield Answer(place, text, tuple(p for p in (divided.place, node.place) if p is not None))
                return


def _written(run: Rehearsing, divided: Node) -> Place | None:
    return number_at(run, divided, 1) or divided.place


__all__ = ["never_read", "sampled_at_zero"]
