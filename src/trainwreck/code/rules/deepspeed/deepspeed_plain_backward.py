"""Backward or step past the engine of DeepSpeed.

What: ``loss.backward()`` or ``optimizer.step()`` in a function whose model comes from ``deepspeed.initialize``.
Why it matters: the engine scales the loss, counts micro-batches and reduces gradients in its own ``backward`` and
``step``: past it gradients are neither reduced nor unscaled, and accumulation never ends.
When it is fine: for a model that the engine does not hold.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import Call, written
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.core.evidence import Evidence
from trainwreck.core.fix import Fix

BAD = (
    """
import deepspeed
def main(model, loader, config):
    engine, optimizer, _, _ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config=config)
    for batch in loader:
        loss = engine(batch).mean()
        loss.backward()  # expect
        engine.step()
""",
    """
import deepspeed
def main(model, loader, config):
    engine, optimizer, *rest = deepspeed.initialize(model=model, config=config)
    for batch in loader:
        engine.backward(engine(batch).mean())
        optimizer.step()  # expect
""",
)
GOOD = """
import deepspeed
def main(model, critic, critic_opt, loader, config):
    engine, optimizer, _, schedule = deepspeed.initialize(model=model, config=config)
    for batch in loader:
        engine.backward(engine(batch).mean())
        engine.step()
def other(critic, opt, loader):
    for batch in loader:
        critic(batch).mean().backward()
        opt.step()
"""


def engines(project: Project) -> list[tuple[Call, list[str]]]:
    """(call of ``deepspeed.initialize``, names that its results get)."""
    found = []
    for call in project.calls("initialize"):
        if not project.from_package(call, "deepspeed"):
            continue
        statement = project.statement(call.node, call.scope)
        target = statement.targets[0] if isinstance(statement, ast.Assign) else None
        items = target.elts if isinstance(target, ast.Tuple | ast.List) else [target] if target is not None else []
        found.append((call, [written(i) for i in items]))
    return found


def find(project: Project) -> Iterator[Evidence]:
    for made, names in engines(project):
        engine = names[0] if names else ""
        uses = [c for c in project.calls("backward") if c.scope is made.scope and c.receiver is not None]
        for call in uses:
            if engine and written(call.receiver) != engine and _from_engine(project, call, engine):
                text = f"backward past {engine}: gradients are neither scaled nor reduced"
                fix = Fix(f"{engine}.backward({written(call.receiver)})")
                yield sighting(__name__, call, text, proof=[made], fix=fix)
        for call in project.calls("step"):
            if call.scope is made.scope and len(names) > 1 and written(call.receiver) == names[1] != "_":
                text = f"step of the optimizer past {engine}: micro-batches are not counted, gradients not cleared"
                yield sighting(__name__, call, text, proof=[made], fix=Fix(f"{engine}.step()"))


def _from_engine(project: Project, call: Call, engine: str) -> bool:
    """True if the loss comes from a call of the engine, as far as one step back shows."""
    node = call.receiver
    texts = [written(node)]
    if isinstance(node, ast.Name):
        texts += [written(b.value) for b in project.lookup(node.id, call.scope) if b.value is not None]
        for binding in project.lookup(node.id, call.scope):
            for inner in ast.walk(binding.value) if binding.value is not None else ():
                if isinstance(inner, ast.Name) and inner.id != node.id:
                    texts += [written(b.value) for b in project.lookup(inner.id, call.scope) if b.value is not None]
    return any(t.startswith(engine + "(") or f" {engine}(" in t or f"({engine}(" in t for t in texts)
