"""A metric of classification for a regression, or the reverse.

What: ``accuracy_score``, ``f1_score`` and the like get the predictions of a regressor; ``mean_squared_error``,
``r2_score`` and the like those of a classifier; or such a name is given as ``scoring``.
Why it matters: the first raises or counts exact matches of floats; the second measures distances between class numbers.
When it is fine: with ordered classes, or where predictions are rounded on purpose.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import Call, last_name
from trainwreck.code.facts import made, only, option
from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.rounded_hits import rounded_hits
from trainwreck.code.rule import sighting
from trainwreck.code.scopes import Scope
from trainwreck.core.evidence import Evidence

BAD = (
    """
from sklearn.linear_model import LinearRegression
from sklearn.metrics import accuracy_score
reg = LinearRegression().fit(X, y)
print(accuracy_score(y_test, reg.predict(X_test)))  # expect
""",
    """
from sklearn.ensemble import RandomForestRegressor
from sklearn.metrics import f1_score
def run(X, y, X_val, y_val):
    model = RandomForestRegressor(n_estimators=10)
    model.fit(X, y)
    pred = model.predict(X_val)
    return f1_score(y_val, pred)  # expect
""",
    """
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.metrics import r2_score, mean_squared_error
clf = GradientBoostingClassifier()
clf.fit(X, y)
print(r2_score(y_test, clf.predict(X_test)))  # expect
""",
    """
from sklearn.model_selection import cross_val_score
from sklearn.linear_model import Ridge
print(cross_val_score(Ridge(), X, y, scoring="accuracy"))  # expect
""",
)
GOOD = """
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.metrics import accuracy_score, brier_score_loss, mean_squared_error, r2_score
from sklearn.model_selection import cross_val_score
reg = LinearRegression().fit(X, y)
clf = LogisticRegression().fit(X, y)
a = r2_score(y, reg.predict(X))
b = accuracy_score(y, clf.predict(X))
c = accuracy_score(y, reg.predict(X) > 0.5)
d = accuracy_score(y, reg.predict(X).round())
e = mean_squared_error(y, clf.predict_proba(X)[:, 1])
f = cross_val_score(Ridge(), X, y, scoring="r2")
g = cross_val_score(clf, X, y, scoring="accuracy")
"""
OF_CLASSES = frozenset(
    [
        "accuracy_score",
        "f1_score",
        "precision_score",
        "recall_score",
        "balanced_accuracy_score",
        "confusion_matrix",
        "classification_report",
        "matthews_corrcoef",
        "cohen_kappa_score",
    ]
)
OF_NUMBERS = frozenset(
    [
        "r2_score",
        "mean_squared_error",
        "root_mean_squared_error",
        "mean_absolute_percentage_error",
        "explained_variance_score",
    ]
)
SCORING_CLASSES = pattern(r"^(accuracy|f1|precision|recall|balanced_accuracy|jaccard)")
SCORING_NUMBERS = pattern(r"^(r2|neg_mean_|neg_root_|explained_variance|neg_median)")
REGRESSORS = pattern(
    r"Regressor$|^(LinearRegression|Ridge|RidgeCV|Lasso|LassoCV|ElasticNet|ElasticNetCV|SVR|LinearSVR|BayesianRidge)$"
)
CLASSIFIERS = pattern(r"Classifier$|^(LogisticRegression|LogisticRegressionCV|SVC|LinearSVC|GaussianNB|MultinomialNB)$")
PACKAGES = ("sklearn", "xgboost", "lightgbm", "catboost")


def find(project: Project) -> Iterator[Evidence]:
    yield from further(__name__, project, _of_library(project), rounded_hits)


def _of_library(project: Project) -> Iterator[Evidence]:
    for call in project.calls(*sorted(OF_CLASSES | OF_NUMBERS)):
        value = call.argument("y_pred", 1)
        if value is None or not project.called(call).startswith("sklearn."):
            continue
        model = _predicts(project, value, call.scope)
        yield from _told(project, call, model, call.name in OF_CLASSES, f"{call.name}()")
    for call in project.calls("cross_val_score", "cross_validate", "GridSearchCV", "RandomizedSearchCV"):
        scoring = only(project, option(project, call, "scoring"))
        estimator = call.argument("estimator", 0)
        if not isinstance(scoring, str) or estimator is None:
            continue
        makers = made(project, estimator, call.scope)
        maker = makers[0] if len(makers) == 1 else None
        if SCORING_CLASSES.match(scoring) or SCORING_NUMBERS.match(scoring):
            yield from _told(project, call, maker, bool(SCORING_CLASSES.match(scoring)), repr(scoring))


def _told(project: Project, call: Call, model: Call | None, classes: bool, metric: str) -> Iterator[Evidence]:
    if model is None or project.called(model).split(".", 1)[0] not in PACKAGES:
        return
    if classes and REGRESSORS.search(model.name):
        text = f"{metric} counts equal classes, and {model.name} predicts numbers"
        yield sighting(__name__, call, text, proof=[model])
    if not classes and CLASSIFIERS.search(model.name):
        text = f"{metric} measures distances, and {model.name} predicts classes"
        yield sighting(__name__, call, text, proof=[model])


def _predicts(project: Project, node: ast.expr, scope: Scope) -> Call | None:
    """The estimator whose ``predict`` gives ``node`` unchanged."""
    if isinstance(node, ast.Name):
        found = [b for b in project.lookup(node.id, scope) if b.kind == "assign"]
        if len(found) != 1 or found[0].value is None or found[0].path:
            return None
        node, scope = found[0].value, found[0].scope
    if not isinstance(node, ast.Call) or last_name(node.func) != "predict" or not isinstance(node.func, ast.Attribute):
        return None
    makers = [c for c in made(project, node.func.value, scope) if c.name not in ("fit",)]
    inner = node.func.value
    fitted = made(project, inner, scope)
    if len(fitted) == 1 and fitted[0].name == "fit" and fitted[0].receiver is not None:
        makers = made(project, fitted[0].receiver, fitted[0].scope)
    return makers[0] if len(makers) == 1 else None
