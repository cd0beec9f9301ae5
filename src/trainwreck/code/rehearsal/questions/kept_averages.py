"""Averages of weights that are kept in vain: mixed with themselves, or brought up to date and never asked."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import written
from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Event, Items, Node, Obj, Place, Table, is_module
from trainwreck.code.rehearsal.graph import ancestors, parts
from trainwreck.code.rehearsal.holding import is_optimizer
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.averaging import settled
from trainwreck.code.rehearsal.questions.followers import CARED_FOR, unused
from trainwreck.code.rehearsal.questions.gradients import held, ids, lives, steps
from trainwreck.code.rehearsal.questions.roles import core

KEPT = 0.5
"""An average keeps at least this share of its old value at each update."""


def mixed_with_itself(run: Rehearsing) -> Iterator[Answer]:
    """A network that an optimizer trains is averaged with itself: the copy is the network by another name."""
    trained = {id(p): p for s in steps(run) if s.turns for p in held(s)}
    for param in trained.values():
        scaled = False
        for event in param.writes:
            own = bool(event.args) and isinstance(event.args[0], Node) and core(event.args[0]) == [param]
            again = event.name == "lerp_" or (event.name == "add_" and scaled)
            if event.turns and event.place is not None and own and again:
                holders = [o for o in run.objects if is_module(o) and id(param) in ids(run.parameters(o)[0])]
                aliases = run.memo.get("aliases", ())
                alias = next((p for p, v in aliases if any(v is o for o in holders) and p is not None), None)
                text = "the average and the network are one: each weight is mixed with itself here"
                yield Answer(alias or event.place, text, (event.place,))
                return
            scaled = event.name == "mul_"


def average_unread(run: Rehearsing) -> Iterator[Answer]:
    """A copy that follows the network slowly is never asked, saved or handed on; the network itself is evaluated."""
    if not lives(run).sure or any(True for _ in unused(run)):
        return
    trained = ids(p for s in steps(run) if s.turns for p in held(s))
    modules = [o for o in run.objects if is_module(o)]
    for copy in modules:
        leader = copy.copy_of
        own = run.parameters(copy)[0]
        if leader is None or not is_module(leader) or not own or ids(own) & trained or copy.place is None:
            continue
        moves = [m for p in own for m in settled(p) if KEPT <= m[0] < 1]
        if not moves or not all(id(p) in trained for p in run.parameters(leader)[0]):
            continue
        if _asked(run, copy, ids(own)) or _read_elsewhere(run, copy):
            continue
        used = [e for e in run.tape if e.name == "forward" and e.subject is leader and not e.grad_mode]
        first = next((e for e in used if e.serial > copy.serial), None)
        if first is None or first.place is None:
            continue
        text = "the average of the weights is brought up to date and never asked: the last weights are used here"
        yield Answer(_called_from(first, copy) or first.place, text, (copy.place, moves[0][2]))
        return


def _asked(run: Rehearsing, copy: Obj, own: set[int]) -> bool:
    """True where a result, the state or the weights of the copy go anywhere but into its own update."""
    for event in run.tape:
        if event.subject is copy and event.name in ("forward", "state_dict", "load_state_dict", "save"):
            return True
        if event.name in ("forward", "print", "save", "load_state_dict", "append") and any(
            v is copy or (isinstance(v, Node) and v.op == "state" and any(id(n) in own for n in ancestors(v)))
            for v in (*event.args, *event.options.values())
        ):
            return True
        if event.name in ("copy_", "set", "load_state_dict", "save") and any(
            id(n) in own for a in event.args for n in parts(a)
        ):
            return True
    return False


def _read_elsewhere(run: Rehearsing, copy: Obj) -> bool:
    """True where the program does more with a name of the copy than to walk over its weights."""
    assert copy.place is not None
    statement = run.project.statement(*copy.place)
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    names = {t.id for t in targets if isinstance(t, ast.Name)}
    attributes = {t.attr for t in targets if isinstance(t, ast.Attribute)}
    if not names | attributes:
        return True
    for walked in run.project.walked.values():
        for scope in walked.scopes:
            for node in scope.nodes:
                named = isinstance(node, ast.Name) and node.id in names
                held = isinstance(node, ast.Attribute) and node.attr in attributes
                if not (named or held) or not isinstance(getattr(node, "ctx", None), ast.Load):
                    continue
                above = run.project.parent(node, scope)
                cared = isinstance(above, ast.Attribute) and above.attr in CARED_FOR - {"state_dict"}
                handed = isinstance(above, ast.Call) and node in above.args and _only_moves(run, above)
                if not cared and not handed and id(scope.node) in run.executed | {id(scope.module.tree)}:
                    return True
                if not cared and not handed and scope.node is not None and _named(run, scope.name):
                    return True
    return False


def _only_moves(run: Rehearsing, call: ast.Call) -> bool:
    """True for a call of a function of the program that walks over weights and returns nothing."""
    name = written(call.func).split(".")[-1]
    functions = [f for f in run.project.functions if f.name == name]
    return bool(functions) and all(
        not any(isinstance(n, ast.Return) and n.value is not None for n in ast.walk(f.node)) and _walks(f.node)
        for f in functions
    )


def _walks(tree: ast.AST) -> bool:
    return any(isinstance(n, ast.Attribute) and n.attr in ("lerp_", "mul_", "copy_") for n in ast.walk(tree))


def _named(run: Rehearsing, name: str) -> bool:
    """True where a function of this name is mentioned: a method that nothing calls reads nothing."""
    nodes = (n for w in run.project.walked.values() for s in w.scopes for n in s.nodes)
    return any(
        (isinstance(n, ast.Name) and n.id == name) or (isinstance(n, ast.Attribute) and n.attr == name) for n in nodes
    )


def _called_from(event: Event, copy: Obj) -> Place | None:
    """The call that leads to the use, in the function that makes the copy."""
    scope = copy.place[1] if copy.place is not None else None
    return next((p for p in event.stack if p[1] is scope), None)


def nothing_to_train(run: Rehearsing) -> Iterator[Answer]:
    """An optimizer that gets no parameters at all: the ones it is to have were frozen under another name."""
    frozen = [(p, w) for n in run.nodes if n.op == "param" for p in [n] for w in n.writes if _freezes(w)]
    for optimizer in run.objects:
        groups = run.groups(optimizer) if is_optimizer(optimizer) else None
        if groups is None or groups.more or optimizer.place is None or not frozen:
            continue
        held_by = [g.entries.get("params") if isinstance(g, Table) else None for g in groups.items]
        empty = [isinstance(h, Items) and not h.items and not h.more and h.length in (None, 0) for h in held_by]
        later = any(e.name == "add_param_group" and e.subject is optimizer for e in run.tape)
        if not empty or not all(empty) or later:
            continue
        cut = {id(p) for p, _ in frozen}
        named = run.memo.get("aliases", ())
        other = next((p for p, v in named if is_module(v) and ids(run.parameters(v)[0]) & cut), None)
        if other is not None:
            text = "both names are one network: what is frozen under one is what was to be trained"
            yield Answer(other, text, (optimizer.place,))
            return


def _freezes(event: Event) -> bool:
    return event.name == "requires_grad" and event.args[:1] == (False,)
