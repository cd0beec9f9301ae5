"""The terms of an objective: what is summed, with which sign and which factors, through names, functions and tables."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from trainwreck.code.calls import Call, last_name, written
from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.scopes import Binding, Path, Scope
from trainwreck.code.spine import onwards
from trainwreck.code.tables import entries
from trainwreck.code.values import values
from trainwreck.core.row import Row

MAX_DEPTH = 24
MAX_TERMS = 60
REDUCTIONS = frozenset(["mean", "sum", "nanmean", "float", "double", "to", "squeeze", "view", "reshape", "contiguous"])
"""Methods that keep the sign and the meaning of a term."""
COEFFICIENT = pattern(
    r"(^|_|\b)(w|weights?|coeff?s?|coefficients?|beta|lambda|lam|lambd|lmbda|alpha|gamma|scale|strength|factor|anneal\w*)"
    r"(_|\b|\d|$)|_(coef|coeff|weight|w)$",
    re.IGNORECASE,
)
"""How factors of a loss term are called."""


class Factor(Row):
    """A number that a term is multiplied with; ``inverse`` where it is divided by it."""

    node: ast.expr
    scope: Scope
    inverse: bool = False


class Term(Row):
    """One summand: the expression that computes it, its sign, its factors, the names that it went by on the way."""

    node: ast.expr
    scope: Scope
    sign: int = 1
    factors: tuple[Factor, ...] = ()
    names: tuple[str, ...] = ()
    path: Path = ()


def objectives(project: Project) -> list[tuple[Call, list[Term]]]:
    """Every ``x.backward()`` with the terms of ``x``."""
    if "objectives" not in project.memo:
        found = []
        for call in project.calls("backward", "manual_backward"):
            value = call.receiver if call.name == "backward" else None
            if call.node.args and (value is None or last_name(value) in ("accelerator", "fabric", "engine", "self")):
                value = call.node.args[0]
            if value is not None:
                found.append((call, terms(project, value, call.scope)))
        project.memo["objectives"] = found
    answer: list[tuple[Call, list[Term]]] = project.memo["objectives"]
    return answer


def terms(project: Project, node: ast.expr, scope: Scope) -> list[Term]:
    """The summands of ``node``. What can't be taken apart is one term."""
    found: list[Term] = []
    for term in _split(project, Term(node, scope), 0, set()):
        found.append(term)
        if len(found) >= MAX_TERMS:
            break
    return found


def _split(project: Project, term: Term, depth: int, seen: set[tuple[int, Path, int]]) -> Iterator[Term]:
    node, path = term.node, term.path
    key = (id(node), path, term.sign)
    if depth > MAX_DEPTH or key in seen:
        if depth > MAX_DEPTH:
            yield term
        return
    seen = seen | {key}
    parts = list(_parts(project, term)) if not path else []
    if not parts:
        parts = _onwards(project, term, seen)
    if not parts:
        yield term
        return
    for part in parts:
        yield from _split(project, part, depth + 1, seen)


def _parts(project: Project, term: Term) -> Iterator[Term]:
    """The summands of an expression by its own form."""
    node, scope = term.node, term.scope
    match node:
        case ast.BinOp() if _whole(node):
            return
        case ast.BinOp(op=ast.Add() | ast.Sub()):
            yield term._replace(node=node.left)
            yield term._replace(node=node.right, sign=-term.sign if isinstance(node.op, ast.Sub) else term.sign)
        case ast.UnaryOp(op=ast.USub()):
            yield term._replace(node=node.operand, sign=-term.sign)
        case ast.BinOp(op=ast.Mult()):
            for factor, rest in ((node.left, node.right), (node.right, node.left)):
                known = values(project, factor, scope)
                if known and all(isinstance(k.value, int | float) for k in known):
                    negative = all(k.value < 0 for k in known)
                    sign = -term.sign if negative else term.sign
                    yield term._replace(node=rest, sign=sign, factors=(*term.factors, Factor(factor, scope)))
                    return
            for factor, rest in ((node.left, node.right), (node.right, node.left)):
                if (_coefficient(factor) or _sized(factor)) and not _coefficient(rest):
                    yield term._replace(node=rest, factors=(*term.factors, Factor(factor, scope)))
                    return
        case ast.BinOp(op=ast.Div(), right=divisor) if _coefficient(divisor) or _counts(project, divisor, scope):
            yield term._replace(node=node.left, factors=(*term.factors, Factor(node.right, scope, True)))
        case ast.Call(func=ast.Attribute(value=inner, attr=name)) if (
            name in REDUCTIONS
            and isinstance(inner, ast.BinOp | ast.UnaryOp | ast.Name | ast.Attribute)
            and project.bindings_of_values(inner, scope)
        ):
            yield term._replace(node=inner)
        case ast.Call(func=func, args=[inner, *_]) if last_name(func) in ("mean", "scale", "sum") and not _axis(inner):
            yield from _summed(project, term, inner)


