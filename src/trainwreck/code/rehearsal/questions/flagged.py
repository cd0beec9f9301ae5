"""What a flag decides that a function is called with: the call is where it was decided."""

from __future__ import annotations

import ast

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Place
from trainwreck.code.scopes import FunctionNode

MAX_CALLS = 6


def flag_given(run: Rehearsing, node: Node, place: Place) -> Place:
    """The call that asks for what is done at ``place`` (a cut, a context without gradients), where a parameter of the
    function around it decides about that and the call, or another one of the same function, says which; else ``place``.
    """
    stack = list(node.stack)
    at = place
    for _ in range(MAX_CALLS):
        names = _deciding(run, at)
        while stack and stack[-1][1] is at[1]:
            stack.pop()  # a call within the same function leads further in
        if not names or not stack:
            return at
        call, scope = stack[-1]
        if not isinstance(call, ast.Call):
            return at
        said = {name: _said(call, at[1].node, name) for name in names}
        name = next((n for n, value in said.items() if value is not None), None)
        if name is None:
            missing = [n for n in names if _said_elsewhere(run, call, at[1].node, n)]
            return (call, scope) if missing else at
        value = said[name]
        if not isinstance(value, ast.Name) or value.id not in _params(scope.node):
            return call, scope
        at = (value, scope)  # handed on: its own caller says which
    return at


def _deciding(run: Rehearsing, place: Place) -> list[str]:
    """The parameters of the function that tests, and contexts, around a place ask for; itself, where it is one."""
    node, scope = place
    own = _params(scope.node)
    if isinstance(node, ast.Name):
        return [node.id] if node.id in own else []
    asked: list[ast.AST] = []
    for above in (node, *run.project.ancestors(node, scope)):
        if above is scope.node:
            break
        if isinstance(above, ast.IfExp | ast.If):
            asked.append(above.test)
        elif isinstance(above, ast.With):
            asked += [item.context_expr for item in above.items]
    if isinstance(node, ast.Call):
        asked += [*node.args, *(k.value for k in node.keywords)]
    found = [n.id for a in asked for n in ast.walk(a) if isinstance(n, ast.Name) and n.id in own]
    return [n for n in dict.fromkeys(found) if _flag(scope.node, asked, n)]


def _flag(function: ast.AST, asked: list[ast.AST], name: str) -> bool:
    """True where the name alone is asked (``if track``, ``if not track``), or handed to a switch."""
    for item in asked:
        inner = item.operand if isinstance(item, ast.UnaryOp) and isinstance(item.op, ast.Not) else item
        switch = isinstance(inner, ast.Call) and len(inner.args) == 1 and isinstance(inner.args[0], ast.Name)
        if isinstance(inner, ast.Name) and inner.id == name:
            return True
        if switch and isinstance(inner, ast.Call) and ast.unparse(inner.func).endswith("set_grad_enabled"):
            return ast.unparse(inner.args[0]) == name
        if isinstance(inner, ast.IfExp) and _flag(function, [inner.test], name):
            return True
    return False


def _params(function: ast.AST) -> list[str]:
    if not isinstance(function, FunctionNode):
        return []
    return [a.arg for a in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)]


def _said(call: ast.Call, function: ast.AST, name: str) -> ast.expr | None:
    """What the call gives for the parameter."""
    for keyword in call.keywords:
        if keyword.arg == name:
            return keyword.value
    names = _params(function)
    place = names.index(name) - (names[:1] in (["self"], ["cls"])) if name in names else -1
    return call.args[place] if 0 <= place < len(call.args) else None


def _said_elsewhere(run: Rehearsing, call: ast.Call, function: ast.AST, name: str) -> bool:
    """True where another call of the function says what this one leaves to the default."""
    wanted = getattr(function, "name", "")
    for other in run.project.calls(wanted) if wanted else ():
        if other.node is not call and _said(other.node, function, name) is not None:
            return True
    return False


__all__ = ["flag_given"]
