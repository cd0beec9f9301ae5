"""What an episode begins with: is the state that ``reset`` gives taken, and is the task reset at all?"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.project import Project
from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.scopes import Binding, FunctionNode, Scope

LOOPS = ast.For | ast.AsyncFor | ast.While
RESULTS = 3
"""``step`` gives the next state, the reward and whether the episode is over, at least."""


def reset_dropped(run: Rehearsing) -> Iterator[Answer]:
    """``env.reset()`` as a statement of its own in a loop that goes on with the last state of the episode before."""
    if not any(e.name == "step" for e in run.tape):
        return
    for scope in _scopes(run.project):
        for node in scope.nodes:
            task = _asked(node.value, "reset") if isinstance(node, ast.Expr) else None
            loop = _loop(run.project, node, scope) if task is not None else None
            if task is None or loop is None or not _steps(loop, task):
                continue
            states = [n for n in _states(scope, task) if _written(loop, n)]
            if len(states) != 1 or any(_from_task(v, task) for v in _values(loop, states[0])):
                continue
            text = f"the state that this gives is dropped: {states[0]} is still the last state of the episode before"
            yield Answer((node, scope), text)
            return


def never_reset(run: Rehearsing) -> Iterator[Answer]:
    """A task of the program tells the ends of its episodes, and nothing sets it back to a start in the loop that goes
    on through them."""
    if not any(e.name == "step" for e in run.tape):
        return
    nodes = [(n, s) for s in _scopes(run.project) for n in s.nodes]
    resets = [(n, s) for n, s in nodes if isinstance(n, ast.Attribute) and n.attr.startswith("reset")]
    if not resets or any(_loop(run.project, n, s) is not None or isinstance(s.node, FunctionNode) for n, s in resets):
        return
    if any(isinstance(n, ast.Constant) and n.value == "reset" for n, _ in nodes):
        return
    for scope in _scopes(run.project):
        for node in scope.nodes:
            task = _asked(node.value, "step") if isinstance(node, ast.Assign) else None
            loop = _loop(run.project, node, scope) if task is not None else None
            if task is None or loop is None or not isinstance(node, ast.Assign) or not _own_task(run, task, scope):
                continue
            names = node.targets[0].elts if isinstance(node.targets[0], ast.Tuple) else []
            flags = {n.id for n in names[RESULTS - 1 :] if isinstance(n, ast.Name)}
            outer = _outermost(run.project, node, scope)
            read = {n.id for n in ast.walk(outer) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
            states = [n for n in _states(scope, task) if _written(loop, n)]
            if not flags & read or _left(outer) or len(states) != 1:
                continue
            written = (w for w in ast.walk(loop) if _writes(w, states[0]))
            place = next((w for w in written if getattr(w, "lineno", 0) >= node.lineno), node)
            text = "episodes end here, and nothing sets the task back to a start: the loop goes on behind the end"
            yield Answer((place, scope), text, ((node, scope),))
            return


def state_stays(run: Rehearsing) -> Iterator[Answer]:
    """The loop acts on the state that ``reset`` gave, and the one that each step leads to is put aside and never
    becomes the next."""
    if not any(e.name == "step" for e in run.tape):
        return
    for scope in _scopes(run.project):
        for node in scope.nodes:
            task = _asked(node.value, "step") if isinstance(node, ast.Assign) else None
            loop = _loop(run.project, node, scope) if task is not None else None
            target = node.targets[0] if isinstance(node, ast.Assign) else None
            if task is None or loop is None or not isinstance(target, ast.Tuple) or len(target.elts) < RESULTS:
                continue
            follows, states = target.elts[0], _states(scope, task)
            if len(states) != 1 or not isinstance(follows, ast.Name) or follows.id == states[0]:
                continue
            given = [_whole(v) for v in _values(loop, states[0])]
            if any(_asked(v, "reset") != task or getattr(v, "args", ()) or not _in_branch(loop, v) for v in given):
                continue  # a task of many copies gives the states of all of them
            read = [n for n in ast.walk(loop) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)]
            later = [n for n in read if n.id == follows.id]
            if not later or not any(n.id == states[0] for n in read) or _changed_in_place(loop, states[0]):
                continue
            text = f"{follows.id} never becomes the state of the next turn: {states[0]} is what the episode began with"
            yield Answer((later[-1], scope), text, ((node, scope),))
            return


def _in_branch(loop: ast.AST, value: ast.expr) -> bool:
    return any(isinstance(n, ast.If) and any(m is value for s in n.body for m in ast.walk(s)) for n in ast.walk(loop))


def _whole(value: ast.expr) -> ast.expr:
    return value.value if isinstance(value, ast.Subscript) else value


def _changed_in_place(loop: ast.AST, name: str) -> bool:
    """``s[:] = x``, ``s.copy_(x)``, ``np.copyto(s, x)``, ``del s``, ``for s in ...``."""
    for node in ast.walk(loop):
        if isinstance(node, ast.Subscript | ast.Attribute) and getattr(node.value, "id", "") == name:
            stored = not isinstance(node.ctx, ast.Load)
            if stored or (isinstance(node, ast.Attribute) and node.attr.endswith(("_", "copy"))):
                return True
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("copyto"):
            return True
        if isinstance(node, ast.Name) and node.id == name and not isinstance(node.ctx, ast.Load):
            assigned = any(
                _writes(n, name) and node in ast.walk(n) for n in ast.walk(loop) if isinstance(n, ast.Assign)
            )
            if not assigned:
                return True
    return False


def _scopes(project: Project) -> Iterator[Scope]:
    for walked in project.walked.values():
        yield from (s for s in walked.scopes if s.kind != "class")


def _asked(value: ast.AST, name: str) -> str | None:
    """Whose method of this name is called."""
    call = value if isinstance(value, ast.Call) else None
    function = call.func if call is not None else None
    return ast.unparse(function.value) if isinstance(function, ast.Attribute) and function.attr == name else None


def _loop(project: Project, node: ast.AST, scope: Scope) -> ast.For | ast.AsyncFor | ast.While | None:
    """The innermost loop around a node, within its function."""
    at: ast.AST | None = node
    while at is not None and at is not scope.node:
        at = project.parent(at, scope)
        if isinstance(at, LOOPS):
            return at
        if isinstance(at, FunctionNode):
            return None
    return None


def _outermost(project: Project, node: ast.AST, scope: Scope) -> ast.AST:
    found, at = node, _loop(project, node, scope)
    while at is not None:
        found, at = at, _loop(project, at, scope)
    return found


def _steps(loop: ast.AST, task: str) -> bool:
    return any(_asked(n, "step") == task for n in ast.walk(loop))


def _states(scope: Scope, task: str) -> list[str]:
    """The names that the first state is given: ``s = env.reset()``, ``s, _ = env.reset()``, ``s = env.reset()[0]``."""
    found: list[str] = []
    for node in scope.nodes:
        pairs = [(t, node.value) for t in node.targets] if isinstance(node, ast.Assign) else []
        for target, value in list(pairs):
            if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
                pairs += list(zip(target.elts, value.elts, strict=False))
        for target, value in pairs:
            inner = value.value if isinstance(value, ast.Subscript) else value
            first = target.elts[0] if isinstance(target, ast.Tuple) and target.elts else target
            if _asked(inner, "reset") == task and isinstance(first, ast.Name) and first.id not in found:
                found.append(first.id)
    return found


def _writes(node: ast.AST, name: str) -> bool:
    targets = node.targets if isinstance(node, ast.Assign) else []
    return any(isinstance(n, ast.Name) and n.id == name for t in targets for n in ast.walk(t))


def _written(loop: ast.AST, name: str) -> bool:
    return any(_writes(n, name) for n in ast.walk(loop))


def _values(loop: ast.AST, name: str) -> Iterator[ast.expr]:
    for node in ast.walk(loop):
        if isinstance(node, ast.Assign) and _writes(node, name):
            yield from _given(node, name)


def _given(node: ast.Assign, name: str) -> Iterator[ast.expr]:
    """What an assignment gives a name; of ``s, n = t, n + 1`` the first."""
    for target in node.targets:
        both = isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple)
        if both and isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
            yield from (v for t, v in zip(target.elts, node.value.elts, strict=False) if ast.unparse(t) == name)
        else:
            yield node.value


def _from_task(value: ast.expr, task: str) -> bool:
    """True where the state comes from the task in another way than by a step."""
    return any(
        isinstance(n, ast.Attribute) and n.attr != "step" and ast.unparse(n.value) == task for n in ast.walk(value)
    )


def _own_task(run: Rehearsing, task: str, scope: Scope) -> bool:
    """True for an object of a class of the program whose ``step`` resets nothing by itself."""
    classes = [s for w in run.project.walked.values() for s in w.scopes if s.kind == "class"]
    known = [c for c in classes if {"reset", "step"} <= {f.name for f in c.children}]
    if len(known) != 1 or not isinstance(known[0].node, ast.ClassDef) or known[0].node.bases:
        return False
    step = next(f for f in known[0].children if f.name == "step")
    again = any("reset" in getattr(n, "attr", getattr(n, "id", "")) for n in ast.walk(step.node))
    binding = [_bound(b) for b in scope.bindings.get(task, ())]
    mine = [b.func.id for b in binding if isinstance(b, ast.Call) and isinstance(b.func, ast.Name)]
    tests = any(isinstance(n, ast.If | ast.IfExp) for n in ast.walk(step.node))
    return not again and not tests and len(binding) == 1 and mine == [known[0].name]


def _bound(binding: Binding) -> ast.expr | None:
    """What a name is given, of ``a, b = f(), g()`` too."""
    value, path = binding.value, binding.path
    if isinstance(value, ast.Tuple) and len(path) == 1 and isinstance(path[0], int) and path[0] < len(value.elts):
        return value.elts[path[0]]
    return value


def _left(loop: ast.AST) -> bool:
    """True where something leaves the loop before its time."""
    return isinstance(loop, ast.While) or any(isinstance(n, ast.Break | ast.Return | ast.Raise) for n in ast.walk(loop))
