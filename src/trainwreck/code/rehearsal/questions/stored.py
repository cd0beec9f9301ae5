"""What a file holds, against what it is read back with: sizes, kinds of objects, and whether anything takes it."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator

from trainwreck.code.calls import written
from trainwreck.code.pattern import pattern
from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Event, Node, Obj, Place, Table, candidates, is_module
from trainwreck.code.rehearsal.holding import is_optimizer, is_scheduler
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.gradients import steps
from trainwreck.code.rehearsal.questions.resuming import Resume, decides, resumes
from trainwreck.code.scopes import Scope

COUNTER = pattern(r"step|epoch|iter|round|updates", re.IGNORECASE)
MOMENTUM = "momentum"


def wrong_sizes(run: Rehearsing) -> Iterator[Answer]:
    """Weights come back into a layer of another size: ``load_state_dict`` refuses them, strict or not."""
    for event in run.tape:
        if event.name != "load_state_dict" or not is_module(event.subject) or event.place is None or event.maybe:
            continue
        given = [c for c in candidates(event.get("state_dict", 0)) if isinstance(c, Table)]
        if len(given) != 1 or event.subject.place is None:
            continue
        for param in (n for n in run.nodes if n.op == "param" and any(w is event for w in n.writes)):
            keys = [k for k in given[0].entries if isinstance(k, str) and f".{k}".endswith(f".{param.name}")]
            mine, other = _size(param), _size(given[0].entries[keys[0]]) if len(keys) == 1 else None
            if mine is not None and other is not None and mine != other:
                name = keys[0]
                text = f"{name} has the size {other} in the file and {mine} in this network"
                yield Answer(event.place, text, (event.subject.place,))
                break


def _size(value: object) -> tuple[int, ...] | None:
    while isinstance(value, Node) and value.op in ("loaded", "state", "clone", "detach") and value.inputs:
        value = value.inputs[0]
    if not isinstance(value, Node) or value.op != "param" or value.shape.open:
        return None
    known = tuple(d for d in value.shape.dims if isinstance(d, int))
    return known if len(known) == len(value.shape.dims) else None


def refused(run: Rehearsing) -> Iterator[Answer]:
    """A file with whole objects in it is read with ``weights_only=True``, which lets only tensors and plain data in."""
    for event in run.tape:
        if event.name != "load" or not isinstance(event.result, Table) or event.place is None:
            continue
        if event.options.get("weights_only") is not True:
            continue
        for key, value in event.result.entries.items():
            held = value.inputs[0] if isinstance(value, Node) and value.op == "loaded" and value.inputs else None
            if isinstance(held, Obj) and (is_module(held) or is_optimizer(held) or is_scheduler(held)):
                text = f"'{key}' is a whole {held.name} in the file: weights_only=True refuses it"
                saved = [e.place for e in run.tape if e.full == "torch.save" and e.serial < event.serial]
                yield Answer(event.place, text, tuple(p for p in saved[-1:] if p is not None))
                return


def refused_whole(run: Rehearsing) -> Iterator[Answer]:
    """A whole network was saved, and is read without saying that a file of whole objects is meant.

    ``weights_only`` is true by default since torch 2.6."""
    for save in run.tape:
        held = save.get("obj", 0)
        if save.full != "torch.save" or not is_module(held) or not isinstance(held, Obj):
            continue
        for event in run.tape:
            if event.name != "load" or event.serial < save.serial or event.place is None or event.full != "torch.load":
                continue
            same = _path(event.get("f", 0)) is not None and _path(event.get("f", 0)) == _path(save.get("f", 1))
            if same and event.options.get("weights_only", True) is True and "?" not in event.options:
                text = f"the file holds a whole {held.name}: since torch 2.6 it is refused without weights_only=False"
                yield Answer(event.place, text, (save.place,) if save.place is not None else ())
                return


def _path(value: object) -> object:
    """A path that can be compared: its text, or the value itself."""
    if isinstance(value, Obj) and value.args and isinstance(value.args[0], str):
        return value.args[0]
    return value if isinstance(value, str) else id(value) if isinstance(value, Node) else None


def taken_from(run: Rehearsing, wrapped: Collection[int]) -> Iterator[Answer]:
    """A state that was taken from a wrapped network by one of the calls ``wrapped`` (by ``id``), and is given by
    another call to one that isn't."""
    for event in run.tape:
        if event.name != "load_state_dict" or not is_module(event.subject) or event.place is None:
            continue
        given = [c for c in candidates(event.get("state_dict", 0)) if isinstance(c, Table)]
        taken = _taken_at(given[0]) if len(given) == 1 and event.get("strict", 1, True) is True else None
        if taken is not None and id(taken[0]) in wrapped and id(event.place[0]) not in wrapped:
            text = "the names in this state begin with the prefix of the wrapper, and a network without it refuses them"
            yield Answer(taken, text, (event.place,))
            return


