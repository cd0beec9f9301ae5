"""A ranking metric is computed from hard labels.

What: ``roc_auc_score`` or ``average_precision_score`` gets the result of ``predict``, ``argmax``, ``round`` or a
threshold.
Why it matters: the curve has one point: the area is that of the accuracy at one threshold and far too low.
When it is fine: never for a ranking; pass scores or probabilities.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import Call, written
from trainwreck.code.facts import (
    made,
)
from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.ranked import ranked_labels
from trainwreck.code.rule import sighting
from trainwreck.code.scopes import Scope
from trainwreck.code.spine import ends
from trainwreck.core.evidence import Evidence

BAD = (
    """
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import roc_auc_score
def run(X_train, y_train, X_test, y_test):
    model = RandomForestClassifier().fit(X_train, y_train)
    pred = model.predict(X_test)
    return roc_auc_score(y_test, pred)  # expect
""",
    """
from sklearn import metrics
def run(probs, y):
    labels = (probs > 0.5).astype(int)
    return metrics.average_precision_score(y, labels)  # expect
""",
    """
from sklearn.metrics import roc_auc_score
def run(clf, X, y):
    return roc_auc_score(y_true=y, y_score=clf.predict(X))  # expect
""",
)
GOOD = """
from sklearn.ensemble import RandomForestRegressor
from sklearn.metrics import f1_score, roc_auc_score
def run(clf, booster, X, y, logits):
    a = roc_auc_score(y, clf.predict_proba(X)[:, 1]), f1_score(y, clf.predict(X))
    scores = logits[:, 1]
    reg = RandomForestRegressor().fit(X, y)
    return a, roc_auc_score(y, scores), roc_auc_score(y, booster.predict(X)), roc_auc_score(y, reg.predict(X))
"""
CLASSIFIER = pattern(r"Classifier|LogisticRegression|SVC|GaussianNB|LinearDiscriminant")


def find(project: Project) -> Iterator[Evidence]:
    yield from further(__name__, project, _of_library(project), ranked_labels)


def _of_library(project: Project) -> Iterator[Evidence]:
    for call in project.calls("roc_auc_score", "average_precision_score", "roc_curve", "precision_recall_curve"):
        value = call.argument("y_score", 1)
        if value is None or not project.called(call).startswith("sklearn"):
            continue
        found = ends(project, value, call.scope)
        hard = [e for e in found if _hard(project, *e)]
        if hard and len(hard) == len(found):
            text = f"{call.name} gets hard labels: it needs scores or probabilities"
            yield sighting(
                __name__, call, text, proof=[(hard[0][1].module.path, hard[0][0].lineno, written(hard[0][0])[:80])]
            )


def _hard(project: Project, node: ast.expr, scope: Scope) -> bool:
    if isinstance(node, ast.Compare):
        return True
    if not isinstance(node, ast.Call):
        return False
    call = Call(node, scope)
    if call.name in ("astype", "int", "long", "float") and call.receiver is not None:
        return any(_hard(project, n, s) for n, s in ends(project, call.receiver, scope))
    if call.name in ("argmax", "round"):
        return True
    if call.name != "predict" or call.receiver is None:
        return False
    fitted = call.receiver
    calls = made(project, fitted, scope)
    base = [c for c in calls if c.name == "fit" and c.receiver is not None]
    every = [*calls, *(m for c in base if c.receiver is not None for m in made(project, c.receiver, c.scope))]
    if any("Regressor" in c.name for c in every):
        return False
    return any(CLASSIFIER.search(c.name) for c in every) or written(fitted) in ("clf", "classifier", "self.clf")
