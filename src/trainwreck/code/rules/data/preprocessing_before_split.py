"""A scaler, imputer or selector is fitted on all data before the split.

What: ``fit_transform(X)`` of a learned transformation, of sklearn or of the program's own, and afterwards
``train_test_split`` of the result, or ``X[test]`` with the indices of a fold.
Why it matters: statistics of the test rows are in the training features: the test score is too good.
When it is fine: for transformations that learn nothing (hashing, log), or inside a pipeline.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import Call, last_name, written
from trainwreck.code.facts import HELD, TRAIN, bound_to, later, made, names_in
from trainwreck.code.flow import back
from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.folds import scaled_before
from trainwreck.code.rehearsal.questions.parts_together import statistics_of_parts
from trainwreck.code.rehearsal.questions.splits import statistics_of_everything
from trainwreck.code.rehearsal.questions.window_spans import scaled_over_all_times
from trainwreck.code.rule import sighting
from trainwreck.code.scopes import Scope
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
    """
import numpy as np
class Columns:
    def __init__(self, keep):
        self.keep = keep
    def fit(self, x, y):
        r = ((x - x.mean(0)) * (y - y.mean())[:, None]).mean(0)
        self.best = np.argsort(-np.abs(r))[:self.keep]
        return self
    def transform(self, x):
        return x[:, self.best]
def run(x, y, folds, score):
    columns = Columns(9).fit(x, y)  # expect
    for test in folds:
        train = np.setdiff1d(np.arange(len(x)), test)
        score(columns.transform(x[train]), y[train], columns.transform(x[test]), y[test])
""",
    """
from sklearn.decomposition import PCA
from sklearn.model_selection import KFold
def run(x, y, model):
    reduced = PCA(5).fit_transform(x)  # expect
    for fit_rows, test_rows in KFold(5).split(reduced):
        model.fit(reduced[fit_rows], y[fit_rows]).score(reduced[test_rows], y[test_rows])
""",
    """
from sklearn.preprocessing import MinMaxScaler
def run(x, y, n, model):
    x = MinMaxScaler().fit_transform(x)  # expect
    x_train, x_test = x[:n], x[n:]
    model.fit(x_train, y[:n]).score(x_test, y[n:])
""",
)
GOOD = (
    """
import numpy as np
from sklearn.model_selection import KFold
from sklearn.preprocessing import StandardScaler
class Scale:
    def fit(self, x):
        self.mean, self.std = x.mean(0), x.std(0)
        return self
    def transform(self, x):
        return (x - self.mean) / self.std
def run(x, y, model, n):
    for train, test in KFold(5).split(x):
        scale = Scale().fit(x[train])
        model.fit(scale.transform(x[train]), y[train]).score(scale.transform(x[test]), y[test])
    x_train, x_test = x[:n], x[n:]
    scaler = StandardScaler().fit(x_train)
    return scaler.transform(x_train), scaler.transform(x_test)
def final(x, y, model):
    scale = Scale().fit(x)
    model.fit(scale.transform(x), y)
    return x[:5]
def nested(x, y, train, test, model):
    inner = x[train]
    scale = Scale().fit(inner)
    return model.fit(scale.transform(inner), y[train]).score(scale.transform(x[test]), y[test])
""",
    """
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
""",
)
LEARNED = pattern(
    r"Scaler$|Imputer$|^SelectKBest$|^SelectFromModel$|^SelectPercentile$|^RFE|^PCA$|^TruncatedSVD$|^PowerTransformer$"
    r"|^QuantileTransformer$|^TargetEncoder$|^KBinsDiscretizer$|^TfidfVectorizer$|^Normalizer$|^VarianceThreshold$"
)
SPLITS = ("train_test_split", "cross_val_score", "cross_validate", "cross_val_predict")


def find(project: Project) -> Iterator[Evidence]:
    yield from further(
        __name__,
        project,
        _written(project),
        statistics_of_everything,
        scaled_before,
        statistics_of_parts,
        scaled_over_all_times,
    )


def _written(project: Project) -> Iterator[Evidence]:
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
                    yield sighting(__name__, fit, TEXT, proof=[split])
    for fit, part in _before_indexing(project):
        if id(fit.node) not in told:
            told.add(id(fit.node))
            yield sighting(__name__, fit, TEXT, proof=[(part[1].module.path, part[0].lineno, written(part[0]))])


TEXT = "this is fitted on all rows, those of the later test set included"
STATISTICS = frozenset(
    [
        "mean",
        "std",
        "var",
        "median",
        "min",
        "max",
        "quantile",
        "percentile",
        "argsort",
        "topk",
        "cov",
        "corrcoef",
        "svd",
        "eigh",
        "eig",
        "amin",
        "amax",
        "std_mean",
        "var_mean",
        "nanmean",
        "nanstd",
        "nanmedian",
        "pca_lowrank",
    ]
)
"""What a transformation of one's own learns from its rows."""


