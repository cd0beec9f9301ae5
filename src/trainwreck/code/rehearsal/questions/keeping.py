"""A network, or its weights, that are kept while training goes on: under another name only, without a copy?"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Event, Node, Obj, Value, is_module
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.checkpoints import on_cpu, origin
from trainwreck.code.rehearsal.questions.gradients import held, steps

TEXT = "this keeps no copy: what is kept goes on being trained"


def same_network(run: Rehearsing) -> Iterator[Answer]:
    """``best = net`` where a result was good, in the loop that trains ``net``, and ``best`` is used after it."""
    for place, value in run.memo.get("aliases", ()):
        node, scope = place
        if not isinstance(value, Obj) or not is_module(value) or not isinstance(node, ast.Assign):
            continue
        loop = _loop_of_choice(node, scope.node)
        if loop is None or any(t.node is loop for t in value.turns):
            continue
        mine = {id(p) for p in run.parameters(value)[0]}
        moved = [e for e in steps(run) if any(t.node is loop for t in e.turns) and any(id(p) in mine for p in held(e))]
        turns = {t.index for e in moved for t in e.turns if t.node is loop}
        if len(turns) > 1 and not _one_of_many(node, loop) and _used_after(node, loop, scope.node):
            yield Answer(place, TEXT, (moved[0].place,) if moved[0].place is not None else ())


def written_back(run: Rehearsing) -> Iterator[Answer]:
    """Weights that were kept without a copy and are written into the network again: they are what it has."""
    cpu = on_cpu(run)
    for param in run.nodes:
        if param.op != "param":
            continue
        for event in param.writes:
            given = event.args[0] if event.name == "copy_" and event.args else None
            first = _view(given, param, cpu)
            if first is None:
                continue
            mine = [s for s in steps(run) if any(p is param for p in held(s))]
            loops = {id(t.node) for t in first.turns} - {id(t.node) for t in event.turns}
            moved = [s for s in mine if first.serial < s.serial < event.serial]
            moved = moved or [s for s in mine if s.serial < event.serial and any(id(t.node) in loops for t in s.turns)]
            moved = moved or [w for w in param.writes if _changes(w) and first.serial < w.serial < event.serial]
            if moved and first.place is not None and not _exchanged(param, first, event):
                yield Answer(first.place, TEXT, tuple(p for p in (moved[0].place, event.place) if p is not None))
                return


def _changes(write: Event) -> bool:
    """True for a change of the weights by hand, in their own memory: a step up the slope that is to be taken back, or
    an average that is put in for an evaluation."""
    if write.name == "copy_":
        return write.place is not None and isinstance(write.place[0], ast.Call)
    own = write.name.endswith("_") and write.name not in ("requires_grad_", "detach_", "set_", "retain_grad_")
    return own or write.name in ("inplace", "setitem")


def _exchanged(param: Node, first: Node, event: Event) -> bool:
    """True where the parameter got other memory in between (``p.data = average``): the kept one was left alone."""
    between = (w for w in param.writes if w.name == "copy_" and first.serial < w.serial < event.serial)
    return any(w.place is not None and isinstance(w.place[0], ast.Attribute) for w in between)


def _one_of_many(node: ast.Assign, loop: ast.AST) -> bool:
    """True for a network that the loop over several networks hands out: each turn has another one."""
    inner = [n.target for n in ast.walk(loop) if isinstance(n, ast.For)]
    handed = {n.id for target in inner for n in ast.walk(target) if isinstance(n, ast.Name)}
    return any(isinstance(n, ast.Name) and n.id in handed for n in ast.walk(node.value))


def _view(given: Value, param: Node, cpu: bool) -> Node | None:
    first = origin(given, cpu) if isinstance(given, Node) and given is not param else None
    return first if first is not None and first.inputs and first.inputs[0] is param else None


def _loop_of_choice(node: ast.Assign, scope: ast.AST) -> ast.AST | None:
    """The innermost loop in which a comparison (of results) decides about the assignment."""
    chain = _chain(scope, node)
    for at in range(len(chain) - 1, -1, -1):
        if isinstance(chain[at], ast.For | ast.While):
            return chain[at] if any(_compares(n) for n in chain[at + 1 :]) else None
    return None


def _compares(node: ast.AST) -> bool:
    if not isinstance(node, ast.If) or node.orelse:
        return False
    orders = (ast.Lt, ast.Gt, ast.LtE, ast.GtE)
    return any(isinstance(n, ast.Compare) and isinstance(n.ops[0], orders) for n in ast.walk(node.test))


def _chain(root: ast.AST, node: ast.stmt) -> list[ast.AST]:
    """The nodes from ``root`` down to what holds ``node``."""
    for child in ast.iter_child_nodes(root):
        if child is node:
            return [root]
        if getattr(child, "lineno", 0) <= node.lineno <= (getattr(child, "end_lineno", 0) or 0):
            found = _chain(child, node)
            if found:
                return [root, *found]
    return []


def _used_after(node: ast.Assign, loop: ast.AST, scope: ast.AST) -> bool:
    names = {ast.unparse(t) for target in node.targets for t in getattr(target, "elts", [target])}
    end = getattr(loop, "end_lineno", 0)
    used = (n for n in ast.walk(scope) if isinstance(n, ast.Name | ast.Attribute) and isinstance(n.ctx, ast.Load))
    return any(n.lineno > end and ast.unparse(n) in names and _is_new(n, node) for n in used)


def _is_new(name: ast.Name | ast.Attribute, node: ast.Assign) -> bool:
    """True for a name that the assignment gives, not one that it takes (``best, net = acc, net``)."""
    taken = {ast.unparse(n) for n in ast.walk(node.value) if isinstance(n, ast.Name | ast.Attribute)}
    return ast.unparse(name) not in taken


__all__ = ["same_network", "written_back"]
