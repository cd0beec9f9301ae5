"""What a critic is trained towards: returns, not what is left of them when its own values are taken off."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Place
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.bootstrap import differences
from trainwreck.code.rehearsal.questions.roles import core
from trainwreck.code.rehearsal.questions.terms import losses_of, parameters_behind, squared_error

EMPTY = frozenset(["zeros", "zeros_like", "empty", "empty_like", "new_zeros", "full"])
PAIRS = frozenset(["smooth_l1_loss", "huber_loss", "l1_loss"])


def advantage_as_target(run: Rehearsing) -> Iterator[Answer]:
    """The critic learns the advantage: the sum of temporal differences, without the values that were taken off."""
    found_errors = differences(run)
    errors = {id(d.node) for d in found_errors}
    if not errors:
        return
    for event, found in losses_of(run):
        for term in found:
            pair = squared_error(term.node)
            if pair is None and term.node.op in PAIRS and len(term.node.inputs) > 1:
                pair = term.node.inputs[0], term.node.inputs[1]
            if pair is None or not isinstance(pair[0], Node) or not isinstance(pair[1], Node):
                continue
            if pair[0].grad == pair[1].grad:
                continue
            target, learner = (pair[1], pair[0]) if pair[0].grad else pair
            made = [n for n in core(target) if n.op not in EMPTY]
            if not made or not all(n.op == "add" and any(id(i) in errors for i in n.inputs[:2]) for n in made):
                continue
            values = [parameters_behind(d.own.node).keys() for d in found_errors]
            if any(values) and not any(parameters_behind(learner).keys() <= v for v in values):
                continue  # another head, for the advantage itself
            text = "the critic is trained towards the advantage; the value that was taken off belongs to its target"
            place = _given_back(term.node, made[0]) or term.node.place
            if place is not None:
                yield Answer(place, text, (event.place,) if event.place is not None else ())
                return


def _given_back(loss: Node, made: Node) -> Place | None:
    """What the function that gathers the advantages returns, where the loss is computed in another."""
    scope = made.place[1] if made.place is not None else None
    if scope is None or loss.place is None or loss.place[1] is scope or isinstance(scope.node, ast.Module):
        return None
    value = next((v for v in scope.returns if v is not None), None)
    if isinstance(value, ast.Tuple):
        texts = [ast.unparse(e) for e in value.elts]
        return (value, scope) if len(set(texts)) < len(texts) else None  # the advantage in place of the return
    if value is None:
        return None
    return value, scope


__all__ = ["advantage_as_target"]
