"""The updates of the optimizer never reach the parameters.

What: ``updates, state = tx.update(...)`` and ``updates`` is not used again, or ``optax.apply_updates`` as a
statement of its own.
Why it matters: parameters are values: nothing changes, and the loss stays where it is.
When it is fine: with ``apply_gradients`` of a TrainState, or where the updates are given back.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import Call, written
from trainwreck.code.facts import made
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.core.evidence import Evidence
from trainwreck.core.fix import Fix

WORDS = ("jax", "flax", "optax")
BAD = (
    """
import jax
import optax
tx = optax.adam(1e-3)
def step(params, state, batch):
    grads = jax.grad(loss)(params, batch)
    updates, state = tx.update(grads, state)  # expect
    return params, state
""",
    """
import optax
optimizer = optax.sgd(0.1)
for batch in loader:
    updates, state = optimizer.update(grads, state, params)
    optax.apply_updates(params, updates)  # expect
""",
)
GOOD = """
import optax
tx = optax.adam(1e-3)
def step(params, state, grads):
    updates, state = tx.update(grads, state, params)
    params = optax.apply_updates(params, updates)
    return params, state
def inner(grads, state):
    updates, state = tx.update(grads, state)
    return updates, state
config = {}
config.update({"a": 1})
"""


def updates_of(project: Project) -> Iterator[tuple[Call, list[ast.expr]]]:
    """(call, targets) of ``tx.update(grads, state)`` of an optimizer of optax that is unpacked into two."""
    for call in project.calls("update"):
        if call.receiver is None or len(call.node.args) < 2 or "optax" not in call.scope.module.text:
            continue
        makers = made(project, call.receiver, call.scope)
        ours = any(project.called(m).startswith("optax.") for m in makers)
        statement = project.statement(call.node, call.scope)
        if not isinstance(statement, ast.Assign) or statement.value is not call.node:
            continue
        target = statement.targets[0]
        if isinstance(target, ast.Tuple) and len(target.elts) == 2 and (ours or _named(call.receiver)):
            yield call, target.elts


def _named(node: ast.expr) -> bool:
    return written(node).rsplit(".", 1)[-1].lower() in ("tx", "optimizer", "opt", "optim")


def find(project: Project) -> Iterator[Evidence]:
    for call in project.calls("apply_updates"):
        dropped = isinstance(project.parent(call.node, call.scope), ast.Expr)
        if dropped and project.called(call) == "optax.apply_updates":
            text = "the new parameters are thrown away"
            yield sighting(__name__, call, text, fix=Fix("params = optax.apply_updates(params, updates)"))
    for call, (updates, _) in updates_of(project):
        if not isinstance(updates, ast.Name) or updates.id == "_":
            continue
        used = any(
            isinstance(n, ast.Name) and n.id == updates.id and isinstance(n.ctx, ast.Load)
            for n in ast.walk(call.scope.node)
        )
        if not used:
            text = f"{updates.id} is never applied: the parameters stay as they are"
            yield sighting(__name__, call, text, fix=Fix(f"params = optax.apply_updates(params, {updates.id})"))
