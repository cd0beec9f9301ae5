"""Questions about programs of JAX, flax and optax: what is traced, which names are random keys, which are arrays."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from trainwreck.code.calls import Call, last_name
from trainwreck.code.project import Project
from trainwreck.code.scopes import FunctionNode, Scope
from trainwreck.code.values import values

COMPILING = ("jit", "pmap")
"""Transformations under which arguments are tracers without a value."""
SAMPLERS = frozenset(
    [
        "normal", "uniform", "bernoulli", "categorical", "randint", "permutation", "choice", "truncated_normal",
        "gumbel", "exponential", "gamma", "beta", "dirichlet", "laplace", "poisson", "bits", "orthogonal", "rademacher",
        "multivariate_normal", "t", "cauchy", "logistic", "shuffle", "ball",
    ]
)  # fmt: skip
"""Functions of ``jax.random`` that use a key up."""


@dataclass(frozen=True, eq=False)
class Traced:
    """A function that is compiled: ``static`` are parameters with a value, None where they can't be told."""

    scope: Scope
    by: ast.AST
    static: frozenset[str] | None
    transform: str


def uses_jax(project: Project, path: str) -> bool:
    """True if the module imports jax, flax or optax."""
    known: dict[str, bool] = project.memo.setdefault("uses jax", {})
    if path not in known:
        text = project.walked[path].top.module.text
        known[path] = any(w in text for w in ("jax", "flax", "optax"))
    return known[path]


def traced(project: Project) -> list[Traced]:
    """Functions of the program that are compiled by decoration or by a call of ``jax.jit`` or ``jax.pmap``."""
    if "jax traced" not in project.memo:
        project.memo["jax traced"] = list(_traced(project))
    found: list[Traced] = project.memo["jax traced"]
    return found


def _traced(project: Project) -> Iterator[Traced]:
    for function in project.functions:
        if not uses_jax(project, function.module.path):
            continue
        for decorator in function.decorators:
            made = compiling(project, decorator, function.parent or function)
            if made:
                yield Traced(function, decorator, _static(project, decorator, function), made)
    for call in project.calls(*COMPILING):
        if not compiling(project, call.node.func, call.scope) or not call.node.args:
            continue
        target = project.resolve(call.node.args[0], call.scope)
        if target is not None and target.kind == "function":
            yield Traced(target, call.node, _static(project, call.node, target), call.name)


def compiling(project: Project, node: ast.expr, scope: Scope) -> str:
    """``jit`` or ``pmap`` for ``jax.jit``, ``jax.jit(...)`` and ``partial(jax.jit, ...)``, else ""."""
    if isinstance(node, ast.Call):
        if last_name(node.func) == "partial" and node.args:
            return compiling(project, node.args[0], scope)
        return compiling(project, node.func, scope)
    name = project.dotted(node, scope)
    return name.rsplit(".", 1)[-1] if name in ("jax.jit", "jax.pmap", "jax.api.jit") else ""


def _static(project: Project, node: ast.AST, function: Scope) -> frozenset[str] | None:
    """Parameters that ``static_argnums`` and ``static_argnames`` name; "self" is counted as one."""
    if not isinstance(node, ast.Call):
        return frozenset({"self", "cls"})
    found = {"self", "cls"}
    scope = function.parent or function
    names = function.positional
    for item in node.keywords:
        if item.arg is None:
            return None
        if item.arg not in ("static_argnums", "static_argnames", "static_broadcasted_argnums"):
            continue
        known = values(project, item.value, scope)
        if len(known) != 1:
            return None
        many = known[0].value if isinstance(known[0].value, tuple) else (known[0].value,)
        for one in many:
            if isinstance(one, str):
                found.add(one)
            elif isinstance(one, int) and -len(names) <= one < len(names):
                found.add(names[one])
            else:
                return None
    return frozenset(found)


def is_random(project: Project, call: Call) -> bool:
    """True for a function of ``jax.random``."""
    name = project.called(call)
    return name.startswith(("jax.random.", "jax.numpy.random."))


def is_array(project: Project, node: ast.expr, scope: Scope) -> bool:
    """True for what is surely an array of JAX: a call of ``jax.numpy`` or ``jax.random``, or a name for one."""
    if isinstance(node, ast.Name):
        bindings = [b for b in project.lookup(node.id, scope) if b.kind not in ("append", "augment")]
        if not bindings or any(b.kind != "assign" or b.path or b.value is None for b in bindings):
            return False
        plain = [b.value for b in bindings if not _of_itself(b.value, node.id)]
        return bool(plain) and all(is_array(project, v, b.scope) for v, b in zip(plain, bindings, strict=False) if v)
    if isinstance(node, ast.Call):
        name = project.called(Call(node, scope))
        if name.startswith("jax.numpy."):
            return name.rsplit(".", 1)[-1] not in ("dtype", "finfo", "shape", "ndim", "save", "load", "issubdtype")
        return name.startswith("jax.random.") and name.rsplit(".", 1)[-1] in SAMPLERS
    return False


def _of_itself(node: ast.expr | None, name: str) -> bool:
    """``x = x.at[0].set(1)``: an array if ``x`` was one."""
    return node is not None and any(isinstance(n, ast.Name) and n.id == name for n in ast.walk(node))


def body_nodes(function: Scope) -> Iterator[ast.AST]:
    """Every node of the body of ``function``, without those of functions defined in it."""
    todo: list[ast.AST] = list(reversed(getattr(function.node, "body", [])))
    while todo:
        node = todo.pop()
        yield node
        if not isinstance(node, FunctionNode | ast.ClassDef | ast.Lambda):
            todo.extend(reversed(list(ast.iter_child_nodes(node))))


def in_test(scope: Scope) -> bool:
    """True in tests, where the same numbers twice and half an optimizer are meant."""
    base = scope.module.path.rsplit("/", 1)[-1]
    return base.startswith("test_") or base.endswith("_test.py") or scope.name.startswith("test")
