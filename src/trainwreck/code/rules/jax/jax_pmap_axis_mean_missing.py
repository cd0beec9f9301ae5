"""Each device trains on its own gradients.

What: a function under ``jax.pmap`` takes gradients and updates parameters without ``pmean`` or ``psum``.
Why it matters: the replicas drift apart; what is evaluated and saved is the first of them.
When it is fine: for ensembles, where each device holds another model.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.facts import reach, text_of
from trainwreck.code.jax import traced
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.core.evidence import Evidence
from trainwreck.core.fix import Fix

WORDS = ("jax", "flax", "optax")
BAD = (
    """
import jax
import optax
def step(state, batch):
    grads = jax.grad(loss)(state.params, batch)
    return state.apply_gradients(grads=grads)  # expect
train = jax.pmap(step, axis_name="batch")
""",
)
GOOD = """
import jax
def step(state, batch):
    grads = jax.grad(loss)(state.params, batch)
    grads = jax.lax.pmean(grads, "batch")
    return state.apply_gradients(grads=grads)
train = jax.pmap(step, axis_name="batch")
def average(tree):
    return jax.lax.pmean(tree, "batch")
def other(state, batch):
    grads = average(jax.grad(loss)(state.params, batch))
    return state.apply_gradients(grads=grads)
more = jax.pmap(other, axis_name="batch")
@jax.jit
def one(state, batch):
    return state.apply_gradients(grads=jax.grad(loss)(state.params, batch))
"""
COLLECTIVES = frozenset(["pmean", "psum", "all_gather", "psum_scatter", "all_reduce"])


def find(project: Project) -> Iterator[Evidence]:
    for item in traced(project):
        if item.transform != "pmap":
            continue
        calls = list(reach(project, item.scope.node, item.scope))
        names = {c.name for c in calls}
        updates = [c for c in calls if c.name in ("apply_gradients", "apply_updates")]
        takes = names & {"grad", "value_and_grad", "grad_fn"} or "grad" in text_of(project, item.scope)
        if updates and takes and not names & COLLECTIVES:
            text = "the gradients are not averaged over the devices: the replicas drift apart"
            fix = Fix('grads = jax.lax.pmean(grads, axis_name="batch")')
            yield sighting(__name__, updates[0], text, fix=fix)
