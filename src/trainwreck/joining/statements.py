"""Statements of the program that a sighting leads to: where a state was kept, gradients clipped, a schedule stepped."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from trainwreck.code.calls import Call, last_name
from trainwreck.code.project import Project
from trainwreck.code.surface import scope_at
from trainwreck.joining.paths import top

Found = tuple[str, int]
CLIPS = frozenset(["clip_grad_norm_", "clip_grad_value_", "clip_grad_norm"])
SCHEDULE = re.compile(r"sched|warm_?up|anneal|lr_?(decay|lambda|policy)", re.IGNORECASE)
"""What schedulers are called where nothing tells how they were made."""
TEMPERATURE = re.compile(r"temp(erature)?$|^tau$|(logit|inv(erse)?)_?scale|^t$", re.IGNORECASE)
ZEROS = frozenset(["zeros_", "zeros", "zeros_like", "zero_"])


def clipped(project: Project, path: str | None, line: int | None) -> Found | None:
    """The last call that clips gradients before ``line``, in the function that it stands in; else the only one."""
    calls = [c for c in _calls(project) if last_name(c.node.func) in CLIPS]
    module = top(project, path)
    if module is not None and line is not None:
        scope = scope_at(module, line)
        before = [c for c in calls if c.scope is scope and c.line <= line]
        if before:
            return _only(before[-1:])
    return _only(calls)


def stepped(project: Project) -> Found | None:
    """The line that steps the schedule, where the program has just one."""
    found = []
    for call in _calls(project):
        receiver = call.receiver
        if call.name == "step" and receiver is not None and SCHEDULE.search(ast.unparse(receiver)):
            found.append(call)
    return _only(found)


def kept(project: Project, path: str | None, line: int | None) -> Found | None:
    """Where the state that is loaded at ``line`` was taken: the assignment of ``state_dict()`` to its variable."""
    module = top(project, path)
    names: set[str] = set()
    if module is not None and line is not None:
        for call in _calls(project):
            if call.scope.module is module.module and call.line == line and call.name == "load_state_dict":
                for argument in call.node.args[:1]:
                    names |= {n.id for n in ast.walk(argument) if isinstance(n, ast.Name)}
                    names |= {n.attr for n in ast.walk(argument) if isinstance(n, ast.Attribute)}
    taken = list(_taken(project))
    near = [(place, given) for place, given in taken if given & names]
    for group in (near, taken):
        places = sorted({place for place, _ in group})
        if len(places) == 1:
            return places[0]
    # a first state before the loop and the one that replaces it: the later one is what is meant
    return max(place for place, _ in near) if near and len({p for (p, _), _ in near}) == 1 else None


def _taken(project: Project) -> Iterator[tuple[Found, set[str]]]:
    """Assignments of a ``state_dict()`` that is not copied, with the names that they give it."""
    for scope in project.scopes:
        for node in scope.nodes:
            if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
                continue
            calls = [n for n in ast.walk(node.value) if isinstance(n, ast.Call)]
            names = [last_name(c.func) for c in calls]
            if "state_dict" not in names or any(n in ("deepcopy", "clone", "load_state_dict") for n in names):
                continue
            call = next(c for c in calls if last_name(c.func) == "state_dict")
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            given = {n.id for t in targets for n in ast.walk(t) if isinstance(n, ast.Name)}
            given |= {n.attr for t in targets for n in ast.walk(t) if isinstance(n, ast.Attribute)}
            yield (scope.module.path, call.lineno), given


def gathered(project: Project, path: str | None, line: int | None, name: str) -> Found | None:
    """Where a list of tensors with their graph grows: the ``append`` to it in the function around ``line``."""
    module = top(project, path)
    if module is None or line is None or not name:
        return None
    scope = scope_at(module, line)
    root = name.partition(".")[0].partition("[")[0]
    found = []
    for call in _calls(project):
        grows = call.name in ("append", "extend", "add") and call.receiver is not None
        if grows and call.scope is scope and root in _names(call.receiver):
            found.append(call)
    if len(found) > 1:  # lists of one dictionary: the one with the key
        key = name.rpartition(".")[2]
        found = [c for c in found if c.receiver is not None and key in ast.unparse(c.receiver)]
    return _only(found)


def tempered(project: Project) -> Found | None:
    """Where scores are scaled by a temperature, if the program has just one such product or quotient."""
    found: set[Found] = set()
    for scope in project.scopes:
        for node in scope.nodes:
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult | ast.Div):
                sides = _names(node.right) | (_names(node.left) if isinstance(node.op, ast.Mult) else set())
                if any(TEMPERATURE.search(name) for name in sides):
                    found.add((scope.module.path, node.lineno))
    return found.pop() if len(found) == 1 else None


def zeroed(project: Project, module: str) -> Found | None:
    """The statement that makes the parameter at the path ``module`` zero: the last one that names it."""
    name = module.rpartition(".")[2]
    found: list[Found] = []
    for scope in project.scopes:
        for node in scope.nodes:
            if not isinstance(node, ast.Assign | ast.Expr):
                continue
            zero = any(isinstance(n, ast.Call) and last_name(n.func) in ZEROS for n in ast.walk(node.value))
            if zero and any(isinstance(n, ast.Attribute) and n.attr == name for n in ast.walk(node)):
                found.append((scope.module.path, node.lineno))
    return max(found) if found and len({p for p, _ in found}) == 1 else None


def _names(node: ast.AST | None) -> set[str]:
    inside = list(ast.walk(node)) if node is not None else []
    return {n.id for n in inside if isinstance(n, ast.Name)} | {n.attr for n in inside if isinstance(n, ast.Attribute)}


def _calls(project: Project) -> Iterator[Call]:
    for walked in project.walked.values():
        for node, scope in walked.calls:
            yield Call(node, scope)


def _only(calls: Iterable[Call]) -> Found | None:
    places = {(c.scope.module.path, c.line) for c in calls}
    return places.pop() if len(places) == 1 else None
