"""Running statistics of flax are never updated.

What: ``use_running_average=True`` is written out for ``nn.BatchNorm``, or a module with it is applied for training
without ``mutable=["batch_stats"]``.
Why it matters: the layer normalises by its initial mean 0 and variance 1, or flax refuses to write.
When it is fine: where the flag follows training and evaluation.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.code.values import is_true
from trainwreck.core.evidence import Evidence
from trainwreck.core.fix import Fix

WORDS = ("jax", "flax", "optax")
BAD = (
    """
import flax.linen as nn
class Net(nn.Module):
    @nn.compact
    def __call__(self, x, train):
        return nn.BatchNorm(use_running_average=True)(x)  # expect
""",
    """
import flax.linen as nn
class Net(nn.Module):
    @nn.compact
    def __call__(self, x, train):
        return nn.BatchNorm(use_running_average=not train)(x)
def loss(params, stats, x):
    out = Net().apply({"params": params, "batch_stats": stats}, x, train=True)  # expect
    return out.mean()
""",
)
GOOD = """
import flax.linen as nn
class Net(nn.Module):
    @nn.compact
    def __call__(self, x, train):
        return nn.BatchNorm(use_running_average=not train)(x)
def loss(params, stats, x):
    out, new = Net().apply({"params": params, "batch_stats": stats}, x, train=True, mutable=["batch_stats"])
    return out.mean(), new
def evaluate(params, stats, x):
    return Net().apply({"params": params, "batch_stats": stats}, x, train=False)
"""


def find(project: Project) -> Iterator[Evidence]:
    norms = [c for c in project.calls("BatchNorm") if project.called(c).startswith("flax.linen.")]
    for call in norms:
        if is_true(call.argument("use_running_average")):
            text = "the layer always normalises by its running statistics, in training too"
            yield sighting(__name__, call, text, fix=Fix("use_running_average=not train"))
    for call in project.calls("apply") if norms else ():
        trains = is_true(call.argument("train")) or is_true(call.argument("training"))
        if trains and call.argument("mutable") is None and not call.open_ended:
            text = "applied for training without mutable: the running statistics can't be written"
            yield sighting(__name__, call, text, proof=norms[:1], fix=Fix('mutable=["batch_stats"]'))
