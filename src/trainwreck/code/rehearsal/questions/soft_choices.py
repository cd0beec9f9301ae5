"""Soft choices (Gumbel-softmax, by torch or by hand): how their temperature goes with the number of the step."""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Place, Value, candidates
from trainwreck.code.rehearsal.graph import near
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.exploring import worked_out
from trainwreck.code.rehearsal.questions.roles import trained

LATE = 10**7
"""A turn after all that are counted: the last one of a loop whose number is known."""
SLIGHT = 0.05
FROZEN = 1e-3
"""Below this a relaxed choice is a hard one, and its gradient is zero or not finite; published schedules end at 0.1 to
0.5 (Jang et al., arXiv:1611.01144)."""
NOISE = 8
"""Values between the sum of scores and noise and the two logarithms that make Gumbel noise of uniform draws."""


def heating(run: Rehearsing) -> Iterator[Answer]:
    """The temperature of a soft choice rises with the number of the step, or its end is taken for its beginning."""
    from trainwreck.code.rehearsal.questions.adversarial import pulls

    for node, tau in _choices(run):
        leaves = list(pulls(tau))
        proof = (node.place,) if node.place is not None else ()
        if leaves and all(sign > 0 and leaf.op == "counter" for sign, leaf in leaves) and tau.place is not None:
            yield Answer(tau.place, "the temperature grows while the training goes on", proof)
            return
        for one in candidates(tau):
            if isinstance(one, Node) and (found := _schedule(one)) is not None:
                yield Answer(found[0], found[1], proof)
                return


def _schedule(tau: Node) -> tuple[Place, str] | None:
    """What is wrong with a temperature that hangs on the number of the step alone."""
    if tau.place is None:
        return None
    if (capped := _capped(tau)) is not None:
        return tau.place, f"the temperature is held below {capped:g}, where it should stay above: min is taken for max"
    first, last = worked_out(tau, 0), worked_out(tau, LATE)
    if first is None or last is None or first <= 0:
        return None
    if last > first * (1 + SLIGHT):
        return tau.place, f"the temperature grows while the training goes on: from {first:.3g} to {min(last, 1e9):.3g}"
    if last < FROZEN < first:
        return tau.place, f"the temperature falls to {last:.1g}: nothing holds it where the choice still has a gradient"
    return None


def _capped(tau: Node) -> float | None:
    """``min(falling, floor)`` of something that begins above the floor."""
    if tau.op != "min" or len(tau.inputs) != 2:
        return None
    for falling, floor in (tau.inputs, tau.inputs[::-1]):
        if isinstance(falling, Node) and isinstance(floor, int | float):
            first, second = worked_out(falling, 0), worked_out(falling, 1)
            if first is not None and second is not None and second < first and floor < first:
                return float(floor)
    return None


def _choices(run: Rehearsing) -> Iterator[tuple[Node, Node]]:
    """Soft choices that are trained, and the temperature of each where it is worked out."""
    for node in trained(run):
        tau: Value = None
        if node.op == "gumbel_softmax":
            tau = node.options.get("tau", node.inputs[1] if len(node.inputs) > 1 else None)
        elif node.op == "softmax":
            divided = node.inputs[0] if node.inputs else None
            if isinstance(divided, Node) and divided.op == "div" and _noisy(divided.inputs[0]):
                tau = divided.inputs[1]
        if isinstance(tau, Node) and tau.place is not None:
            yield node, tau


def _noisy(scores: Value) -> bool:
    """True for scores to which ``-log(-log(u))`` was added."""
    if not isinstance(scores, Node) or scores.op not in ("add", "sub") or len(scores.inputs) < 2:
        return False
    for side in scores.inputs[:2]:
        made = [n for n in near(side, NOISE) if not n.grad] if isinstance(side, Node) and not side.grad else []
        if sum(n.op == "log" for n in made) > 1 or any(n.op == "exponential" for n in made):
            return True
    return False


__all__ = ["heating"]
