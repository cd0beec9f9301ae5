"""Batches that fail are skipped.

What: a broad except inside the loop over batches goes on with the next batch.
Why it matters: what fails is rarely random: whole kinds of samples go missing, and the common cause stays hidden.
When it is fine: for one expected error that is counted and reported.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.facts import (
    handlers,
    in_loop,
    working,
)
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.core.evidence import Evidence

BAD = (
    """
def train(model, loader, optimizer, criterion):
    for x, y in loader:
        try:
            optimizer.zero_grad()
            criterion(model(x), y).backward()
            optimizer.step()
        except Exception as e:  # expect
            print("skipping", e)
            continue
""",
    """
def train(model, loader, optimizer):
    for i, batch in enumerate(loader):
        try:
            loss = model(batch)
            loss.backward()
        except RuntimeError:  # expect
            continue
        optimizer.step()
        optimizer.zero_grad()
""",
)
GOOD = """
import torch
def train(model, loader, optimizer, criterion):
    skipped = 0
    for x, y in loader:
        try:
            criterion(model(x), y).backward()
        except torch.cuda.OutOfMemoryError:
            skipped += 1
            if skipped > 3:
                raise
            continue
        optimizer.step()
        try:
            save(model)
        except Exception:
            continue
"""
WORK = frozenset(["backward", "step", "manual_backward"])


def find(project: Project) -> Iterator[Evidence]:
    for tried, handler, scope in handlers(project, also=("RuntimeError", "ValueError", "IndexError")):
        loop = in_loop(project, tried, scope)
        if not isinstance(loop, ast.For) or any(isinstance(n, ast.AugAssign) for n in ast.walk(handler)):
            continue
        whole = len(loop.body) == 1 and loop.body[0] is tried
        if not whole and not any(isinstance(n, ast.Continue) for n in ast.walk(handler)):
            continue
        if working(tried, WORK) is not None or _left_out(loop, tried):
            yield sighting(__name__, (handler, scope), "a batch that fails is left out, whatever the error is")


def _left_out(loop: ast.For, tried: ast.Try) -> bool:
    """True if what the ``try`` computes goes backward later in the same turn."""
    if tried not in loop.body or not any(isinstance(n, ast.Assign) for n in tried.body):
        return False
    made = {n.id for s in tried.body for n in ast.walk(s) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    after = loop.body[loop.body.index(tried) + 1 :]
    calls = [n for s in after for n in ast.walk(s) if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute)]
    run = [c for c in calls if isinstance(c.func, ast.Attribute) and c.func.attr in WORK]
    return bool(run) and any(isinstance(n, ast.Name) and n.id in made for s in after for n in ast.walk(s))
