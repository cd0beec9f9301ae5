"""A scaler, imputer or selector is fitted on all data before the split.

What: ``fit_transform(X)`` of a learned transformation, and afterwards ``train_test_split`` of the result.
Why it matters: statistics of the test rows are in the training features: the test score is too good.
When it is fine: for transformations that learn nothing (hashing, log), or inside a pipeline.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.calls import Call, written
from trainwreck.code.facts import (
    later,
    made,
)
from trainwreck.code.flow import back
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.core.evidence import Evidence

BAD = (
    """
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
def load(X, y):
    X = StandardScaler().fit_transform(X)  # expect
    return train_test_split(X, y, test_size=0.2)
""",
    """
from sklearn.feature_selection import SelectKBest
from sklearn.model_selection import train_test_split
import pandas as pd
df = pd.read_csv("a.csv")
features, target = df.drop(columns="y"), df["y"]
selector = SelectKBest(k=10)
chosen = selector.fit_transform(features, target)  # expect
X_train, X_test, y_train, y_test = train_test_split(chosen, target)
""",
    """
from sklearn.impute import SimpleImputer
from sklearn.model_selection import cross_val_score
def run(model, X, y):
    imputer = SimpleImputer()
    imputer.fit(X)  # expect
    filled = imputer.transform(X)
    return cross_val_score(model, filled, y)
""",
)
GOOD = """
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import LabelEncoder, StandardScaler
def load(X, y, model, cross_val_score):
    y = LabelEncoder().fit_transform(y)
    X_train, X_test, y_train, y_test = train_test_split(X, y)
    scaler = StandardScaler()
    X_train = scaler.fit_transform(X_train)
    X_test = scaler.transform(X_test)
    pipe = make_pipeline(StandardScaler(), model)
    a, b = train_test_split(X_train)
    return pipe.fit(X_train, y_train)
"""
LEARNED = re.compile(
    r"Scaler$|Imputer$|^SelectKBest$|^SelectFromModel$|^SelectPercentile$|^RFE|^PCA$|^TruncatedSVD$|^PowerTransformer$"
    r"|^QuantileTransformer$|^TargetEncoder$|^KBinsDiscretizer$|^TfidfVectorizer$|^Normalizer$|^VarianceThreshold$"
)
SPLITS = ("train_test_split", "cross_val_score", "cross_validate", "cross_val_predict")


def find(project: Project) -> Iterator[Evidence]:
    told: set[int] = set()
    for split in project.calls(*SPLITS):
        if not project.called(split).startswith("sklearn"):
            continue
        args = split.node.args[1:2] if split.name.startswith("cross") else split.node.args
        for value in args:
            for step in back(project, value, split.scope):
                if not isinstance(step.node, ast.Call) or step.depth > 6:
                    continue
                call = Call(step.node, step.scope)
                if call.name == "train_test_split":
                    break
                fit = _fit(project, call)
                if (
                    fit is not None
                    and id(fit.node) not in told
                    and not (fit.scope is split.scope and later(fit.node, split.node))
                ):
                    told.add(id(fit.node))
                    yield sighting(
                        __name__, fit, "this is fitted on all rows, those of the later test set included", proof=[split]
                    )


def _fit(project: Project, call: Call) -> Call | None:
    """The call that fits the transformation which made the value."""
    if call.name not in ("fit_transform", "transform") or call.receiver is None:
        return None
    learned = [
        c
        for c in made(project, call.receiver, call.scope)
        if LEARNED.search(c.name) and project.called(c).startswith("sklearn")
    ]
    if not learned:
        return None
    if call.name == "fit_transform":
        return call
    data = call.argument("X", 0)
    name = written(call.receiver)
    for other in project.calls("fit"):
        if (
            other.receiver is not None
            and written(other.receiver) == name
            and other.scope is call.scope
            and other.node.args
            and data is not None
            and written(other.node.args[0]) == written(data)
        ):
            return other
    return None
