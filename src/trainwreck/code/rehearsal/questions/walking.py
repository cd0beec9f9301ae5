"""Samplers that walk from noise to data: do they tell the network where they are, and do they walk away from noise?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Event, Node, Value
from trainwreck.code.rehearsal.graph import ancestors, parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.canonical import canon
from trainwreck.code.rehearsal.questions.denoising import NOISE, Denoiser, denoisers, same_network
from trainwreck.code.rehearsal.questions.levels import Unknown
from trainwreck.code.rehearsal.questions.noising import DRAWN
from trainwreck.code.rehearsal.questions.reverse import steps, told_time
from trainwreck.code.rehearsal.questions.roles import STRUCTURE, bounds, core
from trainwreck.code.rehearsal.questions.sums import number_in, work_out
from trainwreck.code.rehearsal.questions.terms import number_of, terms


def walks(run: Rehearsing, found: Denoiser) -> Iterator[list[Event]]:
    """The calls of the network in one place of a sampler, in turns of which a later one gets what an earlier made."""
    walked: dict[tuple[int, tuple[tuple[int, int], ...]], list[Event]] = {}
    for event in run.tape:
        if event.name != "forward" or event.place is None or event.state.get("grad") or not same_network(event, found):
            continue
        outer: tuple[tuple[int, int], ...] = ()
        for turn in event.turns:  # a sampler may be called in every epoch
            walked.setdefault((id(event.place[0]), outer), []).append(event)
            outer = (*outer, (id(turn.node), turn.index))
    known: set[int] = set()
    for (_, outside), events in sorted(walked.items(), key=lambda item: len(item[0][1])):
        first, last, at = events[0], events[-1], len(outside)
        made = {id(p) for p in parts(first.result)}
        goes_on = first.turns[at].index == 0 and last.turns[at].generic
        if len(events) < 2 or not goes_on or {id(e) for e in events} <= known:
            continue  # of loops within one another the outer one is the walk
        if any(id(n) in made for a in last.args[:2] for n in ancestors(a)):
            known |= {id(e) for e in events}
            yield events


def untold(run: Rehearsing) -> Iterator[Answer]:
    """The network learned to use the time or the level of the noise, and is told the same one in every turn."""
    for found in denoisers(run):
        learned = told_time(found.given, False)
        if not any(n.op in DRAWN for n in ancestors(learned, through=lambda n: n.op != "param")):
            continue
        for events in walks(run, found):
            times = [told_time(e, _turned(run, found)) for e in events]
            if any(t is None for t in times) or len({_known(t) for t in times}) > 1 or events[0].place is None:
                continue
            text = "the network is told the same time or level of noise in every turn, whatever the state is by then"
            yield Answer(events[0].place, text, (found.given.place,) if found.given.place is not None else ())
            return


def elsewhere(run: Rehearsing) -> Iterator[Answer]:
    """The network is told another time than that at which the step reads its tables of noise; in training it is told
    just that."""
    for found in denoisers(run):
        learned = told_time(found.given, _turned(run, found))
        drawn = [n for n in core(learned) if n.op in DRAWN] if isinstance(learned, Node) else []
        if not drawn or drawn[0] not in [t for _, i in _reads(found.given.args) for t in core(i)]:
            continue
        for step in steps(run, found):
            told = _number(step.time)
            at = [i for _, i in _reads((step.result,), step.given) if isinstance(i, int) and not isinstance(i, bool)]
            apart = told is not None and bool(at) and all(i >= 0 and abs(told - i) > 1 for i in at)
            if apart and step.asked.place is not None:
                text = f"the network is told the time {told:g} here, and the step is that of time {at[0]}"
                yield Answer(step.asked.place, text, tuple(p for p in (found.given.place,) if p is not None))
                return


def _reads(values: tuple[Value, ...], state: Node | None = None) -> Iterator[tuple[Node, Value]]:
    """What is read from tables of numbers on the way to ``values``, and at which place of them."""
    for node in ancestors(values, through=lambda n: n is not state and n.op != "param"):
        table = node.inputs[0] if node.op == "getitem" and len(node.inputs) > 1 else None
        if isinstance(table, Node) and not table.grad and any(n.op in TABLES for n in ancestors(table)):
            yield node, node.inputs[1]


TABLES = frozenset(["linspace", "arange", "cumprod", "logspace", "geomspace"])


def _number(time: Value) -> float | None:
    try:
        return number_in(work_out(time, {}))
    except Unknown:
        return None


def _known(time: Value) -> object:
    """The number that a time is, else what it is computed from."""
    number = _number(time)
    return canon(time) if number is None else number


def _turned(run: Rehearsing, found: Denoiser) -> bool:
    trained = next((e for e in run.tape if e.serial == found.given.serial), found.given)
    return bool(trained.args) and trained.args[0] is not found.given.args[0]


def towards_noise(run: Rehearsing) -> Iterator[Answer]:
    """A step that adds what the network tells, and a target that points the way in which the noise was added."""
    for found in denoisers(run):
        learned = _sign(found.target, lambda n: n.op in NOISE)
        if not learned:
            continue
        for events in walks(run, found):
            for first, later in pairwise(events):
                at = int(_turned(run, found))
                if len(first.args) <= at or len(later.args) <= at or not isinstance(later.args[at], Node):
                    continue
                made = {id(p) for p in parts(first.result)}
                summands = terms(later.args[at])
                state = [t for t in summands if t.node is first.args[at]]
                step = [t for t in summands if any(id(n) in made for n in ancestors(t.node, through=_plain))]
                if len(state) != 1 or state[0].weight != 1 or state[0].factors or len(step) != 1:
                    continue
                way = _sign(step[0].node, _one_of(made)) * step[0].sign
                way = way if all(bounds(f).low >= 0 for f in step[0].factors) else 0
                if way * learned > 0 and found.target.place is not None:
                    text = "the sampler adds what the network tells, and this target points the way the noise was added"
                    yield Answer(found.target.place, text, (later.place,) if later.place is not None else ())
                    return


def _one_of(made: set[int]) -> Callable[[Node], bool]:
    return lambda node: id(node) in made


def _plain(node: Node) -> bool:
    return node.op in STRUCTURE or node.op in ("mul", "div", "neg")


def _sign(value: Value, wanted: Callable[[Node], bool], sign: int = 1, depth: int = 0) -> int:
    """+1 for something ``wanted`` times something positive, -1 for its negative, 0 for anything else."""
    node = next(iter(parts(value)), None)
    if node is None or depth > 20:
        return 0
    if wanted(node):
        return sign
    if node.op == "neg" or node.op in STRUCTURE:
        return _sign(node.inputs[:1], wanted, -sign if node.op == "neg" else sign, depth + 1)
    if node.op in ("mul", "div") and len(node.inputs) > 1:
        for scale, rest in (node.inputs[1::-1], node.inputs[:2]):
            number = number_of(scale)
            positive = number > 0 if number is not None else isinstance(scale, Node) and bounds(scale).low >= 0
            found = _sign(rest, wanted, sign, depth + 1) if positive or number is not None else 0
            if found:
                return found if positive else -found
            if node.op == "div":
                break
    return 0
