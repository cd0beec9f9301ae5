"""The best model, threshold or setting is chosen on the test set.

What: the value that decides which weights, threshold or setting are kept is measured on the test data; or a search
over settings is fitted to it.
Why it matters: the test set takes part in the training: the reported figure is too good.
When it is fine: where the name is wrong and it is a validation set.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import Call, written
from trainwreck.code.facts import (
    TEST,
    TRAIN,
    in_loop,
    later,
    made,
    names,
    names_in,
)
from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.evaluation import chosen_on_test
from trainwreck.code.rule import sighting
from trainwreck.code.scopes import Scope
from trainwreck.code.unused_split import chosen_otherwise
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
    """
import numpy as np
from sklearn.metrics import f1_score
def tune(probs, y_test):
    best, best_t = 0, 0.5
    for t in np.linspace(0.1, 0.9, 17):
        score = f1_score(y_test, probs > t)
        if score > best:  # expect
            best, best_t = score, t
    return best_t
""",
    """
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC
search = GridSearchCV(SVC(), {"C": [1, 10]})
search.fit(X_test, y_test)  # expect
""",
    """
def pick(train, evaluate, train_loader, test_loader):
    return max([0.1, 0.01], key=lambda lr: evaluate(train(lr, train_loader), test_loader))  # expect
""",
    """
def main(rates, fit, error, test_set, train_set):
    tried = []
    for rate in rates:
        net = fit(rate, train_set)
        tried.append((error(net, test_set), rate))  # expect
    return min(tried)
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
def tune(probs, y_val, f1_score, search, X_train, y_train, X_test):
    best, best_t = 0, 0.5
    for t in (0.3, 0.5):
        score = f1_score(y_val, probs > t)
        if score > best:
            best, best_t = score, t
    search.fit(X_train, y_train)
    longest = max(X_test, key=lambda row: len(row))
    return best_t, longest
"""
KEEPS = ("save", "state_dict", "deepcopy")


EPOCHS = pattern(r"epoch|step|iter|batch|round")


REPEATS = pattern(r"seed|fold|run|trial|repeat|split")
"""Names of turns that try nothing else."""


def find(project: Project) -> Iterator[Evidence]:
    yield from further(__name__, project, _written(project), chosen_on_test)


def _written(project: Project) -> Iterator[Evidence]:
    yield from _searched(project)
    for place in project.scopes:
        for chosen in chosen_otherwise(project, place):
            if chosen.last:
                yield sighting(__name__, (chosen.node, chosen.scope), chosen.text)
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
                kept = any(w in body for w in KEEPS) or _keeps_setting(project, node, scope)
                if kept and (origin := _on_test(project, value, scope, node)) is not None:
                    text = f"{written(value)} is measured on the test data, and decides here what is kept"
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


def _keeps_setting(project: Project, node: ast.If, scope: Scope) -> bool:
    """True if what is kept is the value that the loop tries: a threshold, a rate, a model."""
    loop = in_loop(project, node, scope)
    if not isinstance(loop, ast.For) or names_in(loop.target, EPOCHS):
        return False
    tried = names(loop.target)
    return any(isinstance(s, ast.Assign) and names(s.value) & tried for s in node.body)


def _searched(project: Project) -> Iterator[Evidence]:
    """``GridSearchCV(...).fit(X_test)``, and ``max(settings, key=lambda s: evaluate(..., test_loader))``."""
    for call in project.calls("fit"):
        if call.receiver is None or not call.node.args or not names_in(call.node.args[0], TEST):
            continue
        makers = [c for c in made(project, call.receiver, call.scope) if c.name.endswith("SearchCV")]
        if makers and not names_in(call.node.args[0], TRAIN):
            yield sighting(
                __name__, call, "the search for the best setting is fitted to the test data", proof=makers[:1]
            )
    for call in project.calls("max", "min"):
        yield from _listed(project, call)
        key = call.argument("key")
        if not isinstance(key, ast.Lambda):
            continue
        for inner in ast.walk(key.body):
            if isinstance(inner, ast.Call) and any(
                names_in(a, TEST) for a in inner.args if isinstance(a, ast.Name | ast.Attribute)
            ):
                yield sighting(__name__, call, "the setting is chosen by its score on the test data")
                break
        else:
            yield from _searched_for(project, call)


def _listed(project: Project, call: Call) -> Iterator[Evidence]:
    """``results.append((score(net, test), net))`` for each setting, and then ``min(results)``."""
    results, key = (call.node.args[0] if len(call.node.args) == 1 else None), call.argument("key")
    part: object = 0
    if isinstance(key, ast.Lambda):
        cut = key.body.slice if isinstance(key.body, ast.Subscript) else None
        part = cut.value if isinstance(cut, ast.Constant) else None
    if not isinstance(results, ast.Name) or (key is not None and not isinstance(part, int | str)):
        return
    for added in project.calls("append"):
        loop = in_loop(project, added.node, added.scope)
        row = added.node.args[0] if added.node.args else None
        if added.scope is not call.scope or written(added.receiver) != results.id or loop is None:
            continue
        repeated = isinstance(loop, ast.For) and (names_in(loop.target, EPOCHS) or names_in(loop.target, REPEATS))
        if repeated or not isinstance(row, ast.Dict | ast.Tuple):
            continue  # the figures of several runs are told, and no setting is chosen
        if isinstance(row, ast.Dict):
            row = next((v for k, v in zip(row.keys, row.values, strict=True)
                        if isinstance(k, ast.Constant) and k.value == part), None)  # fmt: skip
        elif isinstance(row, ast.Tuple) and isinstance(part, int) and -len(row.elts) <= part < len(row.elts):
            row = row.elts[part]
        given = [*row.args, *(k.value for k in row.keywords)] if isinstance(row, ast.Call) else []
        named = [a for a in given if isinstance(a, ast.Name | ast.Attribute) and names_in(a, TEST)]
        told = [a for a in given if isinstance(a, ast.Constant) and isinstance(a.value, str) and TEST.search(a.value)]
        if (named or told) and not later(added.node, call.node):
            yield sighting(__name__, added, "the setting is chosen by its score on the test data", proof=[call])
            return


def _searched_for(project: Project, call: Call) -> Iterator[Evidence]:
    """A function of the program that chooses by the data it is given, and is given test data."""
    function = call.scope
    key = call.argument("key")
    body = key.body if isinstance(key, ast.Lambda) else call.node
    given = {n.id for n in ast.walk(body) if isinstance(n, ast.Name)} & set(function.params)
    if function.kind != "function" or not given:
        return
    for use in project.calls(function.name):
        if project.resolve(use.node.func, use.scope) is not function or use.scope is function:
            continue
        passed = [use.argument(p, n) for n, p in enumerate(function.positional) if p in given]
        words = [a for a in passed if a is not None]
        if words and all(names_in(a, TEST) and not names_in(a, TRAIN) for a in words):
            yield sighting(__name__, use, "the setting is chosen by its score on the test data", proof=[call])