def _axis(node: ast.expr) -> bool:
    """True for numbers that are written out: ``x.mean(1)`` takes the mean over an axis, not of 1."""
    if isinstance(node, ast.Tuple | ast.List):
        return bool(node.elts) and all(_axis(e) for e in node.elts)
    return isinstance(node.operand if isinstance(node, ast.UnaryOp) else node, ast.Constant)


def _whole(node: ast.BinOp) -> bool:
    """True for a formula that is one term by its meaning: ``1 + logvar - mu ** 2 - logvar.exp()``."""
    parts: list[ast.expr] = [node]
    leaves: list[ast.expr] = []
    while parts:
        at = parts.pop()
        if isinstance(at, ast.BinOp) and isinstance(at.op, ast.Add | ast.Sub):
            parts += [at.left, at.right]
        elif isinstance(at, ast.UnaryOp):
            parts.append(at.operand)
        else:
            leaves.append(at)
    constants = sum(isinstance(leaf, ast.Constant) for leaf in leaves)
    exponents = sum(isinstance(leaf, ast.Call) and last_name(leaf.func) in ("exp", "expm1") for leaf in leaves)
    return len(leaves) > 1 and bool(constants or exponents)


def _counts(project: Project, node: ast.expr, scope: Scope) -> bool:
    """True for a number: a known one, ``len(x)``, ``x.size(0)``, ``x.shape[0]``."""
    if _sized(node):
        return True
    known = values(project, node, scope)
    return bool(known) and all(isinstance(k.value, int | float) for k in known)


def _sized(node: ast.expr) -> bool:
    """True for ``len(x)``, ``x.size(0)``, ``x.shape[0]``."""
    if isinstance(node, ast.Call):
        return last_name(node.func) in ("len", "size", "numel")
    return isinstance(node, ast.Subscript) and last_name(node.value) == "shape"


def _summed(project: Project, term: Term, inner: ast.expr) -> Iterator[Term]:
    """``sum(...)`` over a list, a table or a comprehension; ``torch.mean(x)``; ``scaler.scale(x)``."""
    scope = term.scope
    if isinstance(inner, ast.GeneratorExp | ast.ListComp) and len(inner.generators) == 1:
        yield from _weighted(project, term, inner)
        return
    if isinstance(inner, ast.List | ast.Tuple):
        yield from (term._replace(node=e) for e in inner.elts if not isinstance(e, ast.Starred))
        return
    if isinstance(inner, ast.Call) and last_name(inner.func) == "values" and isinstance(inner.func, ast.Attribute):
        for key, value, where in table(project, inner.func.value, scope):
            yield term._replace(node=value, scope=where, names=(*term.names, key))
        return
    yield term._replace(node=inner)


def _weighted(project: Project, term: Term, inner: ast.GeneratorExp | ast.ListComp) -> Iterator[Term]:
    """``sum(weights[k] * v for k, v in parts.items())``: one term for each key, with its own weight."""
    loop = inner.generators[0]
    over, target = loop.iter, loop.target
    if not isinstance(over, ast.Call) or not isinstance(over.func, ast.Attribute):
        return
    names = [e.id for e in target.elts if isinstance(e, ast.Name)] if isinstance(target, ast.Tuple) else []
    single = target.id if isinstance(target, ast.Name) else ""
    for key, value, where in table(project, over.func.value, term.scope):
        factors = []
        for node in ast.walk(inner.elt):
            match node:
                case ast.Subscript(slice=ast.Name(id=index)) if index in names[:1] or index == single:
                    weights = list(entries(project, node.value, key, term.scope))
                    factors += [Factor(w, s) for w, s in weights[:1]]
                case ast.Call(func=ast.Attribute(value=base, attr="get"), args=[ast.Name(id=index), *_]) if (
                    index in names[:1]
                ):
                    factors += [Factor(w, s) for w, s in list(entries(project, base, key, term.scope))[:1]]
        yield term._replace(node=value, scope=where, factors=(*term.factors, *factors), names=(*term.names, key))


