"""What happens when: loops, training steps, and what stands under ``no_grad``."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from trainwreck.code.calls import Call, last_name, written
from trainwreck.code.project import Project
from trainwreck.code.scopes import Scope

OPTIMIZERS = frozenset(
    [
        "SGD",
        "Adam",
        "AdamW",
        "RMSprop",
        "Adagrad",
        "Adadelta",
        "Adamax",
        "NAdam",
        "RAdam",
        "LBFGS",
        "Rprop",
        "ASGD",
        "SparseAdam",
        "Adafactor",
        "Lion",
        "AdamW8bit",
        "Adam8bit",
        "PagedAdamW",
        "Muon",
        "SAM",
        "LAMB",
        "Lamb",
    ]
)
Loop = ast.For | ast.AsyncFor | ast.While
Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


def position(node: ast.AST) -> tuple[int, int]:
    """(line, column), for asking what is written first."""
    return int(getattr(node, "lineno", 0)), int(getattr(node, "col_offset", 0))


def loops(project: Project, node: ast.AST, scope: Scope) -> list[Loop]:
    """Loops of the same function around ``node``, innermost first."""
    found: list[Loop] = []
    for above in project.ancestors(node, scope):
        if isinstance(above, Function):
            break
        if isinstance(above, Loop):
            found.append(above)
    return found


def inside(project: Project, node: ast.AST, scope: Scope, container: ast.AST) -> bool:
    return any(above is container for above in project.ancestors(node, scope))


def under_no_grad(project: Project, node: ast.AST, scope: Scope) -> ast.AST | None:
    """The ``with`` or decorator that turns gradients off around ``node``, in its own function."""
    for above in project.ancestors(node, scope):
        if isinstance(above, ast.With | ast.AsyncWith):
            for item in above.items:
                if turns_off(item.context_expr):
                    return above
        if isinstance(above, ast.FunctionDef | ast.AsyncFunctionDef):
            return next((d for d in above.decorator_list if turns_off(d)), None)
    return None


def turns_off(node: ast.expr) -> bool:
    """``no_grad``, ``inference_mode``, ``set_grad_enabled(False)``, called or not."""
    name = last_name(node)
    if name in ("no_grad", "inference_mode"):
        return True
    if name == "set_grad_enabled" and isinstance(node, ast.Call) and node.args:
        return isinstance(node.args[0], ast.Constant) and node.args[0].value is False
    return False


@dataclass(eq=False)
class TrainingStep:
    """The innermost loop around a ``backward()`` call, with the calls that belong to it, in the order of the lines.

    A training step may stand in a function that is called in a loop of another one; then ``loop`` is None and
    ``body`` the function.
    """

    scope: Scope
    body: ast.AST
    loop: Loop | None
    backward: list[Call] = field(default_factory=list)
    steps: list[Call] = field(default_factory=list)
    zeros: list[Call] = field(default_factory=list)
    schedulers: list[Call] = field(default_factory=list)
    micro: Loop | None = None
    """The loop over micro batches, where ``body`` is the loop around it, which holds the optimizer's step."""


def training_steps(project: Project) -> list[TrainingStep]:
    """Every training step of the program."""
    if "training_steps" not in project.memo:
        project.memo["training_steps"] = _training_steps(project)
    steps: list[TrainingStep] = project.memo["training_steps"]
    return steps


def _training_steps(project: Project) -> list[TrainingStep]:
    found: dict[int, TrainingStep] = {}
    for call in project.calls("backward", "manual_backward"):
        if call.name == "backward" and call.receiver is None:
            continue
        around = loops(project, call.node, call.scope)
        loop = next((x for x in around if iterates_data(x)), around[0] if around else None)
        micro, outer = loop, _update_loop(project, loop, around, call.scope)
        if outer is not None:
            loop = outer if isinstance(outer, Loop) else None
        else:
            micro = None
        body: ast.AST = loop if loop is not None else call.scope.node
        step = found.setdefault(id(body), TrainingStep(call.scope, body, loop, micro=micro))
        step.backward.append(call)
    for step in found.values():
        for call in project.calls_by_scope.get(step.scope, ()):
            if call.name in ("step", "zero_grad") and (
                step.loop is None or inside(project, call.node, call.scope, step.body)
            ):
                _sort_in(project, step, call)
    return list(found.values())


