"""The optimizer lacks the parameters, or forgets its state.

What: ``update(grads, state)`` without the parameters for a transformation that decays weights, or the new state is
thrown away.
Why it matters: AdamW and the like raise without the parameters; without its state every step is the first one.
When it is fine: for Adam and SGD without decay the parameters are not needed.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.facts import made
from trainwreck.code.order import loops
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.code.rules.jax.optax_updates_not_applied import updates_of
from trainwreck.core.evidence import Evidence
from trainwreck.core.fix import Fix

WORDS = ("jax", "flax", "optax")
BAD = (
    """
import optax
tx = optax.adamw(1e-3, weight_decay=0.1)
def step(params, state, grads):
    updates, state = tx.update(grads, state)  # expect
    return optax.apply_updates(params, updates), state
""",
    """
import optax
tx = optax.chain(optax.clip_by_global_norm(1.0), optax.adam(1e-3))
for batch in loader:
    updates, _ = tx.update(grad(params, batch), state, params)  # expect
    params = optax.apply_updates(params, updates)
""",
)
GOOD = """
import optax
decay = optax.adamw(1e-3)
plain = optax.adam(1e-3)
def step(params, state, grads):
    updates, state = decay.update(grads, state, params)
    params = optax.apply_updates(params, updates)
    updates, state = plain.update(grads, state)
    return optax.apply_updates(params, updates), state
"""
DECAYING = frozenset(["adamw", "lamb", "lars", "lion", "add_decayed_weights", "nadamw", "adamaxw", "fromage"])
"""Transformations of optax that need the parameters (optax 0.2)."""
STATELESS = frozenset(["sgd", "scale", "clip", "clip_by_global_norm"])


def find(project: Project) -> Iterator[Evidence]:
    for call, (_, state) in updates_of(project):
        makers = made(project, call.receiver, call.scope) if call.receiver is not None else []
        parts = {n for m in makers for n in _parts(m.node)}
        if len(call.node.args) == 2 and not call.node.keywords and parts & DECAYING:
            text = f"{sorted(parts & DECAYING)[0]} needs the parameters for its decay: optax raises"
            yield sighting(__name__, call, text, proof=makers[:1], fix=Fix("tx.update(grads, state, params)"))
        forgets = isinstance(state, ast.Name) and state.id == "_"
        applied = any(c.scope is call.scope for c in project.calls("apply_updates"))
        if forgets and applied and parts - STATELESS and makers and loops(project, call.node, call.scope):
            text = "the new state of the optimizer is thrown away: every step is the first one"
            yield sighting(__name__, call, text, proof=makers[:1], fix=Fix("updates, state = tx.update(...)"))


def _parts(node: ast.Call) -> set[str]:
    return {
        n.func.attr if isinstance(n.func, ast.Attribute) else getattr(n.func, "id", "")
        for n in ast.walk(node)
        if isinstance(n, ast.Call)
    }
