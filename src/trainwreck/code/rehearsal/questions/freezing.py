"""Which parameters are frozen where they should learn, and which copies of weights are never brought up to date?"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import pairwise

from trainwreck.code.params import KEEPERS
from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Event, Function, Node, Obj, is_module
from trainwreck.code.rehearsal.graph import ancestors, graph
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.adapters import frozen
from trainwreck.code.rehearsal.questions.gradients import backwards, given_weights, going_on, held, ids, lives, steps

UPDATES = frozenset(["lerp_", "mul_", "copy_", "add_"])


def _frozen_at(param: Node) -> Event | None:
    """What froze a parameter, if that is its last word."""
    told = [w for w in param.writes if w.name == "requires_grad"]
    return told[-1] if told and told[-1].args[:1] == (False,) else None


def all_frozen(run: Rehearsing) -> Iterator[Answer]:
    """Every parameter of an optimizer is frozen when it steps."""
    life = lives(run)
    given = {id(e.subject) for e in run.tape if e.name == "set_grad"}  # gradients of the program's own
    for optimizer in dict.fromkeys(e.subject for e in life.empty):
        mine = [e for e in steps(run) if e.subject is optimizer]
        params = held(mine[-1])
        if any(id(p) in given for p in params):
            continue
        places = [_frozen_at(p) for p in params]
        if not all(e in life.empty for e in mine) or not mine[-1].turns or not places or None in places:
            continue
        last = max((w for w in places if w is not None), key=lambda w: w.serial)
        if last.place is not None and last.serial < mine[0].serial and all(p.trainable is False for p in params):
            text = "every parameter that the optimizer holds is frozen here"
            yield Answer(last.place, text, tuple(e.place for e in mine[-1:] if e.place is not None))


def new_frozen(run: Rehearsing) -> Iterator[Answer]:
    """A layer that was made after the first training and is frozen before the next, with its initial weights."""
    if next(iter(frozen(run)), None) is not None:
        return
    for event in backwards(run)[::-1]:
        earlier = [s for s in steps(run) if s.turns and s.serial < event.serial]
        for node in graph(event.subject):
            for param in node.inputs:
                fresh = isinstance(param, Node) and any(s.serial < param.serial for s in earlier)
                stopped = _kept(run, param) if fresh else None
                if stopped is not None and stopped.place is not None:
                    text = f"{param.name} is new and is frozen here: it keeps its initial values"
                    yield Answer(stopped.place, text, (event.place,) if event.place is not None else ())
                    return
        if any(not _one_training(s, event) for s in earlier):
            yield from _first_layers(run, event)
        return


def _first_layers(run: Rehearsing, event: Event) -> Iterator[Answer]:
    """What lies before the first layer that learns: no gradient comes there, so all values are asked."""
    for param in ancestors(event.subject, through=lambda n: n.op != "param"):
        stopped = _kept(run, param) if param.op == "param" and param.trainable is False else None
        if stopped is not None and stopped.place is not None and _beside(run, param, event):
            text = f"{param.name} is frozen here with the values that it was made with, nothing trained it before"
            yield Answer(stopped.place, text, (event.place,) if event.place is not None else ())
            return


def still_frozen(run: Rehearsing) -> Iterator[Answer]:
    """A second optimizer is made for more parameters than the first, and all that it adds are frozen: it does the same
    as the one before. Or what is set free has no parameters at all."""
    for event in run.tape:
        if event.name == "requires_grad" and is_module(event.subject) and event.args[:1] == (True,) and event.place:
            params, whole = run.parameters(event.subject)
            inside = _around(run, event.subject)
            if not params and whole and inside and all(p.trainable is False for p in inside):
                yield Answer(event.place, "this part has no parameters of its own: nothing is set free")
                return
    found = [s.subject for s in steps(run) if s.turns]
    made = sorted(dict.fromkeys(found), key=lambda o: o.serial)
    for one, other in pairwise(made):
        before, after = ids(run.optimized(one)[0]), run.optimized(other)[0]
        added = [p for p in after if id(p) not in before]
        known = run.optimized(one)[1] and run.optimized(other)[1] and other.place is not None
        more = before and before < ids(after) and any(s.subject is one and s.serial < other.serial for s in steps(run))
        if not known or not more or not added or any(p.trainable is not False for p in added):
            continue
        stopped = [_frozen_at(p) for p in added]
        if all(e is not None and e.serial < other.serial for e in stopped) and other.place is not None:
            text = f"all that this optimizer has more than the one before ({added[0].name}, ...) is still frozen"
            first = stopped[0]
            proof = (first.place,) if first is not None and first.place is not None else ()
            yield Answer(other.place, text, proof)
            return


def _around(run: Rehearsing, part: Obj) -> list[Node]:
    """The parameters of the smallest container that holds a part."""
    holders = [o for o in run.objects if is_module(o) and any(v is part for v in o.attributes.values())]
    return min((run.parameters(o)[0] for o in holders), key=len, default=[])


def frozen_at_start(run: Rehearsing) -> Iterator[Answer]:
    """Layers of a network that the only training of the program freezes, with the values that they were made with."""
    if next(iter(frozen(run)), None) is not None or given_weights(run, ("load", "load_state_dict")):
        return
    stepping = [s for s in steps(run) if s.turns]
    trainings = {id(s.subject) for s in stepping}
    for event in backwards(run)[::-1] if len(trainings) == 1 else ():
        for param in ancestors(event.subject, through=lambda n: n.op != "param"):
            stopped = _kept(run, param) if param.op == "param" and param.trainable is False else None
            if stopped is None or stopped.place is None or not _beside(run, param, event):
                continue
            named = any(isinstance(n, ast.For) and "named_parameters" in ast.unparse(n.iter)
                        for n in run.project.ancestors(*stopped.place))  # fmt: skip
            at, scope = stopped.place
            made_here = scope.name == "__init__" and param.place is not None and param.place[1] is scope
            # a layer that is handed in (to be adapted) was made by somebody else
            named = named or (made_here and scope.owner is not None and not KEEPERS.search(ast.unparse(at)))
            if named and not KEEPERS.search(param.name.lower()) and param.maybe == 0:
                text = f"{param.name} is frozen here by its name, with the random values that it was made with"
                yield Answer(stopped.place, text, (event.place,) if event.place is not None else ())
                return
        return


def _kept(run: Rehearsing, param: Node) -> Event | None:
    """What froze a parameter that was never trained nor loaded."""
    if param.op != "param" or param.trainable is not False or param.inputs:
        return None
    if isinstance(param.owner, Obj) and "Norm" in param.owner.name:
        return None  # a gain of one and a shift of zero: nothing random
    trained = any(any(p is param for p in e.state.get("reached", ())) for e in backwards(run))
    last = max((e.serial for e in run.tape if e.name == "backward"), default=0)  # the best may be put back behind it
    before = [w for w in param.writes if w.serial < last and w.serial not in going_on(run)]
    loaded = any(w.name in ("load_state_dict", "copy_") or (w.turns and w.name in UPDATES) for w in before)
    return None if trained or loaded else _frozen_at(param)


def _beside(run: Rehearsing, param: Node, event: Event) -> bool:
    """True if the network that holds ``param`` also holds parameters which this backward trains, and nothing trained
    them before."""
    learns = {id(p) for p in event.state.get("reached", ())}
    old = {id(p) for s in steps(run) if s.turns and not _one_training(s, event) for p in held(s)}
    for module in (o for o in run.objects if is_module(o)):
        mine = run.parameters(module)[0]
        if any(p is param for p in mine) and any(id(p) in learns - old for p in mine):
            return True
    return False


def _one_training(step: Event, event: Event) -> bool:
    """True if step and backward stand in one loop that was entered by the same calls."""
    ways = zip(step.stack, event.stack, strict=False)
    return all(a[0] is b[0] for a, b in ways) and any(t.node is u.node for t in step.turns for u in event.turns)


def taught_before(run: Rehearsing, node: ast.AST) -> bool:
    """True if what is frozen at ``node`` (by itself, or by what it calls) held weights of a training by then."""
    inside = {id(n) for n in ast.walk(node)}
    for event in run.tape:
        ways = (*event.stack, event.place) if event.place is not None else event.stack
        if event.name != "requires_grad" or not any(id(at) in inside for at, _ in ways):
            continue
        params = run.parameters(event.subject)[0] if is_module(event.subject) else [event.subject]
        earlier = {id(p) for s in steps(run) if s.turns and s.serial < event.serial for p in held(s)}
        if any(id(p) in earlier for p in params):
            return True
    return False


def left_behind(run: Rehearsing) -> Iterator[Answer]:
    """A copy of the network with a method to bring it up to date that nothing calls, and that is used afterwards."""
    for holder in run.objects:
        if holder.cls is None or is_module(holder):
            continue
        copies = [
            v for v in holder.attributes.values() if isinstance(v, Obj) and v.copy_of is not None and is_module(v)
        ]
        for copy in copies:
            params = run.parameters(copy)[0]
            moved = any(e.turns and e.name != "requires_grad" for p in params for e in p.writes)
            idle = [f for c in holder.cls.mro() for f in c.names.values() if isinstance(f, Function) and updates(f)]
            users = [e for e in run.tape if e.name == "forward" and e.subject is copy and e.turns]
            mine = [s for s in steps(run) if s.turns and s.serial > copy.serial]
            if moved or not idle or any(id(f.node) in run.executed for f in idle) or not users or not mine:
                continue
            if ids(params) & ids(p for s in mine for p in held(s)):
                continue  # it learns by itself
            if mine[-1].place is not None:
                text = (
                    f"after this step nothing brings the copy of the weights up to date: {idle[0].name} is never called"
                )
                yield Answer(mine[-1].place, text, (copy.place,) if copy.place is not None else ())
                return


def updates(function: Function) -> bool:
    names = {n.attr for n in ast.walk(function.node) if isinstance(n, ast.Attribute)}
    return function.name != "__init__" and bool(names & UPDATES)


def backwards_average(run: Rehearsing) -> Iterator[Answer]:
    """The network that learns is moved towards its copy in each turn, and the copy is never moved."""
    trained = ids(p for s in steps(run) for p in held(s))
    for param in run.nodes:
        if param.op != "param" or id(param) not in trained:
            continue
        for event in param.writes:
            if event.name not in ("lerp_", "add_", "copy_", "inplace") or not event.turns or event.place is None:
                continue
            other = next((a for a in event.args if isinstance(a, Node) and a.op in ("param", "state", "data")), None)
            while other is not None and other.op != "param" and other.inputs and isinstance(other.inputs[0], Node):
                other = other.inputs[0]
            mixed = event.name == "lerp_" or (event.name == "add_" and any(w.name == "mul_" for w in param.writes))
            if other is None or other is param or not mixed or id(other) in trained or not other.inputs:
                continue
            if other.inputs[0] is param and not any(w.turns and w.name != "requires_grad" for w in other.writes):
                text = "the network that learns is moved towards its average here, and the average never moves"
                yield Answer(event.place, text, ())
                return


def assigned_to_module(run: Rehearsing) -> Iterator[Answer]:
    """``requires_grad`` is set as an attribute of a module, and its parameters keep flags of their own.

    Not meant: classes that know the name (a property, a setting that they read)."""
    for event in run.tape:
        module = event.subject
        if event.name != "set" or event.args[:1] != ("requires_grad",) or not is_module(module):
            continue
        wanted = event.args[1]
        if event.place is None or not isinstance(wanted, bool) or _knows_the_name(module):
            continue
        params = run.parameters(module)[0]
        if any(p.op == "param" and p.trainable is (not wanted) for p in params):
            done = "freezes" if not wanted else "sets free"
            text = f"this is a module: the attribute {done} none of its parameters, requires_grad_() does"
            yield Answer(event.place, text, ())


def _knows_the_name(module: Obj) -> bool:
    for cls in module.cls.mro() if module.cls is not None else ():
        for node in ast.walk(cls.scope.node):
            if isinstance(node, ast.FunctionDef) and node.name in ("requires_grad", "__setattr__"):
                return True
            reads = isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load)
            if reads and ast.unparse(node) == "self.requires_grad":
                return True
    return False
