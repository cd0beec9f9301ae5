"""A row id is used as a feature.

What: a literal list of feature columns holds ``id``, ``index`` or a customer number, and the model is fitted on it.
Why it matters: the id encodes the order of collection: it helps on the training set and misleads elsewhere.
When it is fine: never as a number.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.calls import last_name, written
from trainwreck.code.facts import trains
from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.code.scopes import Scope
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
    yield from _listed(project)
    yield from _all_but(project)


def _all_but(project: Project) -> Iterator[Evidence]:
    """A table that is written out with the number of each row as a column, all columns of which but named ones are the
    features: the number is never named again."""
    for call in project.calls("DataFrame"):
        table = call.argument("data", 0)
        if not isinstance(table, ast.Dict):
            continue
        for key, value in zip(table.keys, table.values, strict=True):
            named = isinstance(key, ast.Constant) and isinstance(key.value, str) and IDS.match(key.value)
            counted = isinstance(value, ast.Call) and last_name(value.func) in ("arange", "range") and named
            if not counted or not isinstance(key, ast.Constant) or _named_again(project, key):
                continue
            for place in _taken(project):
                text = f"all columns but the named ones are taken, also {key.value!s}: it numbers the rows"
                yield sighting(__name__, place, text, proof=[call])
                return


def _named_again(project: Project, key: ast.Constant) -> bool:
    nodes = (n for w in project.walked.values() for s in w.scopes for n in s.nodes)
    return any(isinstance(n, ast.Constant) and n.value == key.value and n is not key for n in nodes)


def _taken(project: Project) -> Iterator[tuple[ast.AST, Scope]]:
    """``[c for c in df.columns if c != target]`` and ``df.drop(columns=[target])``, where a network is trained."""
    if not trains(project):
        return
    for walked in project.walked.values():
        for scope in walked.scopes:
            for node in scope.nodes:
                if isinstance(node, ast.ListComp) and written(node.generators[0].iter).endswith(".columns"):
                    tests = [t for t in node.generators[0].ifs if isinstance(t, ast.Compare)]
                    if len(tests) == len(node.generators[0].ifs) == 1 and isinstance(
                        tests[0].ops[0], ast.NotEq | ast.NotIn
                    ):
                        yield node, scope
                named = isinstance(node, ast.Call) and last_name(node.func) == "drop"
                if named and isinstance(node, ast.Call) and any(k.arg == "columns" for k in node.keywords):
                    yield node, scope


def _listed(project: Project) -> Iterator[Evidence]:
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
