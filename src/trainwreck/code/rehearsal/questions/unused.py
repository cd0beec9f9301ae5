"""What is made, saved or counted and then never used: layers without a call, weights in a file, sums that stay zero."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.project import Project
from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Obj, Place, Table, Value, is_module
from trainwreck.code.rehearsal.graph import opaque, parts
from trainwreck.code.rehearsal.holding import is_optimizer, is_scheduler
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.gradients import held, steps
from trainwreck.code.rehearsal.questions.roles import backwards, users
from trainwreck.code.scopes import FunctionNode, Scope

CLOSED = ("Sequential", "ModuleList", "ModuleDict")


# ---------------------------------------------------------------------- layers
def never_called(run: Rehearsing) -> Iterator[Answer]:
    """A layer of a network that trains, held by its optimizer, that nothing ever calls.

    Said where the network's forward ran, all of it is understood, and no statement outside of ``__init__`` reads the
    attribute but as something to loop over."""
    learning = {id(p) for s in steps(run) if s.turns for p in held(s)}
    if not learning or any(opaque(e.subject) for e in backwards(run)) or any(e.name == "wrap" for e in run.tape):
        return  # DDP finds them itself: ``ddp-unused-parameters``
    ran = {id(e.subject) for e in run.tape if e.name == "forward"} | given_away(run)
    for root in run.objects:
        if root.cls is None or not is_module(root):
            continue
        if id(root) not in ran and not any(id(m) in ran for _, m in run.submodules(root, deep=True)):
            continue  # a network may be asked by another method than its forward
        idle: list[tuple[str, Place]] = []
        for name, part in root.attributes.items():
            if not isinstance(part, Obj) or not is_module(part) or part.place is None or id(part) in ran:
                continue
            layers = [part, *(m for _, m in run.submodules(part, deep=True))]
            mine = [p for layer in layers for p in run.own_parameters(layer).values()]
            if not mine or not all(id(p) in learning and p.trainable is True for p in mine):
                continue
            if any(id(layer) in ran for layer in layers) or any(
                u.grad and u.op != "param" for p in mine for u in users(run).get(id(p), ())
            ):
                continue
            if not _read(run.project, name):
                idle.append((f"self.{name}", part.place))
        if idle:
            names = ", ".join(name for name, _ in idle)
            yield Answer(idle[0][1], f"the optimizer holds {names}, and nothing ever calls what was built here")


def given_away(run: Rehearsing) -> set[int]:
    """Modules that were put into something of which it isn't known what it runs (a layer of a pretrained network)."""
    return {id(v) for n in run.nodes if n.op != "param" for v in n.attributes.values() if is_module(v)}


def _read(project: Project, name: str) -> bool:
    """True where an attribute of this name is used for more than to loop over it with a name that nothing reads."""
    for walked in project.walked.values():
        for scope in walked.scopes:
            for node in scope.nodes:
                if isinstance(node, ast.Constant) and node.value == name:
                    return True
                read = isinstance(node, ast.Attribute) and node.attr == name and isinstance(node.ctx, ast.Load)
                if read and not _loop_alone(project, node, (node, scope)) and not _cared_for(project, node, scope):
                    return True
    return False


CARED_FOR = frozenset("parameters named_parameters state_dict train eval to cuda cpu zero_grad modules".split())
"""What is asked of a layer without asking it for results."""


def _cared_for(project: Project, node: ast.AST, scope: Scope) -> bool:
    above = project.parent(node, scope)
    return isinstance(above, ast.Attribute) and above.attr in CARED_FOR


def _loop_alone(project: Project, node: ast.AST, place: Place) -> bool:
    """True where it is one of the things in ``for a, b in zip(self.x, self.y)``, and its own name is not read."""
    statement = project.statement(node, place[1])
    if not isinstance(statement, ast.For) or not isinstance(statement.iter, ast.Call | ast.Attribute):
        return False
    targets: list[ast.expr] = [statement.target]
    sources: list[ast.expr] = [statement.iter]
    if isinstance(statement.iter, ast.Call) and ast.unparse(statement.iter.func) == "zip":
        if not isinstance(statement.target, ast.Tuple):
            return False
        targets, sources = list(statement.target.elts), list(statement.iter.args)
    for target, source in zip(targets, sources, strict=False):
        if source is node and isinstance(target, ast.Name):
            read = [n for s in statement.body for n in ast.walk(s) if isinstance(n, ast.Name) and n.id == target.id]
            return not read
    return False


