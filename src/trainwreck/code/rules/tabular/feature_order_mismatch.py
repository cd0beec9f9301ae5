"""Columns stand in another order in use than in training.

What: the features of ``fit`` are picked by a list of column names and turned into an array, and those of ``predict``
by another list with the same names in another order.
Why it matters: the model reads each feature from the column of another one; with arrays nothing says so.
When it is fine: with one list of columns for both, or data frames (scikit-learn compares their names).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import Call, last_name, written
from trainwreck.code.facts import made
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.columns import another_order
from trainwreck.code.rule import sighting
from trainwreck.code.scopes import Scope
from trainwreck.code.values import values
from trainwreck.core.evidence import Evidence

BAD = (
    """
import pandas as pd
from sklearn.ensemble import RandomForestRegressor
train, new = pd.read_csv("a.csv"), pd.read_csv("b.csv")
model = RandomForestRegressor()
model.fit(train[["age", "income", "rooms"]].values, train["price"])
print(model.predict(new[["income", "age", "rooms"]].values))  # expect
""",
    """
import pandas as pd
from xgboost import XGBClassifier
COLUMNS = ["a", "b", "c"]
ORDER = ["c", "b", "a"]
def main(train, test):
    clf = XGBClassifier()
    X = train[COLUMNS].to_numpy()
    clf.fit(X, train["y"])
    return clf.predict_proba(test[ORDER].to_numpy())  # expect
""",
    """
import numpy as np
from sklearn.svm import SVC
svc = SVC()
svc.fit(np.array(df[["x1", "x2"]]), df["y"])
svc.predict(np.asarray(other[["x2", "x1"]]))  # expect
""",
)
GOOD = """
from sklearn.svm import SVC
COLUMNS = ["a", "b"]
def main(train, test):
    one, two, three = SVC(), SVC(), SVC()
    one.fit(train[COLUMNS].values, train["y"])
    one.predict(test[COLUMNS].values)
    two.fit(train[["a", "b"]], train["y"])
    two.predict(test[["b", "a"]])
    three.fit(train[["a", "b"]].values, train["y"])
    three.predict(test[["a", "c"]].values)
"""
PREDICTS = ("predict", "predict_proba", "decision_function", "score")
ARRAYS = ("array", "asarray")


def find(project: Project) -> Iterator[Evidence]:
    yield from further(__name__, project, _written(project), another_order)


def _written(project: Project) -> Iterator[Evidence]:
    fits: dict[int, tuple[Call, tuple[str, ...]]] = {}
    for call in project.calls("fit"):
        if call.receiver is not None and call.node.args:
            columns = _columns(project, call.node.args[0], call.scope)
            makers = made(project, call.receiver, call.scope)
            if columns is not None and len(makers) == 1:
                fits[id(makers[0].node)] = (call, columns)
    for call in project.calls(*PREDICTS) if fits else ():
        if call.receiver is None or not call.node.args:
            continue
        columns = _columns(project, call.node.args[0], call.scope)
        makers = made(project, call.receiver, call.scope)
        known = fits.get(id(makers[0].node)) if len(makers) == 1 else None
        if columns is None or known is None or columns == known[1] or sorted(columns) != sorted(known[1]):
            continue
        text = f"the columns are {', '.join(columns)} here, and were {', '.join(known[1])} in training"
        yield sighting(__name__, call, text, proof=[known[0]])


def _columns(project: Project, node: ast.expr, scope: Scope, depth: int = 0) -> tuple[str, ...] | None:
    """The names of ``frame[[...]]`` that became an array; None for a frame, or where they are not known."""
    if isinstance(node, ast.Name) and depth < 4:
        found = [b for b in project.lookup(node.id, scope) if b.kind == "assign"]
        if len(found) != 1 or found[0].value is None or found[0].path:
            return None
        return _columns(project, found[0].value, found[0].scope, depth + 1)
    if isinstance(node, ast.Attribute) and node.attr == "values":
        return _picked(project, node.value, scope)
    if isinstance(node, ast.Call) and last_name(node.func) == "to_numpy" and isinstance(node.func, ast.Attribute):
        return _picked(project, node.func.value, scope)
    if isinstance(node, ast.Call) and last_name(node.func) in ARRAYS and node.args:
        return _picked(project, node.args[0], scope)
    return None


def _picked(project: Project, node: ast.expr, scope: Scope) -> tuple[str, ...] | None:
    if not isinstance(node, ast.Subscript) or not written(node.slice):
        return None
    found = [k.value for k in values(project, node.slice, scope)]
    if len(found) != 1 or not isinstance(found[0], tuple) or not all(isinstance(n, str) for n in found[0]):
        return None
    return found[0]
