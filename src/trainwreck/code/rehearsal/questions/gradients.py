"""The life of each gradient: which backward gave it, which step used it, what cleared it and when.

The tape is gone through once for a rehearsal. What isn't certain (a reset under a condition, parameters that aren't
known) counts as if all were well.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Event, Items, Node, Obj, Value, candidates
from trainwreck.code.rehearsal.graph import OPAQUE, ancestors
from trainwreck.code.rehearsal.holding import is_optimizer


@dataclass(eq=False, slots=True)
class Grad:
    """What one backward left in one parameter."""

    event: Event
    used: bool = False


@dataclass
class Life:
    """What the tape tells of gradients."""

    stale: list[tuple[Event, Grad, Grad]] = field(default_factory=list)
    """Steps that used a gradient a second time, beside a newer one."""
    wasted: list[tuple[Event, Event]] = field(default_factory=list)
    """A backward whose gradients no step used, with what cleared them."""
    empty: list[Event] = field(default_factory=list)
    """Steps of optimizers none of whose parameters had a gradient."""
    sums: list[tuple[Event, list[Event]]] = field(default_factory=list)
    """Steps, each with the fresh backward passes that met in one of its parameters."""
    clips: list[tuple[Event, list[Node], bool]] = field(default_factory=list)
    """Clippings with their parameters, and whether any of these had a gradient that no step had used."""
    idle_resets: list[Event] = field(default_factory=list)
    """Resets that found nothing to clear."""
    used_by: dict[int, list[Event]] = field(default_factory=dict)
    """By ``id`` of a backward: the steps that used what it left."""
    sure: bool = True
    """False where something of which nothing is known stepped or cleared."""


def lives(run: Rehearsing) -> Life:
    if "lives" not in run.memo:
        run.memo["lives"] = life = _walk(run, set())
        # what a count lets through comes in the first turn or in a later one: the second case is gone through too
        places = {id(e.place[0]) for e in run.tape if e.place is not None and counted(e)}
        first = [e for e in run.tape if e.turns and not e.turns[-1].generic and e.turns[-1].index == 0 and e.tests]
        rare = {id(e) for e in first if e.place is not None and id(e.place[0]) in places}
        if rare:
            other = _walk(run, rare)
            life.wasted += other.wasted
            life.sums += other.sums
        if not life.stale and life.sure:
            # what a count lets through in a later turn alone meets the gradients of the turn after it
            for group in _repeated(run):
                life.stale += _walk(run, set(), group).stale
    found: Life = run.memo["lives"]
    return found


def steps(run: Rehearsing) -> list[Event]:
    """The steps of optimizers, in order."""
    return [e for e in run.tape if e.name == "step" and is_optimizer(e.subject)]


def held(event: Event) -> list[Node]:
    """The parameters of an optimizer at the time of its step."""
    found: list[Node] = event.state.get("held", [])
    return found


def backwards(run: Rehearsing) -> list[Event]:
    return [e for e in run.tape if e.name == "backward"]


def reached(event: Event) -> list[Node]:
    found: list[Node] = event.state.get("reached", [])
    return found


def parameters_of(value: Value) -> tuple[list[Node], bool]:
    """The parameters that an argument gives (a list, a generator, one of them), and whether all are known."""
    found: list[Node] = []
    complete = True
    for one in candidates(value):
        items = list(one.items) if isinstance(one, Items) else list(one) if isinstance(one, tuple) else [one]
        complete = complete and not (isinstance(one, Items) and one.more)
        for item in items:
            inner = item[-1] if isinstance(item, tuple) and item else item
            if isinstance(inner, Node) and inner.op == "param":
                found.append(inner)
            else:
                complete = False
    return found, complete


def counted(event: Event) -> bool:
    """True if a test on a count decides whether it happens: ``(i + 1) % n``, or a number that starts again at 0."""
    return any(n.op == "mod" for test in event.tests for n in ancestors(test)) or any(
        _full(test) for test in event.tests
    )


def _full(test: Value) -> bool:
    """``pending += 1; if pending == n: ...; pending = 0`` (or down from n): a number of the program's own that is set
    back."""
    if not isinstance(test, Node) or test.op not in ("eq", "ge", "gt", "le", "lt") or len(test.inputs) != 2:
        return False
    for side in (0, 1):
        count, limit = test.inputs[side], test.inputs[1 - side]
        if not isinstance(count, Node) or count.op not in ("add", "sub") or len(count.inputs) != 2:
            continue
        if count.inputs[1] == 1 and not isinstance(count.inputs[1], bool) and limit != 1 and _set_back(test):
            return True
    return False


def _set_back(test: Node) -> bool:
    """True if the ``if`` of this test gives what it asks about a new value, that of a number or a name."""
    if test.place is None:
        return False
    compare, scope = test.place
    for holder in scope.nodes:
        if not isinstance(holder, ast.If) or not any(n is compare for n in ast.walk(holder.test)):
            continue
        asked = {ast.unparse(n) for n in ast.walk(compare) if isinstance(n, ast.Name | ast.Attribute)}
        for statement in (n for s in holder.body for n in ast.walk(s) if isinstance(n, ast.Assign)):
            plain = isinstance(statement.value, ast.Constant | ast.Name | ast.Attribute)
            if plain and any(ast.unparse(t) in asked for t in statement.targets):
                return True
    return False


def _repeated(run: Rehearsing) -> list[list[Event]]:
    """For each counted step in any later turn of a loop: all that happens in that turn. Not where the step ends it."""
    found: dict[int, list[Event]] = {}
    for step in steps(run):
        if step.turns and step.turns[-1].generic and counted(step) and not _leaves(run, step):
            found.setdefault(id(step.turns[-1]), [e for e in run.tape if step.turns[-1] in e.turns])
    return list(found.values())


def _leaves(run: Rehearsing, step: Event) -> bool:
    """True if a way out of the loop stands beside the step."""
    if step.place is None:
        return True
    for above in run.project.ancestors(*step.place):
        if above is step.turns[-1].node:
            break
        if isinstance(above, ast.If) and any(isinstance(n, ast.Break | ast.Return) for n in ast.walk(above)):
            return True
    return False


def _walk(run: Rehearsing, skipped: set[int], again: list[Event] | None = None) -> Life:
    """``again``: what happens once more after it has happened."""
    life = Life()
    tape = list(run.tape)
    if again:
        end = tape.index(again[-1]) + 1
        tape[end:end] = again
    grads: dict[int, list[Grad]] = {}
    looked_at = sorted(n.serial for n in run.nodes if n.op == "grad" and len(n.inputs) < 2)  # ``p.grad``
    for event in tape:
        if id(event) in skipped:
            continue
        match event.name:
            case "backward":
                for param in reached(event):
                    grads.setdefault(id(param), []).append(Grad(event))
            case "set_grad":
                old = grads.get(id(event.subject), [])
                grads[id(event.subject)] = [Grad(g.event, g.used) for g in old[-1:]]
                for grad in grads[id(event.subject)]:
                    grad.used = False
            case "zero_grad":
                _cleared(event, grads, life, looked_at)
            case "clip":
                params, _ = parameters_of(event.get("parameters", 0))
                fresh = any(not g.used for p in params for g in grads.get(id(p), ()))
                life.clips.append((event, params, fresh))
            case "step" if is_optimizer(event.subject):
                _used(event, grads, life)
            case "step" if isinstance(event.subject, Node) and event.subject.op in OPAQUE:
                life.sure = False
    return life


def _cleared(event: Event, grads: dict[int, list[Grad]], life: Life, looked_at: list[int]) -> None:
    known = event.state.get("held")
    if known is None or not event.state.get("known", event.state.get("complete", False)):
        life.sure = False
        grads.clear()
        return
    found = [g for p in known for g in grads.get(id(p), ())]
    if not found:
        life.idle_resets.append(event)
    for backward in {id(g.event): g.event for g in found if not g.used}.values():
        between = any(backward.serial < serial < event.serial for serial in looked_at)
        if not life.used_by.get(id(backward)) and not between:
            life.wasted.append((backward, event))
    for param in known:
        grads.pop(id(param), None)


def _used(event: Event, grads: dict[int, list[Grad]], life: Life) -> None:
    mine = [grads[id(p)] for p in held(event) if grads.get(id(p))]
    if not mine:
        if held(event) and event.state.get("known"):
            life.empty.append(event)
        return
    for listed in mine:
        old = [g for g in listed if g.used]
        new = [g for g in listed if not g.used]
        if old and new:
            life.stale.append((event, old[-1], new[-1]))
            break
    fullest = max(mine, key=len)
    fresh = [g.event for g in fullest if not g.used]
    life.sums.append((event, fresh))
    for listed in mine:
        for grad in listed:
            grad.used = True
            users = life.used_by.setdefault(id(grad.event), [])
            if event not in users:
                users.append(event)


def written_by_hand(run: Rehearsing, param: Node) -> bool:
    """True if the program changes the parameter in a loop by itself (an update without an optimizer)."""
    return any(w.turns and w.name in HAND for w in param.writes)


HAND = frozenset(
    ["add_", "sub_", "mul_", "copy_", "lerp_", "addcdiv_", "addcmul_", "inplace", "setitem", "div_", "set_"]
)


def same_turn(one: Event | Node, other: Event | Node) -> bool:
    """True if both happened in the same turn of the same loops, as far as both are inside them."""
    depth = min(len(one.turns), len(other.turns))
    return one.turns[:depth] == other.turns[:depth]


def modules_under(value: Value, depth: int = 0) -> Iterator[Obj]:
    """The module itself and all inside it."""
    from trainwreck.code.rehearsal.domain import is_module

    for one in candidates(value):
        if isinstance(one, Obj) and is_module(one) and depth < 12:
            yield one
            for inner in one.attributes.values():
                yield from modules_under(inner, depth + 1)


def ids(values: Iterable[Value]) -> set[int]:
    return {id(v) for v in values}


def going_on(run: Rehearsing) -> set[int]:
    """The serials of what only a job does that goes on: under the test under which its optimizer gets its state back.

    A first run of the program has none of it: it begins with the weights that it made."""
    if "going on" not in run.memo:
        restored = [e for e in run.tape if e.name == "load_state_dict" and is_optimizer(e.subject) and e.maybe]
        tests = ids(t for e in restored for t in e.tests)
        run.memo["going on"] = {e.serial for e in run.tape if e.maybe and any(id(t) in tests for t in e.tests)}
    found: set[int] = run.memo["going on"]
    return found


def in_legs(run: Rehearsing) -> bool:
    """True where the program itself stops a training and goes on with it: an optimizer gets the state of another run
    back, without a test. A loop is then a part of the training only."""
    loads = (e for e in run.tape if e.name == "load_state_dict" and is_optimizer(e.subject))
    return any(e.serial not in going_on(run) for e in loads)


def given_weights(run: Rehearsing, names: Iterable[str]) -> bool:
    """True where training begins with what was learned elsewhere: something of these names is called before the last
    backward, and not by a job that goes on."""
    last = max((e.serial for e in run.tape if e.name == "backward"), default=0)
    later = going_on(run)
    return any(e.name in names and e.serial < last and e.serial not in later for e in run.tape)
