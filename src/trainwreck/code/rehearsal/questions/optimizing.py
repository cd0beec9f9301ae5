"""Do the optimizers hold, and use, the gradients that the backward passes give?"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import LEAF, Event, Items, Node, Obj, Place, is_module
from trainwreck.code.rehearsal.graph import ancestors
from trainwreck.code.rehearsal.holding import is_optimizer
from trainwreck.code.rehearsal.library.training import all_parameters
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.gradients import (
    backwards,
    counted,
    going_on,
    held,
    ids,
    lives,
    modules_under,
    reached,
    same_turn,
    steps,
    written_by_hand,
)
from trainwreck.code.rehearsal.questions.places import chosen, parting
from trainwreck.code.rehearsal.questions.registering import params_in

RESTORED = frozenset(["load_state_dict", "copy_"])
"""Writes that give a parameter values that were learned elsewhere."""


def left_out(run: Rehearsing) -> Iterator[Answer]:
    """Parameters that a backward reaches and no optimizer that steps ever holds.

    Not meant: weights that were loaded (a probe on a frozen trunk), those of a part in evaluation mode, what the
    program updates itself or whose gradient it reads; leaves that are made anew in a loop (adversarial inputs)."""
    stepping = [e for e in steps(run)]
    if not settled(run):
        return
    ever = ids(p for e in stepping for p in held(e))
    idle = [o for o in run.objects if is_optimizer(o) and all(e.subject is not o for e in stepping)]
    ever |= ids(p for o in idle for p in run.optimized(o)[0])  # held, and never stepped: another fault
    told: set[int] = set()
    read = ids(i for n in run.nodes if n.op == "grad" for i in n.inputs)
    for event in backwards(run):
        if not event.turns:
            continue
        after = [s for s in stepping if s.serial > event.serial and same_turn(s, event)]
        if not after:
            continue
        missing = [
            p for p in reached(event) if _learnable(run, p, event) and id(p) not in ever | read and id(p) not in told
        ]
        missing = [p for p in missing if not written_by_hand(run, p) and not _in_plain_list(run, p)]
        missing = [p for p in missing if not any(i is r for i in p.inputs for r in reached(event))]  # a copy beside it
        missing = [p for p in missing if id(p.owner) not in _quiet(run)]
        if missing:
            told |= ids(missing)
            yield _left_out(run, event, missing, [s for s in after if isinstance(s.subject, Obj)])
    yield from _of_another(run, stepping, told)
    yield from _thawed(run, stepping)


def _of_another(run: Rehearsing, stepping: list[Event], told: set[int]) -> Iterator[Answer]:
    """The steps after a backward move the parameters of another network of the same kind, and none that it reaches."""
    read = ids(i for n in run.nodes if n.op == "grad" and len(n.inputs) < 2 for i in n.inputs)  # ``p.grad``
    for event in backwards(run):
        after = [s for s in stepping if s.serial > event.serial and same_turn(s, event)] if event.turns else []
        moved = [p for s in after for p in held(s)]
        learning = [p for p in reached(event) if p.trainable is not False]
        if not after or not moved or not learning or ids(learning) & (ids(moved) | told | read):
            continue
        if {p.name for p in moved} != {p.name for p in learning} or any(written_by_hand(run, p) for p in learning):
            continue
        if ids(moved) & ids(ancestors(event.subject, through=lambda n: n.op != "param")):
            continue  # they stand behind the loss, cut off on the way: another fault
        told |= ids(learning)
        yield _left_out(run, event, learning, [s for s in after if isinstance(s.subject, Obj)])
        return


def _quiet(run: Rehearsing) -> set[int]:
    """Layers that run in evaluation mode wherever a gradient could go through them: features, not learners."""
    if "quiet-layers" not in run.memo:
        modes: dict[int, list[object]] = {}
        for event in run.tape:
            if event.name == "forward" and event.grad_mode:
                modes.setdefault(id(event.subject), []).append(event.state.get("training"))
        run.memo["quiet-layers"] = {key for key, found in modes.items() if all(mode is False for mode in found)}
    quiet: set[int] = run.memo["quiet-layers"]
    return quiet


def settled(run: Rehearsing) -> bool:
    """True where all is known of what the optimizers hold and of what the backwards reach: ``left_out`` decides."""
    stepping = [e for e in steps(run)]
    return bool(stepping) and lives(run).sure and all(_all_known(run, e) for e in stepping)


def _left_out(run: Rehearsing, event: Event, missing: list[Node], after: list[Event]) -> Answer:
    roots = ids(p.owner for p in reached(event) if p.owner is not None)
    near = [s for s in after if any(id(p.owner) in roots for p in held(s))] or after
    optimizer: Obj = near[0].subject
    late = [p for p in missing if p.serial > optimizer.serial]
    names = ", ".join(dict.fromkeys(p.name or "a parameter" for p in missing[:3]))
    count = f"{len(missing)} parameters ({names}, ...)" if len(missing) > 3 else names
    place: Place | None
    if late:
        place = (
            _exchanged(run, late[0], optimizer)
            or _attached(run, late[0], optimizer)
            or parting(_copy_of(run, late[0]) or late[0], optimizer)
        )
        text = f"{count}: made after the optimizer took its parameters, so no optimizer holds what learns here"
    else:
        last: Obj = near[-1].subject
        place = chosen(run, last)
        text = f"{count}: on the way to the loss, and held by no optimizer that steps"
    proof = tuple(p for p in (optimizer.place, event.place) if p is not None)
    assert optimizer.place is not None
    return Answer(place or optimizer.place, text, proof)


def _copy_of(run: Rehearsing, param: Node) -> Obj | None:
    """The copy of a network that ``param`` was made with."""
    if not param.inputs or not isinstance(param.inputs[0], Node) or param.inputs[0].op != "param":
        return None
    copies = [o for o in run.objects if o.copy_of is not None and is_module(o)]
    return next((o for o in copies if any(p is param for p in run.parameters(o)[0])), None)


def _exchanged(run: Rehearsing, param: Node, optimizer: Obj) -> Place | None:
    """Where the object that keeps the optimizer beside a network gives itself another one, again and again: no other
    order of what is done before the training would help."""
    for event in run.tape:
        if event.name != "set" or event.serial < optimizer.serial or not isinstance(event.subject, Obj):
            continue
        if not event.turns:
            continue
        beside = any(v is optimizer for v in event.subject.attributes.values())
        old, new = event.options.get("old"), event.args[1]
        other = is_module(old) and is_module(new) and old is not new
        if beside and other and any(p is param for p in run.parameters(new)[0]):
            return event.place
    return None


def _attached(run: Rehearsing, param: Node, optimizer: Obj) -> Place | None:
    """Where the module of ``param`` was put into another, after the optimizer was built, at the optimizer's level."""
    for event in run.tape:
        if event.name == "set" and event.serial > max(optimizer.serial, param.serial):
            inside = event.args[1]
            if inside is param or any(param.owner is m for m in modules_under(inside)):
                return parting(event, optimizer)
    return None