def _update_loop(project: Project, loop: Loop | None, around: list[Loop], scope: Scope) -> ast.AST | None:
    """The loop around ``loop``, or the function, that steps the optimizer, where ``loop`` only accumulates."""
    if loop is None:
        return None
    steps = [
        c
        for c in project.calls_by_scope.get(scope, ())
        if c.name == "step" and kind_of(project, c) in ("optimizer", "scaler")
    ]
    outer = next(iter(around[around.index(loop) + 1 :]), None)
    if any(inside(project, c.node, scope, loop) for c in steps):
        return None
    if outer is None:
        called = scope.kind == "function" and repeated(project, scope, scope.node)
        return scope.node if called and any(not loops(project, c.node, scope) for c in steps) else None
    return outer if any(loops(project, c.node, scope)[:1] == [outer] for c in steps) else None


def repeated(project: Project, scope: Scope, node: ast.AST, depth: int = 0) -> bool:
    """True if ``node`` stands in a loop, or in a function that is called in one."""
    if loops(project, node, scope):
        return True
    if scope.kind != "function" or depth > 4:
        return False
    return any(repeated(project, c.scope, c.node, depth + 1) for c in project.callers(scope))


def on_training_path(project: Project, scope: Scope, depth: int = 0) -> bool:
    """True for a function that runs backward, the forward of a network, and what these call."""
    if scope.name == "forward" and scope.owner is not None:
        return True
    if any(c.name == "backward" for c in project.calls_by_scope.get(scope, ())):
        return True
    if scope.kind != "function" or depth > 3 or scope.name.startswith(("eval", "valid", "test", "plot")):
        return False
    return any(on_training_path(project, c.scope, depth + 1) for c in project.callers(scope))


def iterates_data(loop: Loop) -> bool:
    """False for loops over epochs (``for epoch in range``) that hold an inner loop."""
    return not any(isinstance(n, Loop) for child in ast.iter_child_nodes(loop) for n in ast.walk(child))


def _sort_in(project: Project, step: TrainingStep, call: Call) -> None:
    if call.name == "zero_grad":
        step.zeros.append(call)
    elif kind_of(project, call) == "scheduler":
        step.schedulers.append(call)
    else:
        step.steps.append(call)


def kind_of(project: Project, call: Call) -> str:
    """``optimizer``, ``scheduler``, ``scaler``, ``environment`` or ``unknown`` for the receiver of a ``step`` call."""
    receiver = call.receiver
    if receiver is None:
        return "unknown"
    for constructor in constructors(project, receiver, call.scope):
        name = constructor.name
        if "LR" in name or "schedule" in name.lower() or name.startswith("get_"):
            return "scheduler"
        if name in OPTIMIZERS or "Optim" in name:
            return "optimizer"
        if "Scaler" in name:
            return "scaler"
    text = written(receiver).lower()
    if "sched" in text:
        return "scheduler"
    if "opt" in text:
        return "optimizer"
    if "scaler" in text:
        return "scaler"
    return "environment" if text in ("env", "envs", "self.env") else "unknown"


def constructors(project: Project, node: ast.expr, scope: Scope) -> Iterator[Call]:
    """Calls that may have made the object that ``node`` stands for."""
    todo, seen = [(node, scope, 0)], set[int]()
    while todo and len(seen) < 200:
        at, where, depth = todo.pop(0)
        if id(at) in seen or depth > 10:
            continue
        seen.add(id(at))
        if isinstance(at, ast.Call):
            target = project.resolve(at.func, where)
            yield Call(at, where)
            if target is not None and target.kind == "function":
                todo += [(v, target, depth + 1) for v in target.returns if v is not None]
            continue
        if isinstance(at, ast.IfExp):
            todo += [(at.body, where, depth + 1), (at.orelse, where, depth + 1)]
            continue
        for binding in project.bindings(at, where):
            if binding.kind == "param":
                todo += [(v, s, depth + 1) for v, s in project.arguments(binding)]
            elif binding.value is not None and binding.kind in ("assign", "with"):
                value: ast.expr | None = binding.value
                for part in binding.path:
                    if isinstance(value, ast.Tuple | ast.List) and isinstance(part, int) and part < len(value.elts):
                        value = value.elts[part]
                    elif isinstance(value, ast.Call) and isinstance(part, int):
                        value = _returned(project, value, where, part)
                    else:
                        value = None
                if value is not None:
                    owner = binding.scope
                    if value is not binding.value and isinstance(binding.value, ast.Call):
                        owner = project.resolve(binding.value.func, binding.scope) or owner
                    todo.append((value, owner, depth + 1))


def _returned(project: Project, call: ast.Call, scope: Scope, part: int) -> ast.expr | None:
    """The ``part``-th thing that the called function of the project returns."""
    target = project.resolve(call.func, scope)
    if target is None or target.kind != "function":
        return None
    for value in target.returns:
        if isinstance(value, ast.Tuple) and part < len(value.elts):
            return value.elts[part]
    return None
