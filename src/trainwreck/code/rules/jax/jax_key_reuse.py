"""A random key is used more than once.

What: the same key goes to two samplers of ``jax.random``, or to one in a loop, without ``split`` or ``fold_in``
between.
Why it matters: the same key gives the same numbers: noise repeats, dropout masks are equal in every step.
When it is fine: where the same numbers are meant, and in different branches.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import Call
from trainwreck.code.jax import SAMPLERS, in_test, is_random, uses_jax
from trainwreck.code.order import loops
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.code.scopes import Scope
from trainwreck.core.evidence import Evidence
from trainwreck.core.fix import Fix

WORDS = ("jax", "flax", "optax")
BAD = (
    """
import jax
key = jax.random.PRNGKey(0)
x = jax.random.normal(key, (3,))
y = jax.random.uniform(key, (3,))  # expect
""",
    """
from jax import random
def noise(rng, n):
    out = []
    for i in range(n):
        out.append(random.normal(rng, (4,)))  # expect
    return out
""",
    """
import jax
def train(state, loader, key):
    for batch in loader:
        out = model.apply(state.params, batch, rngs={"dropout": key})  # expect
        state = update(state, out)
    return state
""",
    """
import jax
def init(key):
    k1, k2 = jax.random.split(key)
    w = jax.random.normal(k1, (3,))
    b = jax.random.normal(k1, (3,))  # expect
    return w, b, k2
""",
)
GOOD = """
import jax
from jax import random
def one(key, n, flag):
    key, sub = random.split(key)
    x = random.normal(sub, (3,))
    key, sub = random.split(key)
    y = random.normal(sub, (3,))
    for i in range(n):
        key, sub = random.split(key)
        y = y + random.normal(sub, (3,))
        z = random.normal(random.fold_in(key, i), (3,))
    if flag:
        return random.normal(key, (3,))
    else:
        return random.uniform(key, (3,))
def early(key, kind):
    if kind == "a":
        return random.normal(key, (2,))
    return random.uniform(key, (2,))
def many(keys):
    return [random.normal(k, (2,)) for k in keys], random.normal(keys[0]), random.normal(keys[1])
def train(state, loader, key):
    for step, batch in enumerate(loader):
        state = model.apply(state, batch, rngs={"dropout": random.fold_in(key, step)})
        key = random.fold_in(key, 1)
"""


def find(project: Project) -> Iterator[Evidence]:
    by_scope: dict[Scope, list[tuple[str, Call]]] = {}
    for call, key in _uses(project):
        by_scope.setdefault(call.scope, []).append((key, call))
    for scope, uses in by_scope.items():
        if in_test(scope):
            continue
        told: set[str] = set()
        for index, (key, call) in enumerate(sorted(uses, key=lambda u: u[1].line)):
            again = _again_in_loop(project, call, key)
            earlier = [c for k, c in sorted(uses, key=lambda u: u[1].line)[:index] if k == key]
            fresh = earlier and not _rebound(scope, key, earlier[-1], call) and not _apart(project, earlier[-1], call)
            if key in told or not (again or fresh):
                continue
            told.add(key)
            fix = Fix(f"{key}, sub = jax.random.split({key}), and use sub")
            if again:
                text = f"{key} is used in a loop and never split: every pass draws the same numbers"
                yield sighting(__name__, call, text, fix=fix)
            else:
                text = f"{key} was used above already: the numbers are correlated"
                yield sighting(__name__, call, text, proof=earlier[-1:], fix=fix)


def _uses(project: Project) -> Iterator[tuple[Call, str]]:
    """Calls that use a key up, with the name of the key."""
    for call in project.calls(*SAMPLERS):
        if is_random(project, call):
            key = call.argument("key", 0)
            if isinstance(key, ast.Name):
                yield call, key.id
    for call in project.calls("apply"):
        rngs = call.argument("rngs")
        if isinstance(rngs, ast.Dict) and uses_jax(project, call.scope.module.path):
            for value in rngs.values:
                if isinstance(value, ast.Name):
                    yield call, value.id


def _again_in_loop(project: Project, call: Call, key: str) -> bool:
    """True if the innermost loops around ``call`` run with one and the same key."""
    around = loops(project, call.node, call.scope)
    if not around:
        return False
    loop = around[0]
    if any(isinstance(n, ast.Break | ast.Return) for s in loop.body for n in ast.walk(s)):
        return False
    bound = {n.id for n in ast.walk(loop) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    params = any(b.kind == "param" for b in project.lookup(key, call.scope))
    assigned = any(b.kind == "assign" and b.line < loop.lineno for b in project.lookup(key, call.scope))
    return key not in bound and (params or assigned)


def _rebound(scope: Scope, key: str, one: Call, other: Call) -> bool:
    """True if the key gets a new value between the two calls (or in the statement of the first)."""
    return any(one.line <= b.line <= other.line for b in scope.bindings.get(key, ()) if b.kind != "param")


def _apart(project: Project, one: Call, other: Call) -> bool:
    """True if not both can run: other branches, a return after the first, or different functions."""
    for above in project.ancestors(one.node, one.scope):
        if isinstance(above, ast.Lambda):
            return True
        branch = isinstance(above, ast.If | ast.IfExp | ast.Try)
        if branch and not any(n is other.node for n in ast.walk(above)):
            return True
        if isinstance(above, ast.If):
            inside = [any(n is other.node for s in part for n in ast.walk(s)) for part in (above.body, above.orelse)]
            mine = [any(n is one.node for s in part for n in ast.walk(s)) for part in (above.body, above.orelse)]
            if inside != mine:
                return True
    lambdas = any(isinstance(a, ast.Lambda) for a in project.ancestors(other.node, other.scope))
    return lambdas