def _all_known(run: Rehearsing, event: Event) -> bool:
    """True where every element of the optimizer's groups is a parameter that is known."""
    return all_parameters(run.groups(event.subject))


def _in_plain_list(run: Rehearsing, param: Node) -> bool:
    """True if its module stands in a plain list or object of another: not registered, which is another fault."""
    if "plainly held" not in run.memo:
        modules = [o for o in run.objects if o.cls is not None and is_module(o)]
        given = [v for o in modules for v in o.attributes.values() if not is_module(v)]
        plain = [v for v in given if not isinstance(v, Node) or LEAF in v.attributes]
        run.memo["plainly held"] = ids(p for value in plain for p in params_in(run, value))
    return id(param) in run.memo["plainly held"]


def _learnable(run: Rehearsing, param: Node, event: Event) -> bool:
    restored = [w for w in param.writes if w.name in RESTORED and w.serial not in going_on(run)]
    if param.trainable is False or any(w.serial < event.serial for w in restored):
        return False
    loops = ids(t.node for t in param.turns) & ids(t.node for t in event.turns)
    return not loops or param.owner is not None or not param.inputs


def _thawed(run: Rehearsing, stepping: list[Event]) -> Iterator[Answer]:
    """Frozen parameters that were set free after the optimizers had been built without them."""
    for event in run.tape:
        if event.name != "requires_grad" or event.args[:1] != (True,):
            continue
        freed = [n for n in run.nodes if n.op == "param" and event in n.writes]
        later = [b for b in backwards(run) if b.serial > event.serial and b.turns]
        mine = [p for p in freed if any(w.args[:1] == (False,) and w.serial < event.serial for w in p.writes)]
        wanted = [p for p in mine if any(p in reached(b) for b in later)]
        users = ids(p for s in stepping if s.serial > event.serial for p in held(s))
        lost = [p for p in wanted if id(p) not in users]
        if lost and len(lost) == len(wanted) and event.place is not None and later:
            active = [s for s in stepping if s.serial > later[0].serial]
            if active:
                text = f"{lost[0].name} and others are set free here, and no optimizer that steps afterwards holds them"
                proof = tuple(s.subject.place for s in active[:1] if isinstance(s.subject, Obj) and s.subject.place)
                yield Answer(event.place, text, proof)
                return


