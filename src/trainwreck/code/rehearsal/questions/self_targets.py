"""A network that learns the soft choices of its own average: what keeps all samples from one and the same choice."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Event, Node, Place, Value
from trainwreck.code.rehearsal.graph import OPAQUE, near, parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.roles import RAW, STRUCTURE, core
from trainwreck.code.rehearsal.questions.terms import Term, losses_of, number_of, parameters_behind
from trainwreck.core.row import Row

SOFT = frozenset(["softmax"])
LOGS = frozenset(["log_softmax"])


class Lesson(Row):
    """``learner`` (a log-softmax) is drawn to ``goal`` (a softmax without gradient), in one summand of a loss."""

    event: Event
    term: Term
    learner: Node
    goal: Node


def lessons(run: Rehearsing) -> list[Lesson]:
    """The losses of a learner that are all of this kind, with goals that an average of its own weights makes."""
    if "lessons" not in run.memo:
        found: list[Lesson] = []
        others: list[Event] = []
        for event, summands in losses_of(run):
            pairs = [_sides(t) for t in summands]
            if not pairs or any(p is None for p in pairs):
                others.append(event)
                continue
            made = [Lesson(event, t, *p) for t, p in zip(summands, pairs, strict=True) if p is not None]
            if all(_own_average(m) for m in made):
                found += made
            else:
                others.append(event)
        for event in others:
            taught = parameters_behind(event.subject, through_grad=True).keys()
            found = [m for m in found if not taught & parameters_behind(m.learner).keys()]
        run.memo["lessons"] = found
    kept: list[Lesson] = run.memo["lessons"]
    return kept


def _sides(term: Term) -> tuple[Node, Node] | None:
    node = term.node
    if node.op in ("cross_entropy", "kl_div") and len(node.inputs) > 1:
        given, goal = _plain(node.inputs[0]), _plain(node.inputs[1])
        if given is not None and goal is not None and goal.op in SOFT and not goal.grad and term.sign > 0:
            return (given, goal) if node.op == "cross_entropy" or given.op in LOGS else None
    if node.op in LOGS and len(term.factors) == 1:
        goal = _plain(term.factors[0])
        if (term.sign < 0) == (sum(n.op == "neg" for n in near(term.factors[0], 3)) % 2 == 1):
            return None
        if goal is not None and goal.op in SOFT and not goal.grad:
            return node, goal
    return None


def _plain(value: Value) -> Node | None:
    """What a value was only reshaped, negated or cut off from."""
    for _ in range(20):
        if not isinstance(value, Node):
            return None
        if value.op in SOFT | LOGS or not value.inputs:
            return value
        if value.op not in STRUCTURE and value.op not in ("neg", "detach", "data", "part", "element"):
            return value
        value = next(iter(parts(value.inputs[0])), None)
    return None


def _own_average(lesson: Lesson) -> bool:
    """True where the goal comes from a copy of the learner that follows it."""
    mine = parameters_behind(lesson.learner)
    theirs = [p for p in parameters_behind(lesson.goal).values() if id(p) not in mine or p.trainable is False]
    return bool(theirs) and any(follows(p, mine) for p in theirs)


def follows(param: Node, leaders: dict[int, Node]) -> bool:
    """True for a parameter that is moved in a loop towards one of ``leaders``."""
    for event in param.writes:
        moves = event.turns and event.name in ("add_", "lerp_", "copy_", "inplace")
        if moves and any(id(n) in leaders for a in event.args for n in near(a, 12)):
            return True
    return False


def _temperature(value: Value) -> tuple[float | None, Node | None]:
    """What logits are divided by on their way into a softmax, and the division."""
    at, factor, place = _plain(value), 1.0, None
    for _ in range(8):
        if at is None or at.op not in ("div", "mul") or len(at.inputs) < 2:
            break
        number, rest = number_of(at.inputs[1]), at.inputs[0]
        if number is None and at.op == "mul":
            number, rest = number_of(at.inputs[0]), at.inputs[1]
        if not number:
            return None, None
        factor, place = (factor * number if at.op == "div" else factor / number), at
        at = _plain(rest)
    return factor, place


def dulled(run: Rehearsing) -> Iterator[Answer]:
    """The goals are no sharper than the learner's own choices: both end at equal shares for all."""
    for lesson in lessons(run):
        cold, where = _temperature(lesson.goal.inputs[0])
        warm, _ = _temperature(lesson.learner.inputs[0] if lesson.learner.op in LOGS else lesson.learner)
        if cold is None or warm is None or cold <= warm or math.isclose(cold, warm):
            continue
        place = (where or lesson.goal).place
        if place is not None:
            text = f"the goals have a temperature of {cold:g} and the learner one of {warm:g}: they end at equal shares"
            yield Answer(place, text, (lesson.event.place,) if lesson.event.place is not None else ())
            return


def uncentred(run: Rehearsing) -> Iterator[Answer]:
    """Nothing is taken off the goals, or what is taken off never moves: one choice wins for all samples."""
    found = lessons(run)
    if not found or any(n.op in ("item", "call", "unknown", "opaque") for m in found for n in near(m.goal, 12)):
        return
    lesson = found[0]
    cold, divided = _temperature(lesson.goal.inputs[0])
    warm, _ = _temperature(lesson.learner.inputs[0] if lesson.learner.op in LOGS else lesson.learner)
    at = _plain(divided.inputs[0] if divided is not None else lesson.goal.inputs[0])
    if at is None or any(e.name == "load_state_dict" for e in run.tape):
        return
    centre = next((n for n in core(at.inputs[1]) if n.op in ("buffer", "zeros")), None) if _shifted(at) else None
    if centre is not None and at.op == "sub" and not _moved(run, centre):
        place, text = _end(at), "the centre that is taken off the goals is never brought up to date"
    elif at.op in RAW and cold is not None and warm is not None and cold < warm:
        place, text = (divided or at).place, "the goals are sharpened, and no centre is taken off them"
    else:
        return
    if place is not None:
        yield Answer(place, text + ": one choice wins for all samples", (at.place,) if at.place is not None else ())


def _shifted(node: Node) -> bool:
    return node.op == "sub" and len(node.inputs) > 1


def _moved(run: Rehearsing, centre: Node) -> bool:
    """True where something is written into the buffer in some turn, or put in its place."""
    if any(e.turns and any(True for a in e.args for _ in parts(a)) for e in centre.writes):
        return True
    for event in run.tape:
        old = event.options.get("old") if event.name == "set" else None
        if isinstance(old, Node) and any(n is centre for n in near(old, 6)):
            new = event.args[1] if len(event.args) > 1 else None
            if not isinstance(new, Node) or parameters_behind(new) or any(n.op in OPAQUE for n in near(new, 20)):
                return True
    return False


def _end(node: Node) -> Place | None:
    """The end of the function in which a value is computed: where an update of its state would stand."""
    if node.place is None:
        return None
    scope = node.place[1]
    body = getattr(scope.node, "body", None)
    if scope.kind == "function" and isinstance(body, list) and isinstance(body[-1], ast.stmt):
        return body[-1], scope
    return node.place


__all__ = ["dulled", "lessons", "uncentred"]
