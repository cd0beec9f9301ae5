"""Missing values become a number that the model takes as real.

What: ``fillna(-999)`` (or -1 and the like), and a linear model, a network or a scaler learns from the result; or zero
where all that is measured lies far from zero.
Why it matters: the sentinel dominates mean and variance, and a linear model multiplies it by a weight.
When it is fine: for trees, which can split it off.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import Call, written
from trainwreck.code.facts import (
    only,
    option,
    trains,
)
from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.gaps import filled_with_zero
from trainwreck.code.rule import sighting
from trainwreck.core.evidence import Evidence

BAD = (
    """
import pandas as pd
from sklearn.linear_model import LogisticRegression
df = pd.read_csv("a.csv").fillna(-999)  # expect
model = LogisticRegression().fit(df[["a"]], df["y"])
""",
    """
from sklearn.preprocessing import StandardScaler
def load(frame):
    frame = frame.fillna(value=-9999)  # expect
    return StandardScaler().fit_transform(frame)
""",
)
GOOD = """
from sklearn.ensemble import RandomForestClassifier
def load(frame):
    frame = frame.fillna(-999)
    frame["b"] = frame["b"].fillna(frame["b"].median())
    return RandomForestClassifier().fit(frame, frame["y"])
"""
LINEAR_MODELS = (
    "LogisticRegression",
    "LinearRegression",
    "Ridge",
    "Lasso",
    "SVC",
    "SVR",
    "MLPClassifier",
    "MLPRegressor",
    "KNeighborsClassifier",
    "StandardScaler",
    "MinMaxScaler",
    "PCA",
    "SGDClassifier",
    "LinearSVC",
    "ElasticNet",
)


TREES = pattern(r"XGB|LGBM|lightgbm|CatBoost|Forest|GradientBoosting|DecisionTree|ExtraTrees")


def find(project: Project) -> Iterator[Evidence]:
    yield from further(__name__, project, _written(project), filled_with_zero)


def _written(project: Project) -> Iterator[Evidence]:
    for call, number in _filled(project):
        users = [c for c in project.calls(*LINEAR_MODELS) if c.scope.module is call.scope.module]
        if users:
            yield sighting(__name__, call, f"{number:g} is a real number to {users[0].name}", proof=users[:1])
            continue
        layers = [c for c in project.calls("Linear") if c.scope.module is call.scope.module]
        text = call.scope.module.text
        if layers and trains(project) and not TREES.search(text) and not _compared(project, number):
            yield sighting(__name__, call, f"{number:g} is a real number to the network", proof=layers[:1])


def _filled(project: Project) -> Iterator[tuple[Call, float]]:
    """Calls that put a number far below zero where values are missing."""
    for call in project.calls("fillna", "nan_to_num", "where"):
        at = option(project, call, "value", 0) if call.name == "fillna" else option(project, call, "nan", 2)
        if call.name == "where":
            test = call.argument("condition", 0)
            at = option(project, call, "x", 1)
            if test is None or not any(w in written(test) for w in ("isnan(", "isna(", "isnull(")):
                continue
        number = only(project, at)
        if isinstance(number, int | float) and not isinstance(number, bool) and MASKS < number <= SENTINEL:
            yield call, number


SENTINEL = -99
"""Numbers from here on down are no values of their own (-1 may be one)."""


MASKS = -1e6
"""Numbers below are put before a softmax, so that nothing is seen there."""


def _compared(project: Project, number: float) -> bool:
    """True where the program asks for the number itself: it knows what was missing."""
    for scope in project.scopes:
        for node in project.within(scope, ast.Compare):
            for n in ast.walk(node):
                if isinstance(n, ast.Constant) and isinstance(n.value, int | float) and abs(n.value) == abs(number):
                    return True
    return False