def never_steps(run: Rehearsing) -> Iterator[Answer]:
    """An optimizer whose parameters get gradients in a loop, and that nothing ever steps; or one that steps only
    where no gradient is there."""
    life = lives(run)
    stepping = steps(run)
    if not life.sure:
        return
    ever = ids(p for e in stepping for p in held(e))
    for optimizer in run.objects:
        if not is_optimizer(optimizer) or any(e.subject is optimizer for e in stepping):
            continue
        params, _ = run.optimized(optimizer)
        mine = ids(params)
        if not mine or mine & ever or any(written_by_hand(run, p) for p in params) or _handed_on(run, optimizer):
            continue
        if _used_elsewhere(run, mine):
            continue
        for event in backwards(run):
            if event.turns and event.place is not None and mine & ids(reached(event)):
                assert optimizer.place is not None
                text = "gradients are computed here, and the optimizer that holds the weights never steps"
                yield Answer(event.place, text, (optimizer.place,))
                break
    yield from _always_empty(run)


def _always_empty(run: Rehearsing) -> Iterator[Answer]:
    life = lives(run)
    for optimizer in dict.fromkeys(e.subject for e in life.empty):
        mine = [e for e in steps(run) if e.subject is optimizer]
        if not all(e in life.empty for e in mine) or not mine[0].turns or mine[0].place is None:
            continue
        params = ids(held(mine[0]))
        giving = [b for b in backwards(run) if params & ids(reached(b)) and b.turns]
        cleared = [
            z
            for b, z in life.wasted
            if b in giving and any(z.serial < s.serial and same_turn(z, s) and same_turn(z, b) for s in mine)
        ]
        if giving and not cleared and not any(id(b) in life.used_by for b in giving) and giving[0].place is not None:
            text = (
                "no gradient is there when this steps: the backward comes later, and its gradients are cleared before"
            )
            yield Answer(mine[0].place, text, (giving[0].place,))


def _used_elsewhere(run: Rehearsing, mine: set[int]) -> bool:
    """True if gradients of these parameters become those of others (a server learns from what workers computed)."""
    for event in run.tape:
        given = event.name == "set_grad" or (
            event.name.endswith("_") and isinstance(event.subject, Node) and event.subject.op == "grad"
        )
        if given and event.args and isinstance(event.subject, Node):
            learner = event.subject if event.subject.op == "param" else event.subject.inputs[0]
            grads = (n.inputs[0] for n in ancestors(event.args) if n.op == "grad" and n.inputs)
            if id(learner) not in mine and any(id(p) in mine for p in grads):
                return True
    return False


def _handed_on(run: Rehearsing, optimizer: Obj) -> bool:
    """True if the optimizer was given to something that may step it."""
    for node in run.nodes:
        if any(i is optimizer for i in node.inputs) and node.op not in ("state_dict", "load_state_dict", "text"):
            return True
    return False