def prefixed_by_wrapper(run: Rehearsing) -> Iterator[Answer]:
    """The state of a network in ``DataParallel`` or ``DistributedDataParallel``, given to one that is in none."""
    yield from _prefixed(run, "module.")


def _prefixed(run: Rehearsing, prefix: str) -> Iterator[Answer]:
    for event in run.tape:
        if event.name != "load_state_dict" or not is_module(event.subject) or event.place is None:
            continue
        given = [c for c in candidates(event.get("state_dict", 0)) if isinstance(c, Table)]
        names = {name for name, _ in run.named(event.subject)}
        keys = set(given[0].entries) if len(given) == 1 and not given[0].more else set()
        if not names or not keys or not all(isinstance(k, str) for k in keys):
            continue
        mine, theirs = (all(str(k).startswith(prefix) for k in some) for some in (names, keys))
        bare = {str(k).removeprefix(prefix) for k in (keys if theirs else names)}
        if mine != theirs and bare == (names if theirs else keys) and event.get("strict", 1, True) is True:
            text = f"the names in this state {'begin' if theirs else 'do not begin'} with '{prefix}': it is refused"
            taken = _taken_at(given[0]) if theirs else None
            yield Answer(taken or event.place, text, (event.place,))
            return


def _taken_at(table: Table) -> Place | None:
    """Where a state was taken from its network."""
    value: object = next(iter(table.entries.values()), None)
    for _ in range(6):
        if isinstance(value, Node) and value.op == "state":
            return value.place
        value = value.inputs[0] if isinstance(value, Node) and value.inputs else None
    return None


def never_kept(run: Rehearsing) -> Iterator[Answer]:
    """The job goes on with its counter or its schedule, and its optimizer begins anew: the file doesn't hold it."""
    for resume in resumes(run):
        after = resume.loaded.serial
        if any(e.name == "load_state_dict" and is_optimizer(e.subject) and e.serial > after for e in run.tape):
            continue
        sources = [_source(v) for v in resume.entries.values()]
        schedules = [s for s in sources if is_scheduler(s)]
        restored = any(e.name == "load_state_dict" and is_scheduler(e.subject) and e.serial > after for e in run.tape)
        if any(is_optimizer(s) for s in sources) or not schedules or not restored or resume.network.place is None:
            continue
        stepping = [s for s in steps(run) if s.turns and s.serial > after and _keeps_state(s.subject)]
        before = [s for s in steps(run) if s.turns and s.serial < after]
        if stepping and before and stepping[-1].subject.kind == before[-1].subject.kind:
            text = "training goes on from this file, and the optimizer begins anew: its state was never saved"
            yield Answer(resume.network.place, text, _saves(run, resume))
            return


def planned_again(run: Rehearsing) -> Iterator[Answer]:
    """A schedule is given back its state, and another one is made for the same optimizer and moves in its place; or the
    file holds the optimizer and no schedule, and a schedule begins anew where training goes on."""
    moved = [e for e in run.tape if e.name == "step" and is_scheduler(e.subject) and e.turns]
    for load in [e for e in run.tape if e.name == "load_state_dict" and is_scheduler(e.subject) and not e.maybe]:
        after = [m for m in moved if m.serial > load.serial]
        new = next((m.subject for m in after if m.subject.serial > load.serial and m.subject is not load.subject), None)
        again = any(e.name == "load_state_dict" and e.subject is new for e in run.tape)
        if new is None or again or new.place is None or any(m.subject is load.subject for m in after):
            continue
        if new.get("optimizer", 0) is load.subject.get("optimizer", 0) and not _told_where(new):
            text = "this takes the place of the schedule that was restored: it begins anew"
            yield Answer(new.place, text, (load.place,) if load.place is not None else ())
            return
    for resume in resumes(run):
        start = resume.loaded.serial
        if any(e.name == "load_state_dict" and is_scheduler(e.subject) for e in run.tape):
            return
        restored = [e for e in run.tape if e.name == "load_state_dict" and is_optimizer(e.subject) and e.serial > start]
        after = [m for m in moved if m.serial > start and not _told_where(m.subject)]
        before = [m for m in moved if m.serial < start]
        caught_up = any(not any(s.turns[-1:] == m.turns[-1:] for s in steps(run)) for m in after)
        known = before or not isinstance(resume.loaded.result, Table)  # an earlier job, which is this program, had it
        if restored and after and known and not caught_up and restored[-1].place is not None:
            text = "the optimizer is restored here, and its schedule is not: it begins anew"
            yield Answer(restored[-1].place, text, _saves(run, resume))
            return


def _told_where(scheduler: Obj) -> bool:
    """True for a schedule that is told how many steps were done (``last_epoch``)."""
    return scheduler.options.get("last_epoch") not in (None, -1)


