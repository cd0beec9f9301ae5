"""One step of a diffusion sampler, worked out: does what it makes of a perfect answer have the next level's noise?

For data ``x0`` and noise ``e`` the training gives the network ``a x0 + s e`` and asks for some ``p x0 + q e``. Put into
the sampler's step, both give a sum of ``x0``, ``e`` and new noise again. Whatever the sampler (ancestral or
deterministic, with any stride), the data must be more than before, and the noise what the schedule has beside so much
of them.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterable, Iterator, Mapping

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Event, Node, Place, Value
from trainwreck.code.rehearsal.graph import ancestors, parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.denoising import Denoiser, denoisers, kinds, mixture
from trainwreck.code.rehearsal.questions.levels import Unknown, row
from trainwreck.code.rehearsal.questions.noising import levels, schedule
from trainwreck.code.rehearsal.questions.places import mixture_left_out
from trainwreck.code.rehearsal.questions.returns import BACKWARDS
from trainwreck.code.rehearsal.questions.roles import JOINS
from trainwreck.code.rehearsal.questions.sums import ONE, Crooked, Sum, number_in, work_out
from trainwreck.core.row import Row

DATA, ADDED = -1, -2
"""Keys of the sums: the clean data, the noise that was added to them."""
SLACK = 0.5
"""Share of a step's own change of the noise by which it may miss; the variants of the variance differ by less."""
MIDDLE = (0.15, 0.85)
"""Shares of noise between which a step is looked at: at the ends all variants are special."""
PURE = 0.02


class Step(Row):
    """From what the network was given and answered at one time (turn) to what it is given next."""

    asked: Event
    given: Node
    time: Value
    answers: tuple[Node, ...]
    """What the network answers in this turn, to the same question or others."""
    result: Node
    alike: bool
    """All of the answers are to the same state."""


def steps(run: Rehearsing, found: Denoiser) -> Iterator[Step]:
    """The steps of the samplers of this network or of a copy of it."""
    trained = next((e for e in run.tape if e.serial == found.given.serial), found.given)
    turned = bool(trained.args) and trained.args[0] is not found.given.args[0]
    mine = [e for e in run.tape if e.name == "forward" and e.args and not e.state.get("grad") and e.turns
            and (e.subject is found.module or getattr(e.subject, "copy_of", None) is found.module)]  # fmt: skip
    for number, first in enumerate(mine):
        later = next((e for e in mine[number + 1 :] if _same_place(first, e)), None)
        if first.turns[-1].index != 0 or later is None or not later.turns[-1].generic:
            continue
        if first.turns[:-1] != later.turns[:-1] or first.turns[-1].node is not later.turns[-1].node:
            continue
        between = [e for e in mine[number:] if e.serial < later.serial]
        at = int(turned)
        if any(len(e.args) <= at for e in (later, *between)):
            continue
        given, result = (_alone(e.args[at]) for e in (first, later))
        answers = tuple(p for e in between for p in parts(e.result))
        if given is not None and result is not None and answers and result is not given:
            alike = all(_alone(e.args[at]) is given for e in between)
            yield Step(first, given, told_time(first, turned), answers, result, alike)
            again = _again(run, result, later)
            since = [e for e in mine if e.turns[: len(later.turns)] == later.turns]
            if again is not None:
                alike = all(_alone(e.args[at]) is result for e in since)
                answers = tuple(p for e in since for p in parts(e.result))
                yield Step(later, result, told_time(later, turned), answers, again, alike)


def told_time(event: Event, turned: bool) -> Value:
    """What the network is told as the time."""
    rest = event.args[:1] if turned else event.args[1:2]
    return rest[0] if rest else next(iter(event.options.values()), None)


def _again(run: Rehearsing, result: Node, later: Event) -> Node | None:
    """What the same statement gives in any later turn."""
    place = result.place[0] if result.place is not None else None
    found = [n for n in run.nodes if n.place is not None and n.place[0] is place and n.op == result.op]
    return next((n for n in found if n.turns == later.turns and n is not result), None) if place is not None else None


def _same_place(one: Event, other: Event) -> bool:
    return one.place is not None and other.place is not None and one.place[0] is other.place[0]


