"""Oversampling before the split.

What: ``SMOTE().fit_resample(X, y)`` and afterwards ``train_test_split`` of the result.
Why it matters: synthetic rows made from test rows are in the training set: the score is far too good.
When it is fine: on the training part only, or in a pipeline of imblearn.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import last_name
from trainwreck.code.facts import (
    later,
)
from trainwreck.code.flow import back
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.core.evidence import Evidence

BAD = (
    """
from imblearn.over_sampling import SMOTE
from sklearn.model_selection import train_test_split
def load(X, y):
    X_res, y_res = SMOTE().fit_resample(X, y)  # expect
    return train_test_split(X_res, y_res)
""",
    """
from imblearn.over_sampling import RandomOverSampler
from sklearn.model_selection import cross_val_score
def run(model, X, y):
    sampler = RandomOverSampler(random_state=0)
    X, y = sampler.fit_resample(X, y)  # expect
    return cross_val_score(model, X, y)
""",
)
GOOD = """
from imblearn.over_sampling import SMOTE
from sklearn.model_selection import train_test_split
def load(X, y):
    X_train, X_test, y_train, y_test = train_test_split(X, y)
    X_train, y_train = SMOTE().fit_resample(X_train, y_train)
    return X_train, X_test
"""


def find(project: Project) -> Iterator[Evidence]:
    told: set[int] = set()
    for split in project.calls("train_test_split", "cross_val_score", "cross_validate"):
        for value in split.node.args[:3]:
            for step in back(project, value, split.scope):
                node = step.node
                if not isinstance(node, ast.Call) or last_name(node.func) not in (
                    "fit_resample",
                    "fit_sample",
                    "train_test_split",
                ):
                    continue
                if last_name(node.func) == "train_test_split":
                    break
                if id(node) not in told and not (step.scope is split.scope and later(node, split.node)):
                    told.add(id(node))
                    yield sighting(
                        __name__,
                        (node, step.scope),
                        "rows are made here from rows that the later split puts aside",
                        proof=[split],
                    )