def table(project: Project, node: ast.expr, scope: Scope, depth: int = 0) -> Iterator[tuple[str, ast.expr, Scope]]:
    """Key, value and scope of the entries of a table of losses."""
    if depth > MAX_DEPTH:
        return
    if isinstance(node, ast.Dict):
        for key, value in zip(node.keys, node.values, strict=True):
            if isinstance(key, ast.Constant) and isinstance(key.value, str):
                yield key.value, value, scope
        return
    if isinstance(node, ast.Call) and last_name(node.func) == "dict":
        yield from ((k.arg, k.value, scope) for k in node.keywords if k.arg)
        return
    if isinstance(node, ast.Name):
        for binding in project.lookup(node.id, scope):
            if binding.kind == "append" and isinstance(binding.node, ast.Assign) and binding.value is not None:
                for target in binding.node.targets:
                    match target:
                        case ast.Subscript(slice=ast.Constant(value=str() as name)):
                            yield name, binding.value, binding.scope
    for value, where, path in onwards(project, node, scope):
        if not path:
            yield from table(project, value, where, depth + 1)


def _coefficient(node: ast.expr) -> bool:
    """True for a name, attribute or key that speaks of a weight: ``self.beta``, ``cfg["kl_weight"]``."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name) | ast.Subscript(slice=ast.Constant(value=str() as name)):
            return bool(COEFFICIENT.search(name))
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
            return bool(COEFFICIENT.search(name))
        case ast.BinOp(op=ast.Mult() | ast.Div()):
            return _coefficient(node.left) or _coefficient(node.right)
    return False


def _onwards(project: Project, term: Term, seen: set[tuple[int, Path, int]]) -> list[Term]:
    """What a name, an attribute or a call of the project stands for, with what was added to a name later."""
    found = []
    name = written(term.node) if isinstance(term.node, ast.Name | ast.Attribute | ast.Subscript) else ""
    names = (*term.names, name) if name else term.names
    if isinstance(term.node, ast.Name) and not term.path:
        for binding in _added(project, term.node, term.scope):
            if (id(binding.value), (), _sign(term, binding)) not in seen and binding.value is not None:
                sign = _sign(term, binding)
                found.append(term._replace(node=binding.value, scope=binding.scope, sign=sign, names=names))
    for value, where, path in onwards(project, term.node, term.scope, term.path, reshapes=False):
        found.append(term._replace(node=value, scope=where, path=path, names=names))
    return found


def _sign(term: Term, binding: Binding) -> int:
    minus = isinstance(binding.node, ast.AugAssign) and isinstance(binding.node.op, ast.Sub)
    return -term.sign if minus else term.sign


def _added(project: Project, node: ast.Name, scope: Scope) -> list[Binding]:
    """``x += value`` before ``node`` and after the last plain assignment of ``x``."""
    bindings = [b for b in project.lookup(node.id, scope) if b.scope is scope and b.line < node.lineno]
    start = max((b.line for b in bindings if b.kind == "assign"), default=0)
    return [
        b
        for b in bindings
        if b.kind == "augment"
        and b.line > start
        and isinstance(b.node, ast.AugAssign)
        and isinstance(b.node.op, ast.Add | ast.Sub)
    ]


def multipliers(project: Project, factors: Iterable[Factor]) -> Iterator[Factor]:
    """The factors taken apart into those that they are the products of, through names."""
    todo = [(f, 0) for f in factors]
    while todo:
        factor, depth = todo.pop(0)
        node = factor.node
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult | ast.Div) and depth < MAX_DEPTH:
            turned = factor.inverse != isinstance(node.op, ast.Div)
            todo += [(factor._replace(node=node.left), depth + 1)]
            todo += [(factor._replace(node=node.right, inverse=turned), depth + 1)]
            continue
        if isinstance(node, ast.Name | ast.Attribute | ast.Call) and depth < MAX_DEPTH:
            further = list(onwards(project, node, factor.scope, reshapes=False))
            if len(further) == 1 and not further[0][2]:
                todo.append((factor._replace(node=further[0][0], scope=further[0][1]), depth + 1))
                continue
        yield factor


def weight(project: Project, term: Term) -> float | None:
    """The product of the factors of ``term``, None where one is unknown."""
    product = 1.0
    for factor in term.factors:
        known = [k.value for k in values(project, factor.node, factor.scope)]
        if len(known) != 1 or not isinstance(known[0], int | float) or (factor.inverse and not known[0]):
            return None
        product = product / known[0] if factor.inverse else product * known[0]
    return product