def _before_indexing(project: Project) -> Iterator[tuple[Call, tuple[ast.Subscript, Scope]]]:
    """Transformations fitted on a whole array whose held-out rows are taken by index afterwards."""
    for fit in project.calls("fit", "fit_transform"):
        data = fit.argument("X", 0) or fit.argument("x")
        if not isinstance(data, ast.Name | ast.Attribute) or fit.receiver is None:
            continue
        if names_in(data, TRAIN) or not _learns(project, fit.receiver, fit.scope) or _part(project, data, fit.scope):
            continue
        names = {written(data), bound_to(project, fit)} if fit.name == "fit_transform" else {written(data)}
        names |= {
            bound_to(project, c)
            for c in project.calls("transform")
            if c.scope is fit.scope and c.node.args and written(c.node.args[0]) == written(data)
        }
        held = next((s for s in _held_rows(project, fit, names - {""})), None)
        if held is not None:
            yield fit, (held, fit.scope)


def _learns(project: Project, node: ast.expr, scope: Scope) -> bool:
    """True for a transformation of sklearn that learns from its rows, or one of the program that does."""
    if any(LEARNED.search(c.name) and project.called(c).startswith("sklearn") for c in made(project, node, scope)):
        return True
    owner = project.class_of(node, scope)
    fit = project.find_method(owner, "fit") if owner is not None else None
    if owner is None or fit is None or project.is_a(owner, "Module", "Trainer"):
        return False
    if not any(project.find_method(owner, name) for name in ("transform", "apply", "__call__", "encode")):
        return False
    if any(c.name in ("backward", "step", "predict") for c in project.calls_by_scope.get(fit, ())):
        return False
    keeps = any(b.scope is fit for bindings in owner.attributes.values() for b in bindings)
    return keeps and any(c.name in STATISTICS for c in project.calls_by_scope.get(fit, ()))


def _part(project: Project, data: ast.expr, scope: Scope) -> bool:
    """True if ``data`` is already a part: a slice or a selection of rows, or what a split gave."""
    for binding in project.bindings(data, scope):
        value = binding.value
        if binding.kind == "loop" or (isinstance(value, ast.Call) and "split" in last_name(value.func)):
            return True
        if isinstance(value, ast.Subscript) and not isinstance(value.slice, ast.Constant):
            return True
    return False


def _held_rows(project: Project, fit: Call, names: set[str]) -> Iterator[ast.Subscript]:
    """``x[test]``, ``x[order[n:]]`` beside ``x[order[:n]]``, ``x[n:]`` beside ``x[:n]`` in the function of ``fit``."""
    parts = [
        n
        for n in project.within(fit.scope, ast.Subscript)
        if isinstance(n, ast.Subscript) and written(n.value) in names and not isinstance(n.ctx, ast.Store)
    ]
    rest = {_bounds(n)[1] for n in parts} - {""}
    for part in parts:
        index = part.slice.elts[0] if isinstance(part.slice, ast.Tuple) and part.slice.elts else part.slice
        if not later(part, fit.node):
            continue
        if isinstance(index, ast.Name | ast.Attribute) and names_in(index, HELD) and not names_in(index, TRAIN):
            yield part
            continue
        start = _bounds(part)[0]
        if start and start in rest:
            yield part


def _bounds(part: ast.Subscript) -> tuple[str, str]:
    """(start, stop) of a slice of rows that is open at its other end: ``x[n:]`` has ``n``, ``x[order[:n]]`` too."""
    index = part.slice.elts[0] if isinstance(part.slice, ast.Tuple) and part.slice.elts else part.slice
    if isinstance(index, ast.Subscript):
        index = index.slice
    if not isinstance(index, ast.Slice) or index.step is not None:
        return "", ""
    if index.lower is not None and index.upper is None:
        return written(index.lower), ""
    return ("", written(index.upper)) if index.lower is None and index.upper is not None else ("", "")


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
