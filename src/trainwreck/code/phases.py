"""What a function does to the parameters of its networks, in the order of the lines."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Literal

from trainwreck.code.calls import Call, last_name, written
from trainwreck.code.facts import optimizers
from trainwreck.code.order import position
from trainwreck.code.params import has_parameters, held
from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.scopes import FunctionNode, Scope
from trainwreck.core.row import Row

MAX_DEPTH = 3
ADAPTER = pattern(r"lora|adapter|low_?rank|inject|prefix|prompt|ia3|bottleneck|dora|delta", re.IGNORECASE)
"""How small trainable additions to a frozen network are called."""

Kind = Literal["add", "freeze", "thaw", "collect", "optimizer"]


class Event(Row):
    """One thing done to ``base`` (``model``, ``model.head``). ``test`` is the condition over names that it is under."""

    kind: Kind
    base: str
    node: ast.AST
    scope: Scope
    test: str = ""
    name: str = ""
    """Of a collected list: its name. Of an addition: what is added."""


def events(project: Project, scope: Scope) -> list[Event]:
    """The events of one function or module, in order."""
    known: dict[Scope, list[Event]] = project.memo.setdefault("phases", {})
    if scope not in known:
        known[scope] = []
        known[scope] = sorted(_events(project, scope, 0), key=lambda e: position(e.node))
    return known[scope]


def _events(project: Project, scope: Scope, depth: int) -> Iterator[Event]:
    for node in project.within(scope, ast.For, ast.Assign, ast.Call):
        match node:
            case ast.For():
                yield from _of_loop(project, node, scope)
            case ast.Assign(targets=[target], value=value):
                yield from _of_assignment(project, node, target, value, scope)
            case ast.Call():
                yield from _of_call(project, node, scope, depth)


def _of_loop(project: Project, node: ast.For, scope: Scope) -> Iterator[Event]:
    """``for p in x.parameters(): p.requires_grad = False`` with or without a condition."""
    base = _whose(node.iter)
    if not base:
        return
    for statement in ast.walk(node):
        value = _switch(statement)
        if value is None:
            continue
        tests = [
            written(a.test)
            for a in project.ancestors(statement, scope)
            if isinstance(a, ast.If) and node in list(project.ancestors(a, scope))
        ]
        if isinstance(value, ast.Constant):
            kind: Kind = "thaw" if value.value else "freeze"
            orelse = any(
                isinstance(a, ast.If) and any(statement in ast.walk(s) for s in a.orelse)
                for a in project.ancestors(statement, scope)
            )
            test = " and ".join(tests)
            yield Event(kind, base, statement, scope, f"not ({test})" if orelse and test else test)
        else:
            yield Event("freeze", base, statement, scope, f"not ({written(value)})")
            yield Event("thaw", base, statement, scope, written(value))


def _switch(node: ast.AST) -> ast.expr | None:
    """The value that ``requires_grad`` of a parameter is set to."""
    match node:
        case ast.Assign(targets=[ast.Attribute(attr="requires_grad")], value=value):
            return value
        case ast.Expr(value=ast.Call(func=ast.Attribute(attr="requires_grad_"), args=args)):
            return args[0] if args else ast.Constant(True)
    return None


def _of_assignment(
    project: Project, node: ast.Assign, target: ast.expr, value: ast.expr, scope: Scope
) -> Iterator[Event]:
    match target:
        case ast.Attribute(value=owner, attr="requires_grad") if isinstance(value, ast.Constant):
            if not _loop_variable(project, owner, scope):
                yield Event("thaw" if value.value else "freeze", written(owner), node, scope)
        case ast.Attribute(value=owner, attr=attr) if written(owner) != "self" and isinstance(value, ast.Call):
            if has_parameters(project, Call(value, scope)) and not _class(project, owner, scope):
                yield Event("add", written(owner), node, scope, name=written(value.func) + "." + attr)
        case ast.Name(id=name):
            base = _collected(value)
            if base:
                yield Event("collect", base, node, scope, name=name)


def _class(project: Project, node: ast.expr, scope: Scope) -> bool:
    return isinstance(node, ast.Name) and any(b.kind in ("class", "import") for b in project.lookup(node.id, scope))


def _loop_variable(project: Project, node: ast.expr, scope: Scope) -> bool:
    return isinstance(node, ast.Name) and any(b.kind == "loop" for b in project.lookup(node.id, scope))


def _collected(value: ast.expr) -> str:
    """Whose parameters are put in a list: ``[p for p in model.parameters() if p.requires_grad]``."""
    match value:
        case ast.ListComp(generators=[generator]):
            return _whose(generator.iter)
        case ast.Call(func=func, args=args) if last_name(func) in ("list", "tuple", "filter", "sorted") and args:
            inner = args[-1]
            return _collected(inner) if isinstance(inner, ast.ListComp | ast.GeneratorExp) else _whose(inner)
    return ""


def _whose(node: ast.expr) -> str:
    """``x`` of ``x.parameters()``, ``x.named_parameters()``, ``enumerate(x.parameters())``."""
    match node:
        case ast.Call(func=ast.Attribute(value=owner, attr="parameters" | "named_parameters")):
            return written(owner)
        case ast.Call(func=func, args=[inner, *_]) if last_name(func) in ("enumerate", "list", "tqdm", "iter"):
            return _whose(inner)
    return ""


def _of_call(project: Project, node: ast.Call, scope: Scope, depth: int) -> Iterator[Event]:
    name = last_name(node.func)
    if name == "requires_grad_" and isinstance(node.func, ast.Attribute):
        owner = node.func.value
        on = not node.args or (isinstance(node.args[0], ast.Constant) and node.args[0].value is True)
        off = bool(node.args) and isinstance(node.args[0], ast.Constant) and node.args[0].value is False
        if (on or off) and not _loop_variable(project, owner, scope):
            yield Event("thaw" if on else "freeze", written(owner), node, scope)
        return
    if name == "setattr" and len(node.args) == 3 and isinstance(node.args[2], ast.Call):
        if has_parameters(project, Call(node.args[2], scope)):
            yield Event("add", written(node.args[0]), node, scope, name=written(node.args[2].func))
        return
    if any(node is c.node for c in optimizers(project)):
        params = Call(node, scope).argument("params", 0)
        if isinstance(params, ast.Name):
            yield Event("optimizer", "", node, scope, name=params.id)
            return
        here = [item for item in held(project, Call(node, scope))[0] if item.scope is scope]
        for item in here:
            yield Event("optimizer", written(item.node), node, scope)
        if not here:
            yield Event("optimizer", "", node, scope)
        return
    if depth < MAX_DEPTH:
        yield from _of_method(project, node, scope)
        if node.args:
            yield from _of_function(project, node, scope, depth)


def _of_method(project: Project, node: ast.Call, scope: Scope) -> Iterator[Event]:
    """``net.attach(...)`` that puts modules into ``net``."""
    owner = node.func.value if isinstance(node.func, ast.Attribute) else None
    if not isinstance(owner, ast.Name | ast.Attribute) or written(owner) == "self":
        return
    target = project.resolve(node.func, scope)
    if target is None or target.owner is None or target.name in ("__init__", "forward"):
        return
    for call in project.calls_by_scope.get(target, ()):
        statement = project.statement(call.node, target)
        goal = written(statement.targets[0]) if isinstance(statement, ast.Assign) else ""
        grows = goal.startswith("self.") and statement is not None and has_parameters(project, call)
        inside = call.name in ("add_module", "register_module", "append", "setattr", "register_parameter")
        inner = [a for a in call.node.args if isinstance(a, ast.Call) and has_parameters(project, Call(a, target))]
        if grows or (inside and inner and "self" in written(call.node)):
            yield Event("add", written(owner), node, scope, name=f"{written(node.func)} {goal or call.name}")
            return


def _of_function(project: Project, node: ast.Call, scope: Scope, depth: int) -> Iterator[Event]:
    """What a function of the project does to the network that it is given."""
    target = project.resolve(node.func, scope)
    if target is not None and target.kind == "class":
        target = project.find_method(target, "__init__")
    if target is None or not isinstance(target.node, FunctionNode) or target is scope:
        return
    names = target.positional
    if target.owner is not None and names[:1] == ["self"]:
        names = names[1:]
    for place, argument in enumerate(node.args[: len(names)]):
        base = written(argument)
        if not isinstance(argument, ast.Name | ast.Attribute) or not _is_network(project, argument, scope):
            continue
        aliases = {names[place], *_aliases(project, target, names[place])}
        for inner in _inside(project, target, depth):
            head, _, rest = inner.base.partition(".")
            if inner.kind == "optimizer" and inner.base == names[place]:
                yield Event("optimizer", base, node, scope)
            elif inner.kind in ("add", "freeze", "thaw") and (head in aliases) and not _attribute_alone(inner):
                whole = f"{base}.{rest}" if rest and inner.kind != "add" else base
                yield Event(inner.kind, whole, node, scope, inner.test, f"{written(node.func)} {inner.name}")


def _attribute_alone(event: Event) -> bool:
    """True for ``part.requires_grad = False`` of a network itself, which changes none of its parameters."""
    targets = event.node.targets if isinstance(event.node, ast.Assign) else []
    return any(
        isinstance(t, ast.Attribute) and t.attr == "requires_grad" and written(t.value) == event.base for t in targets
    )


def _is_network(project: Project, node: ast.expr, scope: Scope) -> bool:
    from trainwreck.code.facts import network

    return network(project, node, scope)


def _inside(project: Project, target: Scope, depth: int) -> list[Event]:
    known: dict[Scope, list[Event]] = project.memo.setdefault("phases inside", {})
    if target not in known:
        known[target] = []
        known[target] = list(_events(project, target, depth + 1))
    return known[target]


def _aliases(project: Project, function: Scope, name: str) -> set[str]:
    """Loop variables over the modules of ``name``, and what they were split into."""
    found: set[str] = set()
    for node in project.within(function, ast.For):
        if isinstance(node, ast.For) and re.match(
            rf"(list\(|enumerate\()?{re.escape(name)}\.(named_)?(modules|children)\(", written(node.iter)
        ):
            found |= {n.id for n in ast.walk(node.target) if isinstance(n, ast.Name)}
    for other, bindings in function.bindings.items():
        for binding in bindings:
            if binding.value is not None and binding.kind == "assign":
                used = {n.id for n in ast.walk(binding.value) if isinstance(n, ast.Name)}
                if name in used and re.search(r"get_submodule|getattr|reduce", written(binding.value)):
                    found.add(other)
    return found


def covers(base: str, part: str) -> bool:
    """True if ``part`` is ``base`` or lies below it."""
    return part == base or part.startswith(base + ".")