def averaged_again(run: Rehearsing) -> Iterator[Answer]:
    """An average of weights is given back its state, and is then copied from the network once more."""
    for load in [e for e in run.tape if e.name == "load_state_dict" and is_module(e.subject) and not e.maybe]:
        if load.subject.copy_of is None:
            continue
        for new in run.objects:
            if not is_module(new) or new.copy_of is None or new.serial < load.serial or new.place is None:
                continue
            mine, others = run.parameters(new)[0], run.parameters(load.subject)[0]
            moves = any(w.turns and w.name in ("lerp_", "mul_", "copy_") for p in mine for w in p.writes)
            used = any(w.serial > new.serial and w.turns for p in others for w in p.writes)
            if new.cls is load.subject.cls and moves and not used and not new.turns:
                text = "this takes the place of the average that was restored: it begins anew from the network"
                yield Answer(new.place, text, (load.place,) if load.place is not None else ())
                return


def built_again(run: Rehearsing) -> Iterator[Answer]:
    """An optimizer is given back its state, and another one is made for the same parameters and steps in its place."""
    for load in run.tape:
        if load.name != "load_state_dict" or not is_optimizer(load.subject) or load.maybe:
            continue
        mine = {id(p) for p in run.optimized(load.subject)[0]}
        after = [s for s in steps(run) if s.serial > load.serial and s.turns]
        new = next((s.subject for s in after if s.subject.serial > load.serial and s.subject.kind == load.subject.kind
                    and mine == {id(p) for p in run.optimized(s.subject)[0]}), None)  # fmt: skip
        again = any(e.name == "load_state_dict" and e.subject is new for e in run.tape)
        if mine and new is not None and not again and all(s.subject is not load.subject for s in after):
            place = new.place
            if place is not None and load.place is not None and place[1] is load.place[1] and not new.maybe:
                yield Answer(place, "this takes the place of the optimizer that was restored: its state begins anew",
                             (load.place,))  # fmt: skip
                return


def _source(value: object) -> object:
    return value.inputs[0] if isinstance(value, Node) and value.op == "state_dict" and value.inputs else value


def _keeps_state(optimizer: object) -> bool:
    if not isinstance(optimizer, Obj) or not is_optimizer(optimizer):
        return False
    return optimizer.name not in ("SGD", "Rprop", "ASGD") or optimizer.get(MOMENTUM, 2) not in (None, 0, 0.0)


def _saves(run: Rehearsing, resume: Resume) -> tuple[Place, ...]:
    saved = [e.place for e in run.tape if e.full == "torch.save" and e.serial < resume.loaded.serial]
    return tuple(p for p in saved[-1:] if p is not None)


def counter_dropped(run: Rehearsing) -> Iterator[Answer]:
    """A function gives back the counter of the file, and what calls it doesn't take it."""
    for resume in resumes(run):
        if resume.loaded.place is None:
            continue
        scope = resume.loaded.place[1]
        returned = [n for n in scope.nodes if isinstance(n, ast.Return) and _counter(n.value, resume)]
        if scope.kind != "function" or not returned:
            continue
        for event in (resume.loaded, resume.network):
            place = _asked_by(event, scope)
            if place is None:
                continue
            statement = run.project.statement(*place)
            if isinstance(statement, ast.Expr) and statement.value is place[0]:
                yield Answer(
                    place, "the counter of the file comes back here, and nothing takes it: counting begins anew"
                )
                return
            name = statement.targets[0] if isinstance(statement, ast.Assign) and len(statement.targets) == 1 else None
            if isinstance(name, ast.Name) and isinstance(statement, ast.Assign):
                following = _next_binding(place[1], name.id, statement)
                if not _read(place[1], name.id, statement.lineno, getattr(following, "lineno", 0)):
                    at = place if following is None else (following, place[1])
                    yield Answer(at, f"{name.id} is where training stopped, and no loop begins there", (place,))
                    return


def counter_unread(run: Rehearsing) -> Iterator[Answer]:
    """``step = blob["step"]`` in a function that does nothing with it; or a count by which the object that restores
    itself works out its rate, which is neither in the file nor set."""
    for resume in resumes(run):
        if resume.loaded.place is None:
            continue
        scope = resume.loaded.place[1]
        for node in scope.nodes:
            target = node.targets[0] if isinstance(node, ast.Assign) and len(node.targets) == 1 else None
            name = target.id if isinstance(target, ast.Name) and scope.kind == "function" else ""
            if name and isinstance(node, ast.Assign) and _counter(node.value, resume) and not _read(scope, name):
                yield Answer(
                    (node, scope), f"{name} is a name of this function: the count outside of it begins at zero"
                )
                return
            if isinstance(node, ast.Assign) and isinstance(target, ast.Attribute) and _counter(node.value, resume):
                place = _loop_after(run, resume)
                if not _attribute_read(run, target.attr) and place is not None:
                    text = f"{written(target)} is where training stopped, and this loop begins anew"
                    yield Answer(place, text, ((node, scope),))
                    return
        for dropped in _always_the_same(run, resume):
            yield Answer(dropped, "the count is written into the file as a constant: training goes on from there")
            return
        if scope.owner is not None and resume.network.place is not None:
            for name in _own_counts(scope):
                if not any(COUNTER.search(k) for k in resume.entries) and decides(run, name):
                    yield Answer(resume.network.place, f"{name} is not in the file: it counts from zero again")
                    return


