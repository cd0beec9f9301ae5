"""Early stopping watches the training loss.

What: the best value that decides about saving or stopping is compared with a figure of the training data, though
validation data exist.
Why it matters: the training loss goes on falling while the model overfits: it never stops, and the last model
counts as best.
When it is fine: without validation data.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.calls import written
from trainwreck.code.facts import (
    names_in,
    only,
    option,
)
from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.watching import chosen_on_the_trained, chosen_on_training
from trainwreck.code.rule import sighting
from trainwreck.code.unused_split import chosen_otherwise
from trainwreck.core.evidence import Evidence

BAD = (
    """
import torch
def fit(model, train_epoch, validate, epochs):
    best, wait = float("inf"), 0
    for epoch in range(epochs):
        train_loss = train_epoch(model)
        val_loss = validate(model)
        if train_loss < best:  # expect
            best, wait = train_loss, 0
            torch.save(model.state_dict(), "best.pt")
        else:
            wait += 1
            if wait > 5:
                break
""",
    """
from lightning.pytorch.callbacks import EarlyStopping
stop = EarlyStopping(monitor="train_loss", patience=3)  # expect
class M:
    def validation_step(self, batch, i):
        self.log("val_loss", self(batch))
""",
)
GOOD = """
import torch
def fit(model, train_epoch, validate, epochs):
    best = float("inf")
    for epoch in range(epochs):
        train_loss = train_epoch(model)
        val_loss = validate(model)
        if val_loss < best:
            best = val_loss
        if train_loss < 1e-3:
            break
"""
FIGURE = pattern(r"(^|_)(tr|train|training)_?(loss|acc|accuracy|error|metric|score)", re.IGNORECASE)
VALID = pattern(
    r"(^|_|\b)(val|valid|validation|dev|eval)_?(loss|acc|accuracy|error|metric|score|loader|dl|set|ds)", re.IGNORECASE
)


def find(project: Project) -> Iterator[Evidence]:
    yield from further(__name__, project, _seen(project), chosen_on_training, chosen_on_the_trained)


def _seen(project: Project) -> Iterator[Evidence]:
    for place in project.scopes:
        for chosen in chosen_otherwise(project, place):
            if not chosen.last:
                yield sighting(__name__, (chosen.node, chosen.scope), chosen.text)
    for walked in project.walked.values():
        for scope in walked.scopes:
            for node in project.within(scope, ast.If):
                assert isinstance(node, ast.If)
                if isinstance(node.test, ast.Compare) and _decides(node) and names_in(scope.node, VALID):
                    yield sighting(
                        __name__,
                        (node, scope),
                        f"{written(node.test)} chooses by the training data; validation data are there",
                    )
    for call in project.calls("EarlyStopping"):
        monitor = only(project, option(project, call, "monitor", 0))
        if isinstance(monitor, str) and FIGURE.search(monitor) and VALID.search(call.scope.module.text):
            yield sighting(__name__, call, f"{monitor} is a figure of the training data")


def _decides(node: ast.If) -> bool:
    """``if train_loss < best: ...`` that keeps the value and saves, copies or resets its patience."""
    assert isinstance(node.test, ast.Compare)
    sides = [node.test.left, *node.test.comparators]
    text = [written(s) for s in sides]
    if len(text) != 2 or not any("best" in t for t in text) or not any(names_in(s, FIGURE) for s in sides):
        return False
    if not isinstance(node.test.ops[0], ast.Lt | ast.LtE | ast.Gt | ast.GtE) or any(names_in(s, VALID) for s in sides):
        return False
    body = " ".join(written(s) for s in node.body)
    return any(w in body for w in ("save", "state_dict", "deepcopy", "wait", "patience", "counter", "no_improve"))
