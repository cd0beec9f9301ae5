"""Mixtures of experts: whether the load is balanced by a term of the loss."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Event, Node, Place
from trainwreck.code.rehearsal.graph import ancestors, near
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.gradients import steps
from trainwreck.code.rehearsal.questions.places import literal
from trainwreck.code.rehearsal.questions.roles import backwards
from trainwreck.code.rehearsal.questions.signs import Term, terms
from trainwreck.code.rehearsal.questions.terms import number_of

CHOICES = frozenset(["topk", "argmax", "max", "one_hot", "bincount", "multinomial", "sort", "argsort"])
MEASURES = frozenset(["sum", "mean", "var", "std", "dot", "mul", "pow", "square", "div", "log", "logsumexp"])


def balance_unused(run: Rehearsing) -> Iterator[Answer]:
    """A balance of the router's probabilities is computed, hangs in the graph, and no loss holds it."""
    if not steps(run):
        return
    events = backwards(run)
    used = {id(n) for e in events for n in ancestors(e.subject)}
    routers = _routers(run, used)
    if not routers:
        return
    weighted = {id(n): n for e in events for n in ancestors(e.subject) if n.op == "mul" and _times_zero(n)}
    for node in run.nodes:
        if not node.grad or node.place is None or not _balances(node, routers):
            continue
        if id(node) in used:
            zero = next((z for z in weighted.values() if any(n is node for n in ancestors(z))), None)
            if zero is None or zero.place is None:
                return
            yield Answer(
                weight_place(run, zero) or zero.place, "the balance of the experts is multiplied by zero", (node.place,)
            )
            return
        if not node.turns or not any(e.turns and e.turns[-1] in node.turns for e in events):
            continue
        event = next(e for e in reversed(events) if e.turns and e.turns[-1] in node.turns)
        yield Answer(_near(run, node, event), "the balance of the experts is computed, and no loss holds it",
                     (node.place,))  # fmt: skip
        return


def balance_turned(run: Rehearsing) -> Iterator[Answer]:
    """The share of the rows of each expert, times its mean probability, is pushed up: the largest expert grows."""
    events = backwards(run) if steps(run) else []
    told: set[int] = set()
    for event in events:
        routers = _routers(run, {id(n) for n in ancestors(event.subject)})
        found = terms(event.subject) if routers else []
        for term in found if any(t.sign > 0 for t in found) else ():
            if term.sign >= 0 or term.place is None or not _product(term, routers) or id(term.place[0]) in told:
                continue
            told.add(id(term.place[0]))
            text = "the balance of the experts is maximised: the expert with most of the rows is given still more"
            scaled = [n for n in ancestors(event.subject) if n.op == "mul" and n.place is not None
                      and n.place[0] is term.place[0]]  # fmt: skip
            place = next((p for n in scaled if (p := weight_place(run, n)) is not None), None) or term.place
            yield Answer(place, text, tuple(p for p in (term.node.place, event.place) if p is not None))


def _product(term: Term, routers: list[Node]) -> bool:
    """``shares * probabilities.mean(0)``: smallest where both are even. Not an entropy, which is largest there."""
    own = [n for f in term.factors for n in list(ancestors(f, through=lambda n: not n.grad))[:40]]
    even = not any(n.op in ("log", "log_softmax", "entropy", "logsumexp") for n in own)
    return even and any(n.op in SHARES for n in own) and any(term.node is r for r in routers)


SHARES = frozenset(["one_hot", "bincount", "eq", "scatter", "scatter_", "histc"])


def weight_place(run: Rehearsing, product: Node) -> Place | None:
    """Where the number of a product is written under the name that stands in it."""
    if product.place is None or product.op != "mul":
        return None
    number = next((n for i in product.inputs if (n := number_of(i)) is not None), None)
    names = [n.attr if isinstance(n, ast.Attribute) else n.id for n in ast.walk(product.place[0])
             if isinstance(n, ast.Attribute | ast.Name)]  # fmt: skip
    raw = [i for i in product.inputs if isinstance(i, int | float)]
    return literal(run, raw[0], names[:4], product.place) if number is not None and raw and names else None


def _times_zero(node: Node) -> bool:
    return any(number_of(i) == 0.0 for i in node.inputs)


def _routers(run: Rehearsing, used: set[int]) -> list[Node]:
    """Probabilities of a router: a softmax whose largest elements choose, and weight what follows."""
    found = []
    for node in run.nodes:
        if node.op not in ("softmax", "sigmoid") or not node.grad or id(node) not in used:
            continue
        found.append(node)
    picked = {id(n): n for n in found}
    chosen: set[int] = set()
    for node in run.nodes:
        if node.op in CHOICES:
            for inner in near(node, 12):
                if id(inner) in picked:
                    chosen.add(id(inner))
                if inner.op == "linear":
                    chosen |= {k for k, n in picked.items() if n.inputs and n.inputs[0] is inner}
    return [n for n in found if id(n) in chosen]


def _balances(node: Node, routers: list[Node]) -> bool:
    """A number computed from the mean or sum of a router's probabilities over the rows."""
    if node.op not in MEASURES or node.shape.open or node.shape.dims:
        return False
    near = list(ancestors(node, through=lambda n: not any(n is r for r in routers)))[:40]
    if not any(n is r for n in near for r in routers):
        return False
    averaged = [n for n in near if n.op in ("mean", "sum", "var", "std") and n is not node]
    spread = node.op in ("var", "std") or any(n.op in ("var", "std") for n in near)
    shares = any(n.op in ("one_hot", "bincount", "eq", "scatter", "scatter_", "histc") for n in near)
    return bool(averaged) and (spread or shares)


def _near(run: Rehearsing, node: Node, event: Event) -> Place:
    """The last value that was computed from the balance beside the loss; else the loss."""
    scope = event.place[1] if event.place is not None else None
    following = {id(node)}
    best: Place | None = node.place if node.place is not None and node.place[1] is scope else None
    for later in run.nodes:
        if (
            later.serial > node.serial
            and later.serial < event.serial
            and any(isinstance(i, Node) and id(i) in following for i in later.inputs)
        ):
            following.add(id(later))
            if later.grad and later.place is not None and later.place[1] is scope:
                best = later.place
    if best is not None:
        return best
    subject = event.subject
    if isinstance(subject, Node) and subject.place is not None:
        for place in (*reversed(subject.stack), subject.place):
            if place[1] is scope:
                return place
        return subject.place
    assert node.place is not None
    return node.place


__all__ = ["balance_turned", "balance_unused"]