def never_cleared(run: Rehearsing) -> Iterator[Answer]:
    """A step that uses a gradient which an earlier step has used already."""
    life = lives(run)
    rare = {id(s.place[0]) for s in steps(run) if s.place is not None and counted(s)}
    told: set[int] = set()
    for step, old, new in life.stale:
        if not step.turns or step.place is None or new.event.place is None or not life.sure:
            continue
        if id(step.place[0]) in told:
            continue
        told.add(id(step.place[0]))
        mine = ids(held(step))
        outer = [
            e
            for e in run.tape
            if e.name == "zero_grad"
            and mine & ids(e.state.get("held", ()))
            and e.turns
            and len(e.turns) < len(step.turns)
        ]
        beside = [
            e
            for e in life.idle_resets
            if e.turns
            and len(e.turns) == len(step.turns)
            and e.turns[-1].node is step.turns[-1].node
            and any(t.generic for t in e.turns)
            and not mine & ids(e.state.get("held", ()))
        ]
        # a reset of other parameters that this very backward reaches too clears a part only
        together = ids(reached(new.event)) - mine
        clearing = [e for e in run.tape if e.name == "zero_grad" and e.turns == new.event.turns and e.state.get("held")]
        partial = [e for e in clearing if e not in beside and ids(e.state["held"]) <= together]
        passes = [e.serial for e in run.tape if e.name == "backward" and e.serial < new.event.serial]
        # the one right before it, where there are several: the others may clear for another backward
        beside += sorted(partial, key=lambda e: not max(passes, default=0) < e.serial < new.event.serial)
        text = "gradients that a step has used are still there when the next backward adds its own"
        proof = tuple(e.place for e in (old.event, step) if e.place is not None)
        wrong = next((e.place for e in [*beside, *outer] if e.place is not None), None)
        if id(step.place[0]) in rare and not beside:
            text = "gradients that this step has used are still there when the next ones are accumulated"
            first = next((e.place for e in outer if e.place is not None), new.event.place)
            yield Answer(step.place, text, (first,))
            continue
        if wrong is not None:
            text = f"this does not clear what accumulates in each turn: {text}"
        yield Answer(wrong or new.event.place, text, proof)


def cleared_too_soon(run: Rehearsing) -> Iterator[Answer]:
    """Gradients are cleared between the backward that gave them and the step that should use them."""
    for backward, zero in lives(run).wasted:
        depth = len(backward.turns)
        if not depth or zero.turns[:depth] != backward.turns or zero.place is None or _conditional(zero):
            continue
        params = ids(reached(backward))
        for step in steps(run):
            used = params & ids(held(step))
            if step.serial > zero.serial and step.turns[:depth] == backward.turns and used:
                if used - _cleared_between(run, backward, step):
                    break  # some of them alone, that are to rest: the others are used
                text = "the gradients of the backward above are cleared before the step below uses them"
                yield Answer(zero.place, text, tuple(e.place for e in (backward, step) if e.place is not None))
                break


def _cleared_between(run: Rehearsing, backward: Event, step: Event) -> set[int]:
    """``id`` of the parameters whose gradients are cleared after the backward and before the step."""
    between = [e for e in run.tape if e.name == "zero_grad" and backward.serial < e.serial < step.serial]
    return {id(p) for e in between for p in e.state.get("held", ())}


def cleared_each_micro_batch(run: Rehearsing) -> Iterator[Answer]:
    """Gradients are cleared in every turn and used only in some, or after the loop."""
    for backward, zero in lives(run).wasted:
        if (
            not backward.turns
            or zero.turns[: len(backward.turns)] == backward.turns
            or zero.place is None
            or _conditional(zero)
        ):
            continue
        if not any(t.node is backward.turns[-1].node for t in zero.turns):
            continue
        params = ids(reached(backward))
        for step in steps(run):
            if step.serial < zero.serial or not params & ids(held(step)):
                continue
            within = bool(step.turns) and step.turns[-1].node is backward.turns[-1].node
            if within and counted(step):
                text = "gradients are cleared in every micro batch, the step comes only every few"
            elif not within and len(step.turns) < len(backward.turns) and few(backward):
                text = "gradients are cleared in every micro batch, the step comes after all of them"
            else:
                continue
            yield Answer(zero.place, text, tuple(e.place for e in (backward, step) if e.place is not None))
            break


def steps_outside(run: Rehearsing) -> Iterator[Answer]:
    """The step stands after the loop over batches whose gradients are cleared one by one."""
    for backward, zero in lives(run).wasted:
        if not backward.turns or len(zero.turns) != len(backward.turns) or few(backward):
            continue
        params = ids(reached(backward))
        for step in steps(run):
            outside = len(step.turns) < len(backward.turns) and step.serial > backward.serial
            if outside and step.place is not None and params & ids(held(step)):
                text = "the step comes once after the loop, whose gradients are cleared in every turn"
                yield Answer(step.place, text, tuple(e.place for e in (backward, zero) if e.place is not None))
                return


def _conditional(event: Event) -> bool:
    return bool(event.tests)


def few(event: Event) -> bool:
    """True if the innermost loop around it goes over the parts of one batch: a ``range``, or chunks."""

    over = event.turns[-1].over
    if isinstance(over, Items):
        return over.kind == "range" or not over.more
    return isinstance(over, Node) and over.op in ("chunk", "unbind")
