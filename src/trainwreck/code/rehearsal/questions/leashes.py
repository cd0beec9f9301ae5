"""What holds a policy near a reference: estimates of their divergence written by hand, and the sign that they get."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Place, Value, is_module
from trainwreck.code.rehearsal.graph import ancestors, near, parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.gradients import held, steps
from trainwreck.code.rehearsal.questions.paid import leash
from trainwreck.code.rehearsal.questions.policy import log_probability, surrogates
from trainwreck.code.rehearsal.questions.preferences import REFERENCE, alias
from trainwreck.code.rehearsal.questions.roles import backwards, core
from trainwreck.code.rehearsal.questions.terms import (
    Term,
    losses_of,
    number_at,
    number_of,
    parameters_behind,
    terms,
)

LIKELIHOODS = frozenset(["log_prob", "log_softmax", "logsigmoid", "gather", "logsumexp"])


def turned_round(run: Rehearsing) -> Iterator[Answer]:
    """A divergence from the reference that the loss rewards: it is taken off where it should be added."""
    for event, found in losses_of(run):
        for term in found:
            if not _counted_alike(term, found) or (
                _expected(term) * term.sign >= 0 if _expected(term) else term.sign >= 0
            ):
                continue
            if not (_expected(term) or _exponential(term, found) or _squared(term) or _measured(term, found)):
                continue
            if any(t.sign > 0 and t.node is not term.node and (_exponential(t, found) or _squared(t)) for t in found):
                continue  # near it on some data, away from it on others
            place = _decides(run, term)
            if place is not None:
                text = "what holds the policy near its reference lowers the loss as it grows: it drives them apart"
                yield Answer(place, text, (event.place,) if event.place is not None else ())
                return


def linear(run: Rehearsing) -> Iterator[Answer]:
    """``reference - policy`` of the actions that the policy is rewarded for is added: the divergence's negative."""
    for event, found in losses_of(run):
        rewarded = [n for t in found for n in ancestors(t.node, through=_not_param) if n.op == "exp" and n.inputs]
        ratios = [n.inputs[0] for n in rewarded if isinstance(n.inputs[0], Node) and _of_two(n.inputs[0])]
        mine = {id(c) for n in ratios for c in core(n.inputs[0])}
        for term in found:
            if (
                not _counted_alike(term, found)
                or term.sign >= 0
                or id(term.node) not in mine
                or abs(term.weight) > LARGEST_WEIGHT
            ):
                continue
            on_way = {id(n) for n in (*term.path, term.node)}
            differences = [n for n in term.path if n.op == "sub" and len(n.inputs) > 1 and id(n.inputs[1]) in on_way]
            if not differences or not _of_two(differences[-1]) or any(differences[-1] is r for r in ratios):
                continue
            if _exponential_of(differences[-1], found) or differences[-1].place is None:
                continue
            text = "reference minus policy is the divergence's negative: what is added here drives them apart"
            yield Answer(differences[-1].place, text, (event.place,) if event.place is not None else ())
            return


def own_leash(run: Rehearsing) -> Iterator[Answer]:
    """What should hold the policy near a reference is computed with the policy itself, beside the old likelihoods."""
    for event in backwards(run):
        found = [n for n in ancestors(event.subject, through=_not_param) if n.op == "sub" and _of_two(n)]
        stills = {}
        for node in found:
            live, still = node.inputs[:2] if node.inputs[0].grad else node.inputs[1::-1]
            mine, other = parameters_behind(live, through_grad=True), parameters_behind(still)
            if mine and mine.keys() == other.keys():
                stills[id(still)] = still
        for one in stills.values():
            root = next((n for n in ancestors(one) if n.op in LIKELIHOODS and n.stack), None)
            words = ast.unparse(root.stack[-1][0]) if root is not None else ""
            place = alias(run, parameters_behind(one)) if len(stills) > 1 and REFERENCE.search(words) else None
            if place is None and len(stills) > 1 and root is not None and not _in_ratio(event.subject, one):
                place = root.stack[-1] if _copy_unasked(run, parameters_behind(one)) else None
            if place is not None:
                text = "the reference is the policy itself: nothing holds it near where it started"
                yield Answer(place, text, (event.place,) if event.place is not None else ())
                return


