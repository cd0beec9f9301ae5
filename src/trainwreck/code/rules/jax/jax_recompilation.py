"""A function is compiled anew in every pass of a loop.

What: ``jax.jit`` of a lambda or of a function that is made in the loop, called in the same loop.
Why it matters: the cache belongs to the function object: each pass traces and compiles again.
When it is fine: in loops over variants that are to be compared, each compiled once.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import Call
from trainwreck.code.facts import names
from trainwreck.code.jax import compiling
from trainwreck.code.order import Loop, loops
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.code.scopes import FunctionNode
from trainwreck.core.evidence import Evidence
from trainwreck.core.fix import Fix

WORDS = ("jax", "flax", "optax")
BAD = (
    """
import jax
for step, batch in enumerate(loader):
    update = jax.jit(lambda p, x: p - x.mean())  # expect
    params = update(params, batch)
""",
    """
import jax
def train(params, loader):
    for batch in loader:
        def loss(p):
            return (p * batch).sum()
        grads = jax.jit(jax.grad(loss))(params)  # expect
        params = params - grads
    return params
""",
)
GOOD = """
import jax
update = jax.jit(lambda p, x: p - x.mean())
for batch in loader:
    params = update(params, batch)
for name, function in variants.items():
    fast = jax.jit(function)
    measure(name, fast)
for size in sizes:
    fast = jax.jit(lambda x: x * size)
    measure(fast)
"""
DATA = frozenset(["batch", "step", "epoch", "i", "x", "y", "row", "it", "iteration", "data", "images", "inputs", "t"])
"""Names of what a training loop runs over; loops over anything else compare variants."""


def find(project: Project) -> Iterator[Evidence]:
    for call in project.calls("jit", "pmap"):
        if not call.node.args or not compiling(project, call.node.func, call.scope):
            continue
        around = loops(project, call.node, call.scope)
        loop = around[0] if around else None
        if loop is None or (isinstance(loop, ast.For) and not names(loop.target) & DATA):
            continue
        if _made_inside(call, loop):
            text = "the function is made in the loop, so that each pass compiles it again"
            yield sighting(__name__, call, text, fix=Fix("make and compile it once before the loop"))


def _made_inside(call: Call, loop: Loop) -> bool:
    """True where what is compiled is a lambda, or a function that the loop defines."""
    value = call.node.args[0]
    defined = {n.name for n in ast.walk(loop) if isinstance(n, FunctionNode)}
    if isinstance(value, ast.Lambda):
        return True
    return bool(names(value) & defined)
