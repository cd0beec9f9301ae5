"""Missing values become a number that the model takes as real.

What: ``fillna(-999)`` (or -1 and the like), and a linear model, a network or a scaler learns from the result.
Why it matters: the sentinel dominates mean and variance, and a linear model multiplies it by a weight.
When it is fine: for trees, which can split it off.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.facts import (
    only,
    option,
)
from trainwreck.code.project import Project
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


def find(project: Project) -> Iterator[Evidence]:
    for call in project.calls("fillna"):
        value = only(project, option(project, call, "value", 0))
        if not isinstance(value, int | float) or value > -99:
            continue
        users = [c for c in project.calls(*LINEAR_MODELS) if c.scope.module is call.scope.module]
        if users:
            yield sighting(__name__, call, f"{value:g} is a real number to {users[0].name}", proof=users[:1])
