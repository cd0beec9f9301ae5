"""A broad except around training code that goes on.

What: ``except Exception: pass`` (or a bare except, or only a print) around a forward, backward, step or load of
weights.
Why it matters: the failure becomes a wrong result: untrained weights, missing batches, stale values.
When it is fine: where the error is raised again, logged with its traceback and ends the run, or is of one expected
kind.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.facts import (
    handlers,
    in_loop,
    working,
)
from trainwreck.code.order import (
    Loop,
)
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.core.evidence import Evidence

BAD = (
    """
def train(model, loader, optimizer, criterion):
    for x, y in loader:
        optimizer.zero_grad()
        try:
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
        except Exception:  # expect
            pass
""",
    """
import torch
def resume(model, path):
    try:
        model.load_state_dict(torch.load(path))
    except:  # expect
        print("starting fresh")
""",
)
GOOD = """
import torch
def train(model, loader, optimizer, criterion, logger):
    for x, y in loader:
        try:
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
        except Exception:
            logger.exception("step failed")
            raise
    try:
        model.load_state_dict(torch.load("a.pt"))
    except FileNotFoundError:
        print("starting fresh")
    try:
        import wandb
        wandb.log({"a": 1})
    except Exception:
        pass
    try:
        train(model, loader, optimizer, criterion, logger)
    except KeyboardInterrupt:
        pass
"""
WORK = frozenset(["backward", "step", "zero_grad", "load_state_dict", "manual_backward"])


def find(project: Project) -> Iterator[Evidence]:
    for tried, handler, scope in handlers(project):
        loop = in_loop(project, tried, scope)
        if any(isinstance(n, ast.Continue) for n in ast.walk(handler)) or (
            loop is not None and tried in loop.body and loop.body[-1] is tried and _skips(loop)
        ):
            continue
        found = working(tried, WORK)
        if found is not None:
            text = f"any error of {found} is swallowed here, and the program goes on"
            yield sighting(__name__, (handler, scope), text, proof=[(scope.module.path, tried.lineno, "try:")])


def _skips(loop: Loop) -> bool:
    """True for a loop whose whole body is the try: a failed pass is skipped, which is another fault."""
    return len(loop.body) == 1
