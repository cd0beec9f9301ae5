"""The two sides of adversarial training: who is trained by which objective, and what it wants of which samples."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Literal

from trainwreck.code.calls import Call, last_name, written
from trainwreck.code.objective import Term, objectives
from trainwreck.code.order import constructors, kind_of, position
from trainwreck.code.params import held
from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.scopes import Scope
from trainwreck.code.spine import ends
from trainwreck.code.values import number
from trainwreck.core.row import Row

DISCRIMINATOR = pattern(r"(^|[._])(d|net_?d|d_net|disc\w*|discriminator\w*|critic\w*)$", re.IGNORECASE)
GENERATOR = pattern(r"(^|[._])(g|net_?g|g_net|gen\w*|generator\w*)$", re.IGNORECASE)

Want = Literal[-1, 0, 1]
"""+1: the loss falls when the score rises; -1: when it falls; 0: unknown."""


class Score(Row):
    """The score of some samples in an objective."""

    call: Call
    samples: Literal["real", "fake"]
    cut: bool
    want: Want
    term: Term


class Side(Row):
    """One objective of adversarial training. ``trains`` is ``d`` or ``g``."""

    backward: Call
    trains: str
    scores: list[Score]


def owner_of(project: Project, backward: Call) -> list[str]:
    """What the optimizer that steps next after ``backward`` in its function was given."""
    steps = [
        c
        for c in project.calls_by_scope.get(backward.scope, ())
        if c.name == "step" and position(c.node) > position(backward.node) and kind_of(project, c) == "optimizer"
    ]
    first = min(steps, key=lambda c: position(c.node), default=None)
    if first is None or first.receiver is None:
        return []
    return [
        written(item.node)
        for built in constructors(project, first.receiver, first.scope)
        for item in held(project, built)[0]
        if item.whole
    ]


def sides(project: Project) -> list[Side]:
    """The objectives of the program that score samples with a discriminator."""
    if "adversarial" not in project.memo:
        project.memo["adversarial"] = list(_sides(project))
    found: list[Side] = project.memo["adversarial"]
    return found


def _sides(project: Project) -> Iterator[Side]:
    if not any(GENERATOR.search(name) for name in project.calls_by_name):
        return
    for backward, terms in objectives(project):
        scores = [s for term in terms for s in _scores(project, term)]
        if not scores:
            continue
        owned = owner_of(project, backward)
        d, g = (any(p.search(o) for o in owned) for p in (DISCRIMINATOR, GENERATOR))
        trains = "d" if d and not g else "g" if g and not d else "d" if any(s.samples == "real" for s in scores) else ""
        if trains:
            yield Side(backward, trains, scores)


def _scores(project: Project, term: Term) -> Iterator[Score]:
    """Calls of a discriminator in the term, or behind the names that it reads in its own function."""
    seen: set[int] = set()
    todo: list[tuple[ast.AST, Scope, int]] = [(term.node, term.scope, 0)]
    while todo:
        node, scope, depth = todo.pop()
        for inner in ast.walk(node):
            if isinstance(inner, ast.Call) and DISCRIMINATOR.search(written(inner.func)) and inner.args:
                if id(inner) in seen:
                    continue
                seen.add(id(inner))
                kind, cut = _samples(project, inner.args[0], scope)
                if kind:
                    yield Score(Call(inner, scope), kind, cut, _want(project, term, inner, scope), term)
            elif isinstance(inner, ast.Name) and depth < 3:
                for value, where in ends(project, inner, scope):
                    if where is scope and value is not inner and id(value) not in seen:
                        todo.append((value, where, depth + 1))


def _samples(project: Project, node: ast.expr, scope: Scope) -> tuple[Literal["real", "fake", ""], bool]:
    """Whether samples come from a generator, and whether its graph is cut off on the way."""
    from trainwreck.code.flow import back
    from trainwreck.code.order import under_no_grad

    text = written(node)
    for step in back(project, node, scope):
        inner = step.node
        if isinstance(inner, ast.Call) and GENERATOR.search(written(inner.func)):
            chain = [s.node for s in step.chain()]
            cut = any(isinstance(n, ast.Call) and last_name(n.func) == "detach" for n in chain)
            return "fake", cut or under_no_grad(project, inner, step.scope) is not None
        if step.depth > 8:
            break
    if re.search(r"fake|gen(?!erator\()", text, re.IGNORECASE):
        return "fake", "detach" in text
    return ("real", False) if re.search(r"real|(^|_)x(_|$)|data|batch|image", text, re.IGNORECASE) else ("", False)


def _want(project: Project, term: Term, score: ast.Call, scope: Scope) -> Want:
    """Which way the term pushes the score."""
    node: ast.expr = term.node
    while isinstance(node, ast.Call) and last_name(node.func) in ("mean", "sum"):
        receiver = node.func.value if isinstance(node.func, ast.Attribute) else None
        named = isinstance(receiver, ast.Name) and receiver.id in ("torch", "F", "np")
        node = node.args[0] if node.args and (receiver is None or named) else receiver or node.args[0]
    sign = term.sign
    match node:
        case ast.Call(func=func, args=[first, label, *_]) if "loss" in last_name(func) or _is_criterion(func):
            wanted = _label(project, label, term.scope)
            return 0 if wanted is None else _as_want(sign if wanted > 0.5 else -sign)
        case ast.Call(func=func, args=[first, label, *_]) if last_name(func).startswith("binary_cross_entropy"):
            wanted = _label(project, label, term.scope)
            return 0 if wanted is None else _as_want(sign if wanted > 0.5 else -sign)
        case ast.Call(func=func, args=[first]) if last_name(func) in ("softplus", "relu"):
            return _as_want(-sign * _direction(first))
        case ast.Call(func=func, args=[first]) if last_name(func) in ("log", "logsigmoid"):
            return _as_want(-sign * -_direction(first))
    if score is node or isinstance(node, ast.Name):
        return _as_want(-sign)
    return 0


def _as_want(value: int) -> Want:
    return 1 if value > 0 else -1 if value < 0 else 0


def _direction(node: ast.expr) -> int:
    """+1 where the expression rises with the score in it, -1 where it falls."""
    match node:
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return -_direction(inner)
        case ast.BinOp(op=ast.Sub(), left=ast.Constant(), right=inner):
            return -_direction(inner)
        case ast.BinOp(op=ast.Add() | ast.Sub(), left=left, right=right):
            return _direction(right) if isinstance(left, ast.Constant) else _direction(left)
    return 1


def _is_criterion(func: ast.expr) -> bool:
    return bool(re.search(r"bce|crit|mse|loss", written(func), re.IGNORECASE))


def _label(project: Project, node: ast.expr, scope: Scope) -> float | None:
    """1 or 0 for targets that are made of ones or zeros (or of one number)."""
    for value, where in ends(project, node, scope):
        if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Mult | ast.Sub):
            inner = _label(project, value.left, where)
            if inner is not None:
                return inner
        if not isinstance(value, ast.Call):
            continue
        name = last_name(value.func)
        if name.startswith("ones"):
            return 1.0
        if name.startswith("zeros"):
            return 0.0
        if name in ("full", "full_like") and len(value.args) > 1:
            return number(project, value.args[1], where)
    return None
