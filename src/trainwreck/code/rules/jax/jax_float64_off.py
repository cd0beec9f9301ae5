"""64 bits are asked for and 32 come.

What: ``float64`` or ``int64`` for ``jax.numpy`` and no ``jax_enable_x64`` anywhere.
Why it matters: JAX truncates to 32 bits with a warning; sums and differences lose what was meant to be kept.
When it is fine: with ``jax.config.update("jax_enable_x64", True)`` or ``JAX_ENABLE_X64`` in the environment.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import Call, written
from trainwreck.code.huggingface import text_has
from trainwreck.code.jax import is_array
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.core.evidence import Evidence
from trainwreck.core.fix import Fix

WORDS = ("jax", "flax", "optax")
BAD = (
    """
import jax.numpy as jnp
x = jnp.zeros(3, dtype=jnp.float64)  # expect
""",
    """
import jax
import jax.numpy as jnp
import numpy as np
def main():
    x = jnp.ones(3)
    return x.astype("float64"), jnp.array([1, 2], np.int64)  # expect
""",
)
GOOD = (
    """
import jax
import jax.numpy as jnp
jax.config.update("jax_enable_x64", True)
x = jnp.zeros(3, dtype=jnp.float64)
""",
    """
import jax.numpy as jnp
import numpy as np
x = jnp.zeros(3, dtype=jnp.float32), np.zeros(3, dtype=np.float64), np.ones(3).astype("float64")
""",
)
WIDE = frozenset(
    [f"{m}.{t}" for m in ("jnp", "np", "numpy", "jax.numpy") for t in ("float64", "int64", "complex128")]
    + [f"'{t}'" for t in ("float64", "int64", "complex128")]
)


def find(project: Project) -> Iterator[Evidence]:
    if text_has(project, "enable_x64", "ENABLE_X64", "experimental.x64"):
        return
    for walked in project.walked.values():
        if "64" not in walked.top.module.text or "jax" not in walked.top.module.text:
            continue
        for node, scope in walked.calls:
            call = Call(node, scope)
            if not _wide(call):
                continue
            array = call.name == "astype" and call.receiver is not None and is_array(project, call.receiver, scope)
            if array or project.called(call).startswith("jax.numpy."):
                text = "JAX gives 32 bits here: jax_enable_x64 is never switched on"
                yield sighting(__name__, call, text, fix=Fix('jax.config.update("jax_enable_x64", True) at the start'))


def _wide(call: Call) -> bool:
    given: list[ast.expr] = [k.value for k in call.node.keywords if k.arg == "dtype"]
    given += call.node.args[:1] if call.name == "astype" else call.node.args[1:2]
    return any(written(g) in WIDE for g in given)
