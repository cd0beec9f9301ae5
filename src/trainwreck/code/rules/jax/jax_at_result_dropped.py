"""The result of an update is thrown away.

What: ``x.at[i].set(v)`` as a statement of its own.
Why it matters: it gives a new array back; ``x`` stays what it was.
When it is fine: where the result is assigned or returned.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import written
from trainwreck.code.jax import uses_jax
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.core.evidence import Evidence
from trainwreck.core.fix import Fix

WORDS = ("jax", "flax", "optax")
BAD = (
    """
import jax.numpy as jnp
x = jnp.zeros(3)
x.at[0].set(1.0)  # expect
""",
    """
import jax
class Memory:
    def write(self, i, v):
        self.table.at[i, :].add(v)  # expect
""",
)
GOOD = """
import jax.numpy as jnp
x = jnp.zeros(3)
x = x.at[0].set(1.0)
def write(x, i, v):
    return x.at[i].add(v)
frame.at[0, "a"] = 3
seen.add(1)
"""
UPDATES = ("set", "add", "multiply", "divide", "min", "max", "power", "apply")


def find(project: Project) -> Iterator[Evidence]:
    for call in project.calls(*UPDATES):
        match call.node.func:
            case ast.Attribute(value=ast.Subscript(value=ast.Attribute(attr="at", value=base))):
                statement = isinstance(project.parent(call.node, call.scope), ast.Expr)
                if statement and uses_jax(project, call.scope.module.path):
                    name = written(base)
                    text = f"the update gives a new array back, and {name} stays as it was"
                    yield sighting(__name__, call, text, fix=Fix(f"{name} = {written(call.node)[:60]}"))
