"""Boosting stops by the training set.

What: early stopping of a boosted model, with ``eval_set`` holding only the data that it is fitted on.
Why it matters: the training error falls to the end: it never stops and overfits.
When it is fine: with a held-out set last in the list.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import Call, written
from trainwreck.code.facts import (
    made,
    option,
    text_of,
)
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.core.evidence import Evidence

BAD = (
    """
from xgboost import XGBClassifier
def run(X_train, y_train):
    model = XGBClassifier(n_estimators=1000, early_stopping_rounds=20)
    model.fit(X_train, y_train, eval_set=[(X_train, y_train)])  # expect
""",
    """
import lightgbm as lgb
def run(X, y):
    model = lgb.LGBMRegressor()
    model.fit(X, y, eval_set=[(X, y)], callbacks=[lgb.early_stopping(10)])  # expect
""",
    """
import xgboost as xgb
def run(params, X, y):
    dtrain = xgb.DMatrix(X, y)
    return xgb.train(params, dtrain, 500, evals=[(dtrain, "train")], early_stopping_rounds=10)  # expect
""",
)
GOOD = """
import xgboost as xgb
from xgboost import XGBClassifier
def run(X_train, y_train, X_val, y_val, params):
    model = XGBClassifier(early_stopping_rounds=20)
    model.fit(X_train, y_train, eval_set=[(X_train, y_train), (X_val, y_val)])
    plain = XGBClassifier()
    plain.fit(X_train, y_train, eval_set=[(X_train, y_train)])
    d, v = xgb.DMatrix(X_train), xgb.DMatrix(X_val)
    return xgb.train(params, d, evals=[(v, "val")], early_stopping_rounds=10)
"""


def find(project: Project) -> Iterator[Evidence]:
    for call in project.calls("fit", "train"):
        sets = (
            option(project, call, "eval_set") or option(project, call, "evals") or option(project, call, "valid_sets")
        )
        if sets is None or not isinstance(sets[0], ast.List | ast.Tuple) or not call.node.args:
            continue
        maker = made(project, call.receiver, call.scope) if call.receiver is not None else []
        stops = "early_stopping" in written(call.node) or any("early_stopping" in written(m.node) for m in maker)
        text = text_of(project, call.scope)
        known = any(
            w in project.called(call) or any(w in project.called(m) for m in maker)
            for w in ("xgb", "lightgbm", "catboost")
        )
        if not stops or not known or not text:
            continue
        fitted = [written(a) for a in call.node.args[:3]]
        items = [written(e.elts[0]) if isinstance(e, ast.Tuple) and e.elts else written(e) for e in sets[0].elts]
        if items and all(i in fitted for i in items):
            yield sighting(__name__, call, "early stopping watches only the data that the model is fitted on")
        elif len(items) > 1 and items[-1] in fitted and _by_last(project, call, maker):
            text = "of several sets XGBoost watches the last one, and that is what the model is fitted on"
            yield sighting(__name__, call, text)


def _by_last(project: Project, call: Call, maker: list[Call]) -> bool:
    """True for XGBoost, whose early stopping goes by the last set unless a callback is told another (its manual)."""
    named = any("xgb" in project.called(c) for c in (call, *maker))
    return named and not any("EarlyStopping" in written(c.node) for c in (call, *maker))
