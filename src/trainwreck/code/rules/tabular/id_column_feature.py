"""A row id is used as a feature.

What: a literal list of feature columns holds ``id``, ``index`` or a customer number, and the model is fitted on it.
Why it matters: the id encodes the order of collection: it helps on the training set and misleads elsewhere.
When it is fine: never as a number.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.code.spine import ends
from trainwreck.code.values import literal
from trainwreck.core.evidence import Evidence

BAD = (
    """
import pandas as pd
from sklearn.linear_model import LogisticRegression
df = pd.read_csv("a.csv")
features = ["id", "age", "income"]  # expect
model = LogisticRegression().fit(df[features], df["y"])
""",
    """
COLS = ["customer_id", "age"]  # expect
def run(model, frame):
    X = frame[COLS]
    model.fit(X, frame["y"])
""",
)
GOOD = """
def run(model, frame, other):
    keys = ["id", "date"]
    frame = frame.merge(other, on=keys)
    features = ["age", "income"]
    model.fit(frame[features], frame["y"])
    return frame[keys]
"""
IDS = pattern(r"^(id|row_id|index|customer_?id|user_?id|patient_?id|passengerid|unnamed: 0|uuid)$", re.IGNORECASE)


def find(project: Project) -> Iterator[Evidence]:
    told: set[int] = set()
    for call in project.calls("fit"):
        value = call.argument("X", 0)
        if value is None:
            continue
        for node, scope in ends(project, value, call.scope, reshapes=False):
            if not isinstance(node, ast.Subscript) or isinstance(node.slice, ast.Constant):
                continue
            found = literal(project, node.slice, scope)
            if found is None or not isinstance(found[0], ast.List):
                continue
            named = [
                e
                for e in found[0].elts
                if isinstance(e, ast.Constant) and isinstance(e.value, str) and IDS.match(e.value)
            ]
            if named and id(found[0]) not in told:
                told.add(id(found[0]))
                assert isinstance(named[0], ast.Constant)
                yield sighting(
                    __name__, found, f"{named[0].value!s} identifies a row, it describes nothing", proof=[call]
                )
