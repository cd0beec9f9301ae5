"""An array of JAX is written into.

What: ``x[i] = v`` (or ``+=``) where ``x`` is an array of ``jax.numpy``.
Why it matters: arrays are immutable: a TypeError.
When it is fine: for arrays of NumPy.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import written
from trainwreck.code.jax import is_array, uses_jax
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.core.evidence import Evidence
from trainwreck.core.fix import Fix

WORDS = ("jax", "flax", "optax")
BAD = (
    """
import jax.numpy as jnp
x = jnp.zeros((3, 3))
x[0] = 1.0  # expect
""",
    """
import jax
from jax import numpy as np
def fill(n):
    out = np.ones(n)
    for i in range(n):
        out[i] += i  # expect
    return out
""",
)
GOOD = """
import jax.numpy as jnp
import numpy as np
x = np.zeros((3, 3))
x[0] = 1.0
y = jnp.zeros((3, 3))
y = y.at[0].set(1.0)
rows = [jnp.zeros(3)]
rows[0] = jnp.ones(3)
table = {}
table["a"] = jnp.ones(3)
z = np.asarray(jnp.ones(3)).copy()
z[0] = 2
def write(a):
    a[0] = 1
write(x)
"""


def find(project: Project) -> Iterator[Evidence]:
    for scope in project.scopes:
        if not uses_jax(project, scope.module.path):
            continue
        for node in project.within(scope, ast.Assign, ast.AugAssign):
            target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
            match target:
                case ast.Subscript(value=ast.Name(id=name) as base, slice=index) if is_array(project, base, scope):
                    word = "set" if isinstance(node, ast.Assign) else "add"
                    fix = Fix(f"{name} = {name}.at[{written(index)}].{word}(...)")
                    text = f"{name} is an array of JAX and can't be written into"
                    yield sighting(__name__, (node, scope), text, fix=fix)
