"""A compiled call is timed without waiting for its result.

What: the clock is read before and after a call of a compiled function, without ``block_until_ready`` between.
Why it matters: calls return at once; what is measured is how long it takes to ask.
When it is fine: where a value is fetched before the second reading (``float``, ``np.asarray``, ``device_get``).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import Call, last_name, written
from trainwreck.code.jax import compiling, traced
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.code.scopes import Scope
from trainwreck.core.evidence import Evidence
from trainwreck.core.fix import Fix

WORDS = ("jax", "flax", "optax")
BAD = (
    """
import time
import jax
@jax.jit
def step(x):
    return x @ x
start = time.time()
y = step(x)
print(time.time() - start)  # expect
""",
)
GOOD = """
import time
import jax
@jax.jit
def step(x):
    return x @ x
start = time.time()
y = step(x).block_until_ready()
print(time.time() - start)
begin = time.perf_counter()
z = step(x)
jax.block_until_ready(z)
took = time.perf_counter() - begin
def plain(x):
    t = time.time()
    y = other(x)
    return time.time() - t
"""
CLOCKS = ("time.time", "time.perf_counter", "time.monotonic")
WAITS = frozenset(["block_until_ready", "device_get", "asarray", "array", "float", "item", "tolist", "print_loss"])


def find(project: Project) -> Iterator[Evidence]:
    compiled = {t.scope for t in traced(project)}
    if not compiled:
        return
    for scope in project.scopes:
        for node in project.within(scope, ast.BinOp):
            if (
                not isinstance(node, ast.BinOp)
                or not isinstance(node.op, ast.Sub)
                or not _clock(project, node.left, scope)
            ):
                continue
            between = _between(project, node, scope)
            run = next((c for c in between if _compiled(project, c, compiled)), None)
            if run is not None and not any(c.name in WAITS for c in between):
                text = f"{written(run.node.func)} returns before it has run: this is the time to ask for it"
                yield sighting(
                    __name__, (node, scope), text, proof=[run], fix=Fix("jax.block_until_ready(result) first")
                )


NEAR = 4
"""Statements between the two readings; over more of them a throughput is meant, or something fetches a value."""


def _between(project: Project, node: ast.BinOp, scope: Scope) -> list[Call]:
    """The calls between the two readings of the clock, where both stand in one block close to each other."""
    bindings = project.lookup(node.right.id, scope) if isinstance(node.right, ast.Name) else []
    if len(bindings) != 1 or bindings[0].value is None or not _clock(project, bindings[0].value, scope):
        return []
    first, last = bindings[0].node, project.statement(node, scope)
    block = getattr(project.parent(last, scope), "body", [])
    if first not in block or last not in block or not 1 < block.index(last) - block.index(first) <= NEAR:
        return []
    part = block[block.index(first) + 1 : block.index(last) + 1]
    if any(isinstance(s, ast.Assert | ast.If | ast.For | ast.While) for s in part):
        return []
    return [Call(n, scope) for s in part for n in ast.walk(s) if isinstance(n, ast.Call)]


def _clock(project: Project, node: ast.expr, scope: Scope) -> bool:
    return isinstance(node, ast.Call) and project.called(Call(node, scope)) in CLOCKS


def _compiled(project: Project, call: Call, compiled: set[Scope]) -> bool:
    target = project.resolve(call.node.func, call.scope)
    if target is not None:
        return target in compiled
    if not isinstance(call.node.func, ast.Name):
        return False
    bindings = project.lookup(call.node.func.id, call.scope)
    value = bindings[0].value if len(bindings) == 1 and bindings[0].kind == "assign" else None
    return (
        isinstance(value, ast.Call)
        and last_name(value.func) == "jit"
        and bool(compiling(project, value.func, call.scope))
    )
