"""Dropout of flax is always off, or always on.

What: ``deterministic=True`` or ``False`` is written out for ``nn.Dropout`` in a module of flax.
Why it matters: always off it does nothing; always on evaluation is random.
When it is fine: where the flag follows training and evaluation.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import Call
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.core.evidence import Evidence
from trainwreck.core.fix import Fix

WORDS = ("jax", "flax", "optax")
BAD = (
    """
import flax.linen as nn
class Net(nn.Module):
    @nn.compact
    def __call__(self, x, train):
        x = nn.Dense(8)(x)
        return nn.Dropout(0.1)(x, deterministic=True)  # expect
""",
    """
from flax import linen as nn
class Net(nn.Module):
    def setup(self):
        self.drop = nn.Dropout(rate=0.5, deterministic=False)  # expect
""",
)
GOOD = """
import flax.linen as nn
class Net(nn.Module):
    deterministic: bool = True
    @nn.compact
    def __call__(self, x, train):
        x = nn.Dropout(0.1, deterministic=not train)(x)
        x = nn.Dropout(0.1)(x, deterministic=self.deterministic)
        return nn.MultiHeadDotProductAttention(4)(x, deterministic=True)
"""


def find(project: Project) -> Iterator[Evidence]:
    for call in project.calls("Dropout"):
        inner = call.node.func
        applied = isinstance(inner, ast.Call)
        layer = Call(inner, call.scope) if isinstance(inner, ast.Call) else call
        if not project.called(layer).startswith("flax.linen."):
            continue
        flag = call.argument("deterministic", 1 if applied else None)
        if isinstance(flag, ast.Constant) and isinstance(flag.value, bool):
            text = "dropout is always off" if flag.value else "dropout is always on, in evaluation too"
            yield sighting(__name__, call, text, fix=Fix("deterministic=not train"))