def _alone(value: Value) -> Node | None:
    """A state, also where the network is given it twice at once."""
    if isinstance(value, Node) and value.op in JOINS:
        items = list(parts(value.inputs[:1]))
        return items[0] if items and all(i is items[0] for i in items) else None
    return value if isinstance(value, Node) else None


# ---------------------------------------------------------------------- one step
class Level(Row):
    """At ``time`` (as the network is told it) it is given ``signal x0 + noise e``, and asked for ``wanted``."""

    time: float
    signal: float
    noise: float
    wanted: Sum


def _levels(found: Denoiser) -> tuple[list[Level], bool]:
    """Levels in the middle of the schedule, and if factors (not their squares) add up to one; empty where unknown."""
    known, made = levels(found), mixture(found.given)
    if known is None or made is None:
        return [], False
    pairs = list(zip(known.signal, known.noise, strict=True))
    straight = all(abs(s + n - 1) < 1e-3 for s, n in pairs)
    if not straight and any(abs(s * s + n * n - 1) > 1e-3 for s, n in pairs):
        return [], False
    told = found.given.args[1] if len(found.given.args) > 1 else next(iter(found.given.options.values()), None)
    index = row(known.index, known.index)
    out: list[Level] = []
    for number, (signal, noise) in zip(index if isinstance(index, list) else [], pairs, strict=False):
        if not straight and (not MIDDLE[0] < noise * noise < MIDDLE[1] or signal <= 0):
            continue
        symbols = {id(made[0]): {DATA: 1.0}, id(made[1]): {ADDED: 1.0}, id(known.index): {ONE: number}}
        try:
            wanted, time = work_out(found.target, symbols), number_in(work_out(told, symbols))
        except Unknown:
            return [], False
        if set(wanted) <= {DATA, ADDED, ONE} and not wanted.get(ONE):
            out.append(Level(time, signal, noise, wanted))
    return out if straight else out[:: max(len(out) // 5, 1)], straight


def wrong_step(run: Rehearsing) -> Iterator[Answer]:
    """A step whose result has not the noise that belongs to its share of the data."""
    for answer, other in _wrong(run):
        if not other:
            yield answer


def taken_for_other(run: Rehearsing) -> Iterator[Answer]:
    """The same, where the step would be right if the network told something else."""
    for answer, other in _wrong(run):
        if other:
            yield answer


def _wrong(run: Rehearsing) -> list[tuple[Answer, str]]:
    if "wrong steps" not in run.memo:
        run.memo["wrong steps"] = list(_look(run))
    kept: list[tuple[Answer, str]] = run.memo["wrong steps"]
    return kept


def _look(run: Rehearsing) -> Iterator[tuple[Answer, str]]:
    if any(True for _ in kinds(run)) or any(True for _ in schedule(run)):
        return  # told already
    for found in denoisers(run):
        known, straight = _levels(found) if any(True for _ in steps(run, found)) else ([], False)
        for step in steps(run, found) if known else ():
            counter = _counter(step)
            met = _met(step, known, straight) if counter is None else known
            if not met or not (step.alike or (straight and _one_answer(known))):
                continue
            if 2 * sum(_missed(step, counter, level, straight) for level in met) < len(met):
                asked = _asked(found)
                if asked is not None and _never_pure(run, step, counter, met):
                    text = "the sampler makes neither the data nor the noise of what the network is asked for here"
                    yield Answer(asked, text), "another"
                    return
                continue
            other = next((k for k, kind in KINDS.items() if _fits(step, counter, map(kind, met), straight)), "")
            place = _place(run, step, counter, met[len(met) // 2])
            if straight and _backwards(met[0], known):
                place = _asked(found) or place
            else:
                place = _uphill(counter, step, known) or _new_noise(step, counter, met, straight) or place
            text = "given the right answer this step leaves another noise than belongs to the next level"
            if other:
                text = f"the step takes the network's output for {other}, which is not what it was trained to tell"
                if mixture_left_out(run, found.noises):
                    place = found.loss.place or place  # what makes the target is written, and not called
                elif not any(_same(kind(met[0]).wanted, met[0].wanted) for kind in KINDS.values()):
                    place = found.target.place or place  # the target is none of what networks are asked for
            if place is not None:
                yield Answer(place, text, (step.asked.place,) if step.asked.place is not None else ()), other
                return


KINDS: Mapping[str, Callable[[Level], Level]] = {
    "the noise": lambda m: m._replace(wanted={ADDED: 1.0}),
    "the clean data": lambda m: m._replace(wanted={DATA: 1.0}),
    "a velocity": lambda m: m._replace(wanted={ADDED: m.signal, DATA: -m.noise}),
    "a velocity towards the data": lambda m: m._replace(wanted={DATA: 1.0, ADDED: -1.0}),
    "a velocity towards the noise": lambda m: m._replace(wanted={DATA: -1.0, ADDED: 1.0}),
}


def _uphill(counter: Node | None, step: Step, known: list[Level]) -> Place | None:
    """What the sampler goes through, where it begins at the time with the least noise and goes on to the most."""
    turn = step.asked.turns[-1]
    if counter is None or not isinstance(turn.node, ast.For) or BACKWARDS.search(ast.unparse(turn.node.iter)):
        return None
    behind = ancestors(step.result, through=lambda n: n is not step.given)
    read = [n.inputs[1] for n in behind if n.op == "getitem" and len(n.inputs) > 1]
    told = [counter, *parts(step.time)]
    others = [i for i in read if isinstance(i, Node) and not any(i is t for t in told)]
    if any(n is counter for i in others for n in ancestors(i)):
        return None  # the tables are read in another order than the network is told
    first, last = min(known, key=lambda m: m.time), max(known, key=lambda m: m.time)
    try:
        times = [number_in(work_out(step.time, {id(counter): {ONE: n}})) for n in (0.0, 1.0)]
    except Unknown:
        return None
    return (turn.node.iter, turn.scope) if times[0] < times[1] and first.noise < last.noise else None


def _same(one: Sum, other: Sum) -> bool:
    return all(abs(one.get(k, 0.0) - other.get(k, 0.0)) < PURE for k in one.keys() | other.keys())


def _new_noise(step: Step, counter: Node | None, known: list[Level], straight: bool) -> Place | None:
    """Where a step adds new noise, if it would be right with the root or the square of what stands before that."""
    drawn: set[int] = set()
    for level in known:
        try:
            made = work_out(step.result, _symbols(step, counter, level))
        except Unknown:
            return None
        fresh = {k: abs(v) for k, v in made.items() if k not in (DATA, ADDED, ONE)}
        signal = made.get(DATA, 0.0)
        if len(fresh) != 1 or straight or not level.signal < signal < 1:
            return None
        (key, factor), left = next(iter(fresh.items())), 1 - signal * signal
        slack = SLACK / 5 * (level.noise**2 - left)
        if not any(abs(made.get(ADDED, 0.0) ** 2 + f * f - left) <= slack for f in (math.sqrt(factor), factor**2)):
            return None
        drawn.add(key)
    behind = ancestors(step.result, through=lambda n: n is not step.given)
    return next((n.place for n in behind if id(n) in drawn), None) if len(drawn) == 1 else None


def _counter(step: Step) -> Node | None:
    """The number of the innermost loop, where the time is computed of nothing else."""
    found = {id(n): n for n in ancestors(step.time) if n.op == "counter"}
    over = {id(n) for n in parts(step.asked.turns[-1].over)}
    return next(iter(found.values())) if len(found) == 1 and found.keys() <= over else None


def _asked(found: Denoiser) -> Place | None:
    """Where the target is made, if that is beside the loss."""
    loss, target = found.loss.place, found.target.place
    return target if loss is not None and target is not None and target[1] is loss[1] else loss


def _backwards(level: Level, known: list[Level]) -> bool:
    """True where the velocity that is asked for points against the change of what the network is given."""
    first, last = known[0], known[-1]
    slope = (last.signal - first.signal) / (last.time - first.time) if last.time != first.time else 0.0
    return len(level.wanted) == 2 and slope * level.wanted.get(DATA, 0.0) < 0


def _met(step: Step, known: list[Level], straight: bool) -> list[Level]:
    """The level of a step at a time that is written out: on a straight path its first one tells as much as any."""
    try:
        time = number_in(work_out(step.time, {}))
    except Unknown:
        return []
    return [m for m in known if math.isclose(m.time, time, abs_tol=1e-9)] if straight else []


def _one_answer(known: list[Level]) -> bool:
    """True where all answers of a turn are the same if they are right: a velocity that does not change."""
    return all(level.wanted == known[0].wanted for level in known)


def _symbols(step: Step, counter: Node | None, level: Level) -> dict[int, Sum]:
    """The count at which the sampler tells the network this time, and what it is given and answers then."""
    given: Sum = {DATA: level.signal, ADDED: level.noise}
    fixed = {**{id(a): level.wanted for a in step.answers}, id(step.given): given}
    if counter is None:
        return fixed
    first, second = (number_in(work_out(step.time, {id(counter): {ONE: n}})) for n in (0.0, 1.0))
    if math.isclose(first, second):
        raise Unknown
    count = (level.time - first) / (second - first)
    if abs(count - round(count)) < 1e-6:
        count = round(count)
    return {**fixed, id(counter): {ONE: float(count)}}


def _fits(step: Step, counter: Node | None, known: Iterable[Level], straight: bool) -> bool:
    """True where the step is right at all levels, with little to spare."""
    return not any(_missed(step, counter, level, straight, SLACK / 3) for level in known)


def _missed(step: Step, counter: Node | None, level: Level, straight: bool, slack: float = SLACK) -> bool:
    """True where the step surely goes wrong at this level."""
    try:
        made = work_out(step.result, _symbols(step, counter, level))
    except Crooked:
        return True
    except Unknown:
        return False
    signal, variance = made.get(DATA, 0.0), level.noise**2
    noise = sum(v * v for k, v in made.items() if k not in (DATA, ONE))
    same = math.isclose(signal, level.signal, rel_tol=1e-6) and math.isclose(noise, variance, rel_tol=1e-6)
    if same or abs(made.get(ONE, 0.0)) > PURE:
        return False
    if signal <= level.signal or signal >= 1:
        return signal < 1 or signal > 1 + PURE or (not straight and noise > slack * variance)
    left = (1 - signal) ** 2 if straight else 1 - signal * signal
    return abs(noise - left) > slack * (variance - left)


def _never_pure(run: Rehearsing, step: Step, counter: Node | None, known: list[Level]) -> bool:
    """True for a step that is known to go from a level to itself only, and that passes through neither estimate."""
    level = known[len(known) // 2]
    try:
        made = work_out(step.result, _symbols(step, counter, level))
    except Unknown:
        return False
    if not math.isclose(made.get(DATA, 0.0), level.signal, rel_tol=1e-6):
        return False
    mixed = [m for _, m in _mixed(run, step, counter, level) if set(m) <= {DATA, ADDED, ONE}]
    return len(mixed) > 2 and not any(_pure(m) for m in mixed)


def _pure(made: Sum) -> bool:
    rest = {k: v for k, v in made.items() if abs(v) > PURE and k in (DATA, ADDED)}
    return len(rest) == 1 and abs(next(iter(rest.values())) - 1) <= PURE


def _place(run: Rehearsing, step: Step, counter: Node | None, level: Level) -> Place | None:
    """The first statement that mixes what was given with the answer, and gives neither data nor noise alone."""
    return next((p for p, made in _mixed(run, step, counter, level) if not _pure(made)), step.result.place)


def _mixed(run: Rehearsing, step: Step, counter: Node | None, level: Level) -> list[tuple[Place, Sum]]:
    """What each statement makes of what was given and the answer together."""
    symbols = _symbols(step, counter, level)
    behind = {id(n) for n in ancestors(step.result, through=lambda n: id(n) not in symbols)}
    mixed: dict[int, tuple[Place, Sum]] = {}
    for node in run.nodes:
        if id(node) not in behind or node.place is None or node.op not in ("add", "sub", "mul", "div"):
            continue
        inside = {id(n) for n in ancestors(node, through=lambda n: id(n) not in symbols)}
        if id(step.given) not in inside or not any(id(a) in inside for a in step.answers):
            continue
        try:
            mixed[id(run.project.statement(*node.place))] = (node.place, work_out(node, symbols))
        except Unknown:
            continue
    return list(mixed.values())