# ---------------------------------------------------------------------- weights in a file
def weights_not_loaded(run: Rehearsing) -> Iterator[Answer]:
    """Optimizer or schedule are given their state from a file, and the weights beside it are left in it."""
    told: set[int] = set()
    for event in run.tape:
        if event.name != "load" or event.place is None or id(event.place[0]) in told:
            continue
        if not isinstance(event.result, Table):
            continue
        told.add(id(event.place[0]))
        later = [e for e in run.tape if e.serial > event.serial]
        if any(e.name == "load_state_dict" and is_module(e.subject) for e in later):
            continue
        inside = {id(p) for v in event.result.entries.values() for p in (v, *parts(v))}
        restored = [
            e
            for e in later
            if e.name == "load_state_dict"
            and (is_optimizer(e.subject) or is_scheduler(e.subject))
            and any(id(a) in inside for a in e.args)
        ]
        weights = next((k for k, v in event.result.entries.items() if _weights(v)), None)
        if restored and weights is not None and any(s.serial > event.serial and s.turns for s in steps(run)):
            place = restored[0].place or event.place
            text = f"the weights under '{weights}' stay in the file: the network goes on from its initial weights"
            yield Answer(place, text, (event.place,))


def _weights(value: Value) -> bool:
    """True for what was saved as the state of a network."""
    if isinstance(value, Table):
        return bool(value.entries) and all(_is_state(v) for v in value.entries.values())
    inner = value.inputs[0] if isinstance(value, Node) and value.op == "loaded" and value.inputs else None
    return isinstance(inner, Node) and inner.op == "state_dict" and bool(inner.inputs) and is_module(inner.inputs[0])


def _is_state(value: Value) -> bool:
    inner = value.inputs[0] if isinstance(value, Node) and value.op == "loaded" and value.inputs else value
    return isinstance(inner, Node) and inner.op == "state"


# ---------------------------------------------------------------------- sums
def stays_zero(run: Rehearsing) -> Iterator[Answer]:
    """A quotient whose upper side is still the zero that it began with, each time: nothing is ever added to it."""
    yield from _zero(run, 0, "is still 0 here: nothing is ever added to it, and the result is always 0")


def divides_by_zero(run: Rehearsing) -> Iterator[Answer]:
    """A quotient whose lower side is still the zero that it began with: nothing is ever added to it."""
    yield from _zero(run, 1, "is still 0 here: nothing is ever added to it, and the division fails")


def _zero(run: Rehearsing, side: int, text: str) -> Iterator[Answer]:
    found: dict[int, list[Node]] = {}
    for node in run.nodes:
        if node.op == "div" and node.place is not None and isinstance(node.place[0], ast.BinOp | ast.Call):
            found.setdefault(id(node.place[0]), []).append(node)
    for nodes in found.values():
        place = nodes[0].place
        division = place[0] if place is not None else None
        name = (division.left, division.right)[side] if isinstance(division, ast.BinOp) else None
        if place is None or not isinstance(name, ast.Name):
            continue
        values = [(*n.inputs, None, None)[side] for n in nodes]
        others = [(*n.inputs, None, None)[1 - side] for n in nodes]
        zero = all(isinstance(v, int | float) and not isinstance(v, bool) and v == 0 for v in values)
        if zero and all(isinstance(o, Node) for o in others) and _begins_so(place, name.id):
            yield Answer(place, f"{name.id} {text}")


def _begins_so(place: Place, name: str) -> bool:
    """True where the function sets the name to zero and to nothing else, before a loop."""
    scope = place[1]
    bindings = scope.bindings.get(name, ())
    if not isinstance(scope.node, FunctionNode) or not bindings:
        return False
    loops = [n for n in scope.nodes if isinstance(n, ast.For | ast.While)]
    zero = all(b.kind == "assign" and isinstance(b.value, ast.Constant | ast.Tuple) for b in bindings)
    return zero and any(b.line < loop.lineno for b in bindings for loop in loops)
