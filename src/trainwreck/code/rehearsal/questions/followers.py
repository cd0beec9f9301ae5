"""Networks that targets are computed with and no gradient moves: does the program move them, and the right one?"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import written
from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Event, Function, Node, Obj, Place, Table, Value, is_module
from trainwreck.code.rehearsal.graph import ancestors, parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.freezing import updates
from trainwreck.code.rehearsal.questions.gradients import held, ids, steps
from trainwreck.code.rehearsal.questions.targets import Fitted, fits
from trainwreck.code.rehearsal.questions.terms import parameters_behind

CARED_FOR = frozenset(
    "load_state_dict state_dict parameters named_parameters modules buffers".split()
    + "to cuda cpu eval train requires_grad_".split()
)
"""What is asked of a network without asking it for results."""
LOADS = frozenset(["load_state_dict", "update_parameters"])


def stays(run: Rehearsing) -> Iterator[Answer]:
    """What the target is computed with started as the network that is trained, and nothing moves it later."""
    trained = ids(p for s in steps(run) for p in held(s))
    modules = [o for o in run.objects if is_module(o)]
    for one in fits(run):
        own = parameters_behind(one.output, through_grad=True)
        for network in _networks(run, one, trained):
            if not _like(run, network, own) or _moved(run, network) or _handed_on(run, network):
                continue
            if any(o.turns and o.serial > network.serial and o is not network and _like(run, o, own) for o in modules):
                continue  # another copy is made in its place
            wrong = _pulled(run, network, own)
            mine = [s for s in steps(run) if s.turns and any(id(p) in own for p in held(s))]
            place = (
                wrong
                or _idle(run, network)
                or _by_itself(run, network)
                or (_after(run, mine[-1], network) if mine else None)
            )
            if place is None:
                continue
            text = "the network that learns is set to its copy here, and the copy never moves" if wrong else (
                "after this step nothing brings the copy up to date that the target is computed with"
            )  # fmt: skip
            yield Answer(place, text, tuple(p for p in (network.place, one.event.place) if p is not None))
            return


def _by_itself(run: Rehearsing, network: Obj) -> Place | None:
    """Where its weights are mixed with themselves."""
    writes = (e for p in run.parameters(network)[0] for e in p.writes if e.turns and e.args and _own(e, p))
    return next((e.place for e in writes if e.name != "requires_grad" and any(True for _ in parts(e.args))), None)


def _after(run: Rehearsing, step: Event, network: Obj) -> Place | None:
    """The last step of the same turn; where a method stands ready that brings copies up to date and nothing calls, the
    call that led to that step from outside of its class."""
    same = [s for s in steps(run) if s.serial >= step.serial and s.turns[: len(step.turns)] == step.turns]
    last = same[-1] if same else step
    for holder in run.objects:
        if holder.cls is None or not any(v is network for v in holder.attributes.values()):
            continue
        methods = [f for c in holder.cls.mro() for f in c.names.values() if isinstance(f, Function)]
        ready = [f for f in methods if updates(f) and id(f.node) not in run.executed and len(f.scope.params) < 2]
        outside = [p for p in reversed(last.stack) if all(p[1] is not f.scope for f in methods)]
        if ready and outside:
            return outside[0]
    return last.place


def _networks(run: Rehearsing, one: Fitted, trained: set[int]) -> Iterator[Obj]:
    """The largest networks that the value in a target comes from and no optimizer holds."""
    behind = parameters_behind(one.found.value).keys()
    held_by = [(obj, ids(run.parameters(obj)[0])) for obj in run.objects if is_module(obj)]
    inside = [(obj, params) for obj, params in held_by if params and params <= behind and not params & trained]
    seen: set[int] = set()
    for obj, params in sorted(inside, key=lambda found: -len(found[1])):
        if not params <= seen:
            seen |= params
            yield obj


def _like(run: Rehearsing, network: Obj, own: dict[int, Node]) -> bool:
    """True for a copy of the network that is trained, or one that was given its weights."""
    for param in run.parameters(network)[0]:
        if any(id(p) in own for i in param.inputs for p in parts(i)):
            return True
    return any(
        e.name in LOADS and _holds(run, e.subject, network) and any(id(p) in own for p in _weights_of(e))
        for e in run.tape
    ) or any(id(p) in own for q in run.parameters(network)[0] for w in q.writes for p in _given(w))


def _given(event: Event) -> Iterator[Node]:
    for arg in event.args:
        for node in parts(arg):
            yield from (n for n in ancestors(node, through=_no_param) if n.op == "param")


def _no_param(node: Node) -> bool:
    return node.op != "param"


def _weights_of(event: Event) -> Iterator[Node]:
    """The parameters whose values a ``load_state_dict`` is given."""
    for arg in (*event.args, *event.options.values()):
        if isinstance(arg, Table):
            for value in arg.entries.values():
                for node in parts(value):
                    yield from (n for n in ancestors(node, through=_no_param) if n.op == "param")
        elif isinstance(arg, Node):
            yield from (n for n in ancestors(arg, through=_no_param) if n.op == "param")


def _holds(run: Rehearsing, subject: Value, network: Obj) -> bool:
    if not isinstance(subject, Obj) or not is_module(subject):
        return False
    return bool(ids(run.parameters(subject)[0]) & ids(run.parameters(network)[0]))


def _moved(run: Rehearsing, network: Obj) -> bool:
    """True where something is written into it in the loop that trains."""
    written = any(
        e.turns and e.serial > network.serial and e.name != "requires_grad" and not _own(e, p) and not never(e)
        for p in run.parameters(network)[0]
        for e in p.writes
    )
    return written or any(
        e.turns
        and e.serial > network.serial
        and e.name in LOADS | {"set"}
        and _holds(run, e.subject, network)
        and not never(e)
        for e in run.tape
        if e.name != "set" or is_module(e.subject)
    )


def _idle(run: Rehearsing, network: Obj) -> Place | None:
    """The test that keeps it from ever being brought up to date."""
    events = [e for e in run.tape if e.name in LOADS and e.turns and _holds(run, e.subject, network)]
    events += [e for p in run.parameters(network)[0] for e in p.writes if e.turns and e.name != "requires_grad"]
    tests = [t for e in events if never(e) for t in e.tests if isinstance(t, Node)]
    return tests[-1].place if tests else None


def never(event: Event) -> bool:
    """True where it stands behind a test that a count of turns never passes: ``step > steps`` of ``range(steps)``."""
    for test in event.tests:
        count, least = (*test.inputs, None, None)[:2] if isinstance(test, Node) else (None, None)
        counted = isinstance(count, Node) and count.op == "counter" and count.full == "builtins.range"
        if counted and isinstance(count, Node) and isinstance(least, int) and isinstance(test, Node):
            ends = [i for i in count.inputs if isinstance(i, int)]
            last = (ends[0] if len(ends) == 1 else ends[1]) - 1 if len(ends) == len(count.inputs) > 0 else None
            if last is not None and ((test.op == "gt" and last <= least) or (test.op == "ge" and last < least)):
                return True
    return False


def _own(event: Event, param: Node) -> bool:
    """True for a write that only mixes a parameter with itself."""
    values = [n for a in event.args for n in parts(a)]
    mixed = [p for n in values for p in ancestors(n, through=_no_param) if p.op == "param"]
    return all(p is param for p in mixed) and (bool(mixed) or not values)


def _handed_on(run: Rehearsing, network: Obj) -> bool:
    """True where it is given to something that may move it unseen."""
    return any(
        e.turns and e.name not in ("forward", "print", "set", "append") and any(a is network for a in e.args)
        for e in run.tape
    )


def _pulled(run: Rehearsing, network: Obj, own: dict[int, Node]) -> Place | None:
    """Where the network that is trained is written over with its copy."""
    theirs = ids(run.parameters(network)[0])
    for param in own.values():
        for event in param.writes:
            if event.turns and any(id(p) in theirs for p in _given(event)):
                return _asked(run, event, theirs)
    for event in run.tape:
        mine = event.name in LOADS and event.turns and isinstance(event.subject, Obj) and is_module(event.subject)
        if (
            mine
            and ids(run.parameters(event.subject)[0]) & own.keys()
            and any(id(p) in theirs for p in _weights_of(event))
        ):
            return event.place
    return None


def _asked(run: Rehearsing, event: Event, theirs: set[int]) -> Place | None:
    """The call whose arguments are the wrong way round, where a helper serves others as it should; else the write."""
    trained = ids(p for s in steps(run) for p in held(s))
    if not event.stack or event.place is None:
        return event.place
    same = (
        p
        for p in run.nodes
        if p.op == "param"
        and id(p) not in trained | theirs
        and any(w.place is not None and event.place is not None and w.place[0] is event.place[0] for w in p.writes)
    )
    return event.stack[-1] if any(True for _ in same) else event.place


def itself(run: Rehearsing) -> Iterator[Answer]:
    """The copy that is brought up to date is the network itself, by another name."""
    for one in fits(run):
        own, theirs = parameters_behind(one.output, through_grad=True), parameters_behind(one.found.value)
        if not own or not own.keys() & theirs.keys():
            continue
        for event in run.tape:
            subject = event.subject
            if event.name != "load_state_dict" or not event.turns or not isinstance(subject, Obj):
                continue
            if not is_module(subject) or not ids(run.parameters(subject)[0]) & own.keys():
                continue
            given = ids(_weights_of(event))
            alias = next((p for p, v in run.memo.get("aliases", ()) if v is subject), event.place)
            if given and given <= ids(run.parameters(subject)[0]) and alias is not None:
                text = "both names are one network: what the target is computed with moves with every step"
                yield Answer(alias, text, tuple(p for p in (event.place,) if p is not None))
                return


def unused(run: Rehearsing) -> Iterator[Answer]:
    """A copy is brought up to date and never asked; the target is computed with the network that is trained."""
    trained = ids(p for s in steps(run) for p in held(s))
    for one in fits(run):
        own, theirs = parameters_behind(one.output, through_grad=True), parameters_behind(one.found.value)
        if not own or not own.keys() & theirs.keys():
            continue
        for network in run.objects:
            if not is_module(network) or not (params := ids(run.parameters(network)[0])) or params & trained:
                continue
            if not _like(run, network, own) or not _moved(run, network) or _asked_or_kept(run, params):
                continue
            if _named_elsewhere(network):
                continue
            layer = next((n for n in ancestors(one.found.value) if any(id(i) in own for i in n.inputs)), None)
            place = _call(layer, one.found.node) if layer is not None else None
            if place is not None:
                text = "the copy that is brought up to date is never asked: the target moves with every step"
                yield Answer(place, text, tuple(p for p in (network.place, one.event.place) if p is not None))
                return


def _asked_or_kept(run: Rehearsing, params: set[int]) -> bool:
    for event in run.tape:
        if (
            event.name == "forward"
            and isinstance(event.subject, Obj)
            and ids(run.parameters(event.subject)[0]) & params
        ):
            return True
        if event.name == "save" and any(id(p) in params for p in _given(event)):
            return True
    return any(
        e.name == "state_dict" and isinstance(e.subject, Obj) and ids(run.parameters(e.subject)[0]) & params
        for e in run.tape
    )


def _named_elsewhere(network: Obj) -> bool:
    """True where the program asks something of the network by its name, in code that the rehearsal may not reach."""
    if network.place is None:
        return False
    tree = network.place[1].module.tree
    names = {
        written(target)
        for assign in ast.walk(tree)
        if isinstance(assign, ast.Assign) and any(n is network.place[0] for n in ast.walk(assign.value))
        for target in assign.targets
    }
    return any(
        (isinstance(n, ast.Attribute) and n.attr not in CARED_FOR and written(n.value) in names)
        or (isinstance(n, ast.Call) and written(n.func) in names)
        for n in ast.walk(tree)
    )


def _call(layer: Node, target: Node) -> Place | None:
    scope = target.place[1] if target.place is not None else None
    seen = (*layer.stack, layer.place)
    return next((p for p in reversed(seen) if p is not None and p[1] is scope), layer.place)


__all__ = ["itself", "stays", "unused"]
