"""Energy models: which way the sampler walks, and which way the loss pushes the same function on data and samples."""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Value
from trainwreck.code.rehearsal.graph import ancestors, near, parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.roles import STRUCTURE
from trainwreck.code.rehearsal.questions.terms import losses_of, number_of, parameters_behind, terms

NOISE = frozenset(["randn", "randn_like", "normal"])


def against_sampler(run: Rehearsing) -> Iterator[Answer]:
    """Samples are drawn down a function that the loss raises on the data, or up one that it lowers there."""
    for walk in _walks(run):
        step, direction, behind = walk
        for event, found in losses_of(run):
            pushed: dict[bool, tuple[int, Node]] = {}
            for term in found:
                outputs = parameters_behind(term.node, through_grad=True).keys()
                plain = term.sign and not term.factors and term.node.op in ("linear", "part", "sum")
                if not plain or not outputs & behind:
                    continue
                made = any(n is step for n in ancestors(term.node))
                pushed.setdefault(made, (term.sign, term.path[0] if term.path else term.node))
            if len(pushed) < 2 or pushed[True][0] == pushed[False][0]:
                continue
            if pushed[False][0] == direction or step.place is None:
                continue
            difference = next((n for n in ancestors(event.subject) if n.op == "sub" and _both(n, step)), None)
            place = (difference or pushed[False][1]).place or event.place
            down, up = ("down", "raised") if direction > 0 else ("up", "lowered")
            text = f"samples walk {down} this function, and it is {up} on the data: one of the two has the wrong sign"
            if place is not None:
                # an energy is low where the data are: samplers mostly walk down (Langevin), so a step up is the odd one
                here, other = (place, step.place) if direction > 0 else (step.place, place)
                yield Answer(here, text, (other,))
                return


def _walks(run: Rehearsing) -> Iterator[tuple[Node, int, set[int]]]:
    """Steps ``x - c * grad + noise`` in a loop: the step, +1 downhill or -1 uphill, and the parameters walked on."""
    seen: set[int] = set()
    slopes = {id(n): n for n in run.nodes if n.op == "grad" and n.turns and n.inputs}
    for node in run.nodes if slopes else ():
        if node.op not in ("add", "sub") or node.place is None or id(node.place[0]) in seen:
            continue
        summands = terms(node)
        found = [(t, s) for t in summands for n in near(t.node, 3) if (s := slopes.get(id(n))) is not None]
        noise = [t for t in summands if any(n.op in NOISE for n in near(t.node, 3))]
        if len(found) != 1 or not noise or len(summands) < 3:
            continue
        term, slope = found[0]
        behind = set(parameters_behind(slope.inputs[0]).keys())
        if term.sign and behind:
            seen.add(id(node.place[0]))
            yield node, -term.sign * _turned(slope.inputs[0]), behind


def _turned(at: Value) -> int:
    """-1 where the slope of the negative is taken."""
    sign = 1
    for _ in range(8):
        if not isinstance(at, Node):
            break
        if at.op == "neg":
            sign = -sign
        elif at.op in ("mul", "div") and len(at.inputs) > 1:
            number = number_of(at.inputs[1])
            sign = -sign if number is not None and number < 0 else sign
        elif at.op not in ("sum", "mean") and at.op not in STRUCTURE:
            break
        at = next(iter(parts(at.inputs[:1])), None)
    return sign


def _both(node: Node, step: Node) -> bool:
    """True for the difference of what is said of the data and of the samples."""
    return len({any(n is step for n in ancestors(i)) for i in node.inputs[:2]}) == 2
