"""A function draws with a key that stands in the module.

What: a sampler of ``jax.random`` in a function uses a key that was made at the top of the module, and never changes it.
Why it matters: every call of the function draws the same numbers; under jit for ever.
When it is fine: for fixed test data and constants.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import Call
from trainwreck.code.jax import SAMPLERS, is_random
from trainwreck.code.order import loops
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.core.evidence import Evidence
from trainwreck.core.fix import Fix

WORDS = ("jax", "flax", "optax")
BAD = (
    """
import jax
KEY = jax.random.PRNGKey(0)
def noisy(x):
    return x + jax.random.normal(KEY, x.shape)  # expect
for step in range(100):
    x = noisy(x)
""",
    """
import jax
from jax import random
key = random.key(1)
@jax.jit
def step(params, batch):
    mask = random.bernoulli(key, 0.5, batch.shape)  # expect
    return loss(params, batch * mask)
""",
)
GOOD = """
import jax
KEY = jax.random.PRNGKey(0)
def noisy(key, x):
    return x + jax.random.normal(key, x.shape)
def data():
    return jax.random.normal(KEY, (100, 3))
def later(x, step):
    return x + jax.random.normal(jax.random.fold_in(KEY, step), x.shape)
x = data()
for step in range(100):
    KEY, sub = jax.random.split(KEY)
    x = noisy(sub, x)
"""


def find(project: Project) -> Iterator[Evidence]:
    from trainwreck.code.jax import traced

    compiled = {t.scope for t in traced(project)}
    for call in project.calls(*SAMPLERS):
        key = call.argument("key", 0)
        if call.scope.kind != "function" or not isinstance(key, ast.Name) or not is_random(project, call):
            continue
        bindings = project.lookup(key.id, call.scope)
        outer = [b for b in bindings if b.scope.kind == "module" and b.kind == "assign"]
        if not outer or len(outer) != len(bindings) or not _key(outer[0].value):
            continue
        if call.scope in compiled or _repeated(project, call):
            text = f"{key.id} stands in the module: every call draws the same numbers"
            proof = [(outer[0].scope.module.path, outer[0].line, key.id)]
            yield sighting(__name__, call, text, proof=proof, fix=Fix("hand the key over, and split it at each call"))


def _key(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) in ("PRNGKey", "key")


def _repeated(project: Project, call: Call) -> bool:
    """True if the function is called in a loop."""
    return any(loops(project, c.node, c.scope) for c in project.callers(call.scope))
