"""Gradients that are to be reversed, so that features hide from a head what it is taught: are they?"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Class, Items, Node, Place, Value
from trainwreck.code.rehearsal.graph import ancestors, parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.derivatives import Case, worked_through
from trainwreck.code.rehearsal.questions.gradients import held, steps
from trainwreck.code.rehearsal.questions.roles import JOINS
from trainwreck.code.rehearsal.questions.terms import Term, losses_of
from trainwreck.code.rehearsal.state import Spent

TELLS = frozenset(
    "binary_cross_entropy binary_cross_entropy_with_logits cross_entropy nll_loss soft_margin_loss mse_loss".split()
)
CONSTANTS = frozenset(["zeros", "ones", "full", "zeros_like", "ones_like", "full_like", "new_zeros", "new_ones"])
SAME = frozenset(["clone", "view", "view_as", "reshape", "contiguous", "to", "float", "long", "unsqueeze", "identity"])
SIDES = 2


def not_reversed(run: Rehearsing) -> Iterator[Answer]:
    """Features go into a head that is taught where each sample comes from, through a function that leaves them as they
    are and hands the gradient back with its own sign: they learn to tell it, and are to hide it.

    What each sample comes from is no label of the data: zeros for one part of the batch and ones for the other."""
    told: set[int] = set()
    for event, found in losses_of(run):
        apart = len({_constant(t.node.inputs[1]) for t in found if _tells(t)} - {None}) > 1
        for term in found:
            if not _tells(term):
                continue
            scores, target = term.node.inputs[:SIDES]
            if not _of_parts(target) and not (apart and _constant(target) is not None):
                continue
            for node in ancestors(scores, through=lambda n: n.grad and n.op != "apply"):
                cls = node.inputs[0] if node.op == "apply" and node.inputs else None
                if not isinstance(cls, Class) or id(cls.scope.node) in told:
                    continue
                told.add(id(cls.scope.node))
                place = _handed_on(run, cls, node)
                if place is not None and _learned(run, node):
                    text = (
                        "the gradient is handed on with its own sign: the features learn to tell what they should hide"
                    )
                    yield Answer(place, text, tuple(p for p in (term.node.place, event.place) if p is not None))
                    return


def _tells(term: Term) -> bool:
    return term.node.op in TELLS and term.sign > 0 and len(term.node.inputs) >= SIDES


def _constant(target: Value) -> str | None:
    """What all samples of a part are labelled with: zeros, or ones."""
    while isinstance(target, Node) and target.op in SAME and target.inputs:
        target = target.inputs[0]
    if not isinstance(target, Node) or target.op not in CONSTANTS:
        return None
    kind = next(k for k in ("zeros", "ones", "full") if k in target.op)
    given = (*target.inputs[1:], target.options.get("fill_value"))
    return kind if kind != "full" else f"full {[i for i in given if isinstance(i, int | float)][-1:]}"


def _of_parts(target: Value) -> bool:
    """True for zeros for one part and ones for the other, put behind one another."""
    while isinstance(target, Node) and target.op in SAME and target.inputs:
        target = target.inputs[0]
    if not isinstance(target, Node) or target.op not in JOINS or not target.inputs:
        return False
    held_ = target.inputs[0]
    items = held_.items if isinstance(held_, Items) and not held_.more else held_ if isinstance(held_, tuple) else ()
    kinds = [_constant(i) for i in items]
    return len(items) >= SIDES and None not in kinds and len(set(kinds)) > 1


def _handed_on(run: Rehearsing, cls: Class, node: Node) -> Place | None:
    """Where ``backward`` returns the gradient with its own sign, of a function that leaves its input as it is."""
    with suppress(Spent, RecursionError):
        case = worked_through(run, cls, node.inputs[1:])
        if case is None or not case.given or _same(case.output) is not case.given[0]:
            return None
        slope = case.returned[0]
        if isinstance(slope, Node) and _keeps_sign(slope, case):
            return slope.place or case.output.place
    return None


def _same(value: Value) -> Value:
    while isinstance(value, Node) and value.inputs and (value.op in SAME or (value.op == "mul" and 1 in value.inputs)):
        value = next((i for i in value.inputs if isinstance(i, Node)), None)
    return value


def _keeps_sign(slope: Node, case: Case) -> bool:
    """True for the gradient itself, times positive numbers and what the program calls the function with."""
    at: Value = slope
    for _ in range(8):
        if at is case.upstream:
            return True
        if not isinstance(at, Node) or not at.inputs:
            return False
        if at.op in SAME:
            at = at.inputs[0]
            continue
        if at.op not in ("mul", "div"):
            return False
        onward = [i for i in at.inputs[:SIDES] if isinstance(i, Node) and any(n is case.upstream for n in ancestors(i))]
        others = [i for i in at.inputs[:SIDES] if not any(i is o for o in onward)]
        if len(onward) != 1 or not all(_positive(i, case) for i in others):
            return False
        at = onward[0]
    return False


def _positive(factor: Value, case: Case) -> bool:
    """False for a number below zero, and for what may be one: a factor that the program turns round itself."""
    if isinstance(factor, int | float):
        return factor > 0
    called = next((c for g, c in zip(case.given, case.called, strict=True) if g is factor), None)
    for value in parts(called):
        for node in ancestors(value, through=lambda n: n.op in ("mul", "div", "either", "tensor", *SAME)):
            turned = node.op == "neg" or any(isinstance(i, int | float) and i < 0 for i in node.inputs)
            if turned or node.op in ("argument", "unknown", "opaque", "option", "item", "param"):
                return False
    return isinstance(called, Node) or (isinstance(called, int | float) and called > 0)


def _learned(run: Rehearsing, node: Node) -> bool:
    """True where an optimizer moves what made the features."""
    mine = {id(p) for s in steps(run) if s.turns for p in held(s)}
    return any(n.op == "param" and id(n) in mine for i in node.inputs[1:] for n in ancestors(i))