def _in_ratio(loss: Value, still: Value) -> bool:
    """True for the old likelihoods of a clipped objective."""
    clipped = (n for n in ancestors(loss, through=_not_param) if n.op in ("minimum", "min", "maximum", "max"))
    below = (n for c in clipped for n in ancestors(c, through=_not_param) if n.op == "sub")
    return any(i is still for n in below for i in n.inputs[:2])


def _copy_unasked(run: Rehearsing, params: dict[int, Node]) -> bool:
    """True where a copy of the network with these parameters was made, and nothing was ever asked of it."""
    for obj in run.objects:
        original = obj.copy_of
        if original is None or not is_module(obj) or not {id(p) for p in run.parameters(original)[0]} >= params.keys():
            continue
        own = {id(p) for p in run.parameters(obj)[0]}
        if own and not any(id(n) in own for node in run.nodes for i in node.inputs for n in parts(i)):
            return True
    return False


DRAWN = frozenset(["sample", "multinomial", "argmax", "item", "param"])


def _asked(value: Node) -> set[int]:
    """The parameters of the network that gives a likelihood, not of the one that what is judged was drawn from."""
    return {id(n) for n in ancestors(value, through=lambda n: n.op not in DRAWN) if n.op == "param"}


def paid_to_leave(run: Rehearsing) -> Iterator[Answer]:
    """The reward grows with the divergence from the reference, where it should fall."""
    trained = {id(p) for s in steps(run) for p in held(s)}
    for event, found in surrogates(run):
        for node in ancestors(found.advantage):
            if node.op not in ("add", "sub") or len(node.inputs) < 2 or node.place is None:
                continue
            one = leash(node.inputs[1])
            if one is None:
                continue
            mine, other = (_asked(n) for n in (one.first, one.second))
            apart = bool(mine & trained) and not other & trained and bool(other)
            turned = bool(other & trained) and not mine & trained and bool(mine)
            sign = (1 if node.op == "add" else -1) * (1 if one.weight > 0 else -1)
            if (apart and sign > 0) or (turned and sign < 0):
                text = "the reward grows with the distance from the reference here: it has to be taken off"
                yield Answer(node.place, text, (event.place,) if event.place is not None else ())
                return


def _factors(term: Term) -> list[int]:
    return sorted(id(f) for f in term.factors)


def _counted_alike(term: Term, found: list[Term]) -> bool:
    """True where nothing but numbers stands in front of a term, or what also stands in front of the clipped objective
    beside it (a mask of the tokens, their number)."""
    clipped = [t for t in found if t.node.op in ("minimum", "min", "maximum", "max") and t.node is not term.node]
    return not term.factors or any({*_factors(term)} <= {*_factors(t)} for t in clipped)


LARGEST_WEIGHT = 0.5
"""A term of likelihoods that counts more than this is no leash."""


def _not_param(node: Node) -> bool:
    return node.op != "param"


def _exponential_of(difference: Node, found: list[Term]) -> bool:
    return any(t.node.op == "exp" and t.node.inputs and _equal(t.node.inputs[0], difference) for t in found)


def _equal(one: Value, other: Value) -> bool:
    """True for one difference, or the same one written twice."""
    twice = isinstance(one, Node) and isinstance(other, Node) and one.op == other.op == "sub"
    return one is other or (twice and all(a is b for a, b in zip(one.inputs, other.inputs, strict=False)))


def misbuilt(run: Rehearsing) -> Iterator[Answer]:
    """``exp(d) + d``: the estimate ``exp(d) - d - 1`` is least where both agree, this one is not."""
    for event, found in losses_of(run):
        for term in found:
            difference = term.node.inputs[0] if term.node.op == "exp" and term.node.inputs else None
            if not _counted_alike(term, found) or not isinstance(difference, Node) or not _of_two(difference):
                continue
            for one in terms(difference):
                again = [t for t in found if t.node is one.node and _factors(t) == _factors(term)]
                for other in again:
                    same = math.isclose(other.weight, one.weight * term.weight, rel_tol=1e-6)
                    place = next((n.place for n in reversed(other.path) if n.op in ("add", "sub") and n.place), None)
                    if same and place is not None:
                        text = "exp(d) + d has no minimum where policy and reference agree: exp(d) - d - 1 has"
                        yield Answer(place, text, (event.place,) if event.place is not None else ())
                        return