def _attribute_read(run: Rehearsing, name: str) -> bool:
    """True where the program reads an attribute of this name, or reads attributes by names that it works out."""
    for walked in run.project.walked.values():
        for scope in walked.scopes:
            for node in scope.nodes:
                if isinstance(node, ast.Attribute) and node.attr == name and isinstance(node.ctx, ast.Load):
                    return True
                if isinstance(node, ast.Call) and written(node.func) in ("getattr", "vars", "asdict"):
                    return True
    return False


def _loop_after(run: Rehearsing, resume: Resume) -> Place | None:
    """The loop over the epochs that goes on after the file was read: ``for epoch in range(n)``."""
    for step in steps(run):
        turn = step.turns[0] if step.serial > resume.loaded.serial and step.turns else None
        loop = turn.node if turn is not None else None
        if turn is not None and isinstance(loop, ast.For):
            calls = [n for n in ast.walk(loop.iter) if isinstance(n, ast.Call) and written(n.func).endswith("range")]
            return (loop, turn.scope) if calls and len(calls[0].args) == 1 else None
    return None


def _always_the_same(run: Rehearsing, resume: Resume) -> Iterator[Place]:
    """Where ``"step": 0`` is saved; another number behind all loops is how many there were."""
    keys = {k for k, v in resume.entries.items() if COUNTER.search(k) and type(v) is int}
    for walked in run.project.walked.values() if keys else ():
        for scope in walked.scopes:
            for node in scope.nodes:
                if isinstance(node, ast.Dict) and len(node.keys) > 1:
                    for key, value in zip(node.keys, node.values, strict=True):
                        named = isinstance(key, ast.Constant) and key.value in keys
                        if not named or not isinstance(value, ast.Constant) or "state_dict" not in ast.unparse(node):
                            continue
                        around = run.project.ancestors(node, scope)
                        if not value.value or any(isinstance(a, ast.For | ast.While) for a in around):
                            yield value, scope


def _own_counts(scope: Scope) -> list[str]:
    """Attributes that methods of the class count up, and that this function doesn't set."""
    owner = scope.owner
    methods = owner.children if owner is not None else ()
    counted = [n.target for m in methods for n in m.nodes if isinstance(n, ast.AugAssign) and isinstance(n.op, ast.Add)]
    names = {written(t) for t in counted if isinstance(t, ast.Attribute) and COUNTER.search(t.attr)}
    return sorted(names - {written(t) for n in scope.nodes if isinstance(n, ast.Assign) for t in n.targets})


def _counter(value: ast.expr | None, resume: Resume) -> bool:
    """True for ``blob["step"]`` by itself."""
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add) and isinstance(value.right, ast.Constant):
        value = value.left  # ``blob["epoch"] + 1``
    key = value.slice if isinstance(value, ast.Subscript) else None
    return isinstance(key, ast.Constant) and key.value in resume.entries and bool(COUNTER.search(str(key.value)))


def _asked_by(event: Event, scope: Scope) -> Place | None:
    """The call of the function ``scope`` that led to an event."""
    return event.stack[-1] if event.stack and event.place is not None and event.place[1] is scope else None


def _next_binding(scope: Scope, name: str, after: ast.Assign) -> ast.AST | None:
    """The next statement of the function that gives the name another value."""
    found = [n for n in scope.nodes if isinstance(n, ast.Assign) and n.lineno > after.lineno
             and any(isinstance(t, ast.Name) and t.id == name for s in n.targets for t in ast.walk(s))]  # fmt: skip
    return min(found, key=lambda n: n.lineno, default=None)


def _read(scope: Scope, name: str, since: int = 0, until: int = 0) -> bool:
    """True if a name is read by anything but a text that is shown (between two lines, the second one included)."""
    shown = {id(m) for n in scope.nodes if isinstance(n, ast.JoinedStr) for m in ast.walk(n)}
    nodes = [*scope.nodes, *(n for child in scope.children for n in ast.walk(child.node))]
    reads = [n for n in nodes if isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Load)]
    return any(id(n) not in shown and n.lineno > since and (not until or n.lineno <= until) for n in reads)
