"""An argument that was given away is used again.

What: a function is compiled with ``donate_argnums``, and after its call the donated name is read without having been
bound to the result.
Why it matters: its memory belongs to the result now: "Array has been deleted".
When it is fine: ``state = step(state, batch)``.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import Call, written
from trainwreck.code.jax import compiling
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.code.values import values
from trainwreck.core.evidence import Evidence
from trainwreck.core.fix import Fix

WORDS = ("jax", "flax", "optax")
BAD = (
    """
import jax
step = jax.jit(update, donate_argnums=(0,))
new = step(params, batch)
print(params["w"].mean())  # expect
""",
    """
import jax
def main(state, loader):
    train = jax.jit(step, donate_argnums=0)
    for batch in loader:
        fresh = train(state, batch)  # expect
    return fresh
""",
)
GOOD = """
import jax
step = jax.jit(update, donate_argnums=(0,))
for batch in loader:
    params = step(params, batch)
    print(params)
plain = jax.jit(update)
new = plain(params, batch)
print(params)
def run(state, batch):
    state, loss = step(state, batch)
    return state, loss
"""


def find(project: Project) -> Iterator[Evidence]:
    for made in project.calls("jit", "pmap"):
        given = made.argument("donate_argnums")
        if given is None or not compiling(project, made.node.func, made.scope):
            continue
        known = values(project, given, made.scope)
        statement = project.statement(made.node, made.scope)
        name = written(statement.targets[0]) if isinstance(statement, ast.Assign) else ""
        if len(known) != 1 or not name:
            continue
        places = known[0].value if isinstance(known[0].value, tuple) else (known[0].value,)
        for call in project.calls(name.rsplit(".", 1)[-1]):
            if written(call.node.func) == name and call.node is not made.node:
                yield from _reused(project, call, [p for p in places if isinstance(p, int)], made)


def _reused(project: Project, call: Call, places: list[int], made: Call) -> Iterator[Evidence]:
    statement = project.statement(call.node, call.scope)
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    bound = {n.id for t in targets for n in ast.walk(t) if isinstance(n, ast.Name)}
    for place in places:
        value = call.node.args[place] if place < len(call.node.args) else None
        if not isinstance(value, ast.Name) or value.id in bound:
            continue
        used = _next_read(project, call, value.id, statement)
        if used is not None:
            text = f"{value.id} was given away to {written(call.node.func)}: its memory belongs to the result"
            fix = Fix(f"{value.id} = {written(call.node)[:60]}")
            yield sighting(__name__, (used, call.scope), text, proof=[call, made], fix=fix)


def _next_read(project: Project, call: Call, name: str, statement: ast.stmt) -> ast.AST | None:
    """Where the name is read after the call: below it, or by the call itself in the next pass of its loop."""
    end = statement.end_lineno or statement.lineno
    bindings = [b.line for b in call.scope.bindings.get(name, ()) if b.kind != "param"]
    loop = next((a for a in project.ancestors(call.node, call.scope) if isinstance(a, ast.For | ast.While)), None)
    if loop is not None and not any(loop.lineno <= b <= (loop.end_lineno or b) for b in bindings):
        return call.node
    reads = [
        n
        for n in ast.walk(call.scope.node)
        if isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Load) and n.lineno > end
    ]
    first = min(reads, key=lambda n: n.lineno, default=None)
    if first is None or any(end < b <= first.lineno for b in bindings):
        return None
    inner = any(isinstance(a, ast.If | ast.Try) for a in project.ancestors(call.node, call.scope))
    return None if inner else first