def _exponential(term: Term, found: list[Term]) -> bool:
    """``exp(d) - d`` of a difference of log-probabilities: both terms stand in the loss, with opposite signs."""
    difference = term.node.inputs[0] if term.node.op == "exp" and term.node.inputs else None
    if not isinstance(difference, Node) or not _of_two(difference):
        return False
    for one in terms(difference):
        back = [t for t in found if t.node is one.node and _factors(t) == _factors(term)]
        if not any(math.isclose(t.weight, -one.weight * term.weight, rel_tol=1e-6) for t in back):
            return False
    return True


def _expected(term: Term) -> int:
    """+1 for ``p * (log p - log q)`` of the policy that learns, the divergence itself; -1 for it turned round."""
    sides = [i for i in term.node.inputs[:2] if isinstance(i, Node) and i.grad] if term.node.op == "mul" else []
    for share, difference in (sides, sides[::-1]) if len(sides) == 2 else ():
        logs = [i for i in difference.inputs[:2] if isinstance(i, Node)] if difference.op == "sub" else []
        if len(logs) != 2 or not _of_two(difference) or share.op not in ("exp", "softmax"):
            continue
        live = logs[0] if logs[0].grad else logs[1]
        own = share.inputs[0] is live or (share.op == "softmax" and share.inputs[0] is live.inputs[0])
        if own:
            return 1 if live is logs[0] else -1
    return 0


def _measured(term: Term, found: list[Term]) -> bool:
    """``kl_divergence`` of a distribution that learns and one that is held, beside a ratio of likelihoods."""
    sides = term.node.inputs[:2] if term.node.op == "kl_divergence" else ()
    live = [any(n.grad for n in parts(side)) for side in sides]
    rewarded = any(n.op == "exp" for t in found if t is not term for n in (t.node, *near(t.node, 6)))
    return sorted(live) == [False, True] and rewarded


def _squared(term: Term) -> bool:
    """The square of a difference of log-probabilities."""
    node = term.node
    squares = node.op == "square" or (node.op == "pow" and node.inputs[1:2] in ((2,), (2.0,)))
    return squares and isinstance(node.inputs[0], Node) and _of_two(node.inputs[0])


def _of_two(difference: Node) -> bool:
    """True for the log-probability of one network less that of another, or of the same one before."""
    if difference.op in ("clamp", "clip") and difference.inputs and isinstance(difference.inputs[0], Node):
        difference = difference.inputs[0]
    if difference.op != "sub" or len(difference.inputs) < 2:
        return False
    one, other = difference.inputs[:2]
    if not isinstance(one, Node) or not isinstance(other, Node) or one.grad == other.grad:
        return False
    live, still = (one, other) if one.grad else (other, one)
    return log_probability(live) is not None and any(n.op in LIKELIHOODS for n in ancestors(still))


def _decides(run: Rehearsing, term: Term) -> Place | None:
    """Where the sign is turned: in the estimate, or where it is added to what is itself taken off the loss."""
    inward = list(reversed(term.path))
    for node in inward:
        for number, item in enumerate(node.inputs[:2] if node.op == "mul" else ()):
            if (known := number_of(item)) is not None and known < 0:
                return number_at(run, node, number)  # the coefficient itself
    for at, node in enumerate(inward):
        mine = [t for t in terms(node) if t.node is term.node]
        if not mine or mine[0].sign > 0:
            continue
        if node.op in ("add", "sub"):
            return node.place
        sums = [n for n in inward[:at] if n.op in ("add", "sub") and _with_others(n, term)]
        return sums[-1].place if sums else node.place
    return term.node.place


def _with_others(node: Node, term: Term) -> bool:
    """True for a sum of the estimate and something else that is trained."""
    behind = {id(n) for i in term.node.inputs for n in ancestors(i)}
    return any(t.node is not term.node and id(t.node) not in behind for t in terms(node))
