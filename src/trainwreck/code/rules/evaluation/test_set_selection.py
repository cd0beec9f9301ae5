"""The best model is chosen on the test set.

What: the value that decides which weights are kept comes from a function or loop over the test data.
Why it matters: the test set takes part in the training: the reported figure is too good.
When it is fine: where the name is wrong and it is a validation set.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import written
from trainwreck.code.facts import (
    TEST,
    in_loop,
    later,
    names_in,
)
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.code.scopes import Scope
from trainwreck.core.evidence import Evidence

BAD = (
    """
import torch
def fit(model, train, evaluate, train_loader, test_loader, epochs):
    best = 0.0
    for epoch in range(epochs):
        train(model, train_loader)
        acc = evaluate(model, test_loader)
        if acc > best:  # expect
            best = acc
            torch.save(model.state_dict(), "best.pt")
""",
    """
import copy
class Runner:
    def fit(self):
        best_acc = 0
        for epoch in range(self.epochs):
            self.train_one()
            test_acc = self.evaluate(self.test_loader)
            if test_acc > best_acc:  # expect
                best_acc, best_state = test_acc, copy.deepcopy(self.model.state_dict())
""",
)
GOOD = """
import torch
def fit(model, train, evaluate, train_loader, val_loader, test_loader, epochs):
    best = 0.0
    for epoch in range(epochs):
        train(model, train_loader)
        acc = evaluate(model, val_loader)
        if acc > best:
            best = acc
            torch.save(model.state_dict(), "best.pt")
    test_acc = evaluate(model, test_loader)
    if test_acc > 0.9:
        print("good")
"""
KEEPS = ("save", "state_dict", "deepcopy")


def find(project: Project) -> Iterator[Evidence]:
    for walked in project.walked.values():
        for scope in walked.scopes:
            for node in project.within(scope, ast.If):
                assert isinstance(node, ast.If)
                test = node.test
                if (
                    not isinstance(test, ast.Compare)
                    or len(test.ops) != 1
                    or not isinstance(test.ops[0], ast.Lt | ast.LtE | ast.Gt | ast.GtE)
                ):
                    continue
                sides = [test.left, test.comparators[0]]
                value = next((s for s in sides if "best" not in written(s)), None)
                if (
                    value is None
                    or not any("best" in written(s) for s in sides)
                    or in_loop(project, node, scope) is None
                ):
                    continue
                body = " ".join(written(s) for s in node.body)
                if any(w in body for w in KEEPS) and (origin := _on_test(project, value, scope, node)) is not None:
                    text = f"{written(value)} is measured on the test data, and decides here which weights are kept"
                    yield sighting(__name__, (node, scope), text, proof=[origin])


def _on_test(project: Project, value: ast.expr, scope: Scope, place: ast.AST) -> tuple[str, int, str] | None:
    """The call that measures ``value`` on data named as test data."""
    if not isinstance(value, ast.Name):
        return None
    bindings = [b for b in project.lookup(value.id, scope) if b.kind == "assign" and not later(b.node, place)]
    last = max(bindings, key=lambda b: b.line, default=None)
    if last is None or not isinstance(last.value, ast.Call):
        return None
    args = [*last.value.args, *(k.value for k in last.value.keywords)]
    if any(names_in(a, TEST) for a in args if isinstance(a, ast.Name | ast.Attribute)):
        return scope.module.path, last.line, written(last.value)[:80]
    return None
