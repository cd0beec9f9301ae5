"""A feature holds the target.

What: the features are the whole table although the target is a column of it; the target is stacked to the features;
a category is replaced by the mean of the target over all rows, before the rows are divided; or a running mean of the
series ends with the element that is to be predicted.
Why it matters: the score is far too good, and falls in use, where nobody knows the target.
When it is fine: where the target column is dropped, or the means are taken of the training rows only.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import Call, last_name, written
from trainwreck.code.facts import later
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.encoded_means import means_of_all
from trainwreck.code.rehearsal.questions.encoded_targets import own_target_in_the_mean
from trainwreck.code.rehearsal.questions.hiding import hidden_is_not_asked
from trainwreck.code.rehearsal.questions.lags import column_is_the_target, reaching_the_target
from trainwreck.code.rehearsal.questions.own_target import target_is_given
from trainwreck.code.rehearsal.questions.parts_together import means_of_own_rows, means_of_parts
from trainwreck.code.rehearsal.questions.row_windows import target_in_the_row
from trainwreck.code.rehearsal.questions.same_element import target_among_columns
from trainwreck.code.rehearsal.questions.shown_entries import hidden_is_shown
from trainwreck.code.rehearsal.questions.windows import target_in_the_window
from trainwreck.code.rule import sighting
from trainwreck.code.scopes import Scope
from trainwreck.code.splits import random_splits
from trainwreck.code.values import values
from trainwreck.core.evidence import Evidence

BAD = (
    """
import pandas as pd
from sklearn.model_selection import train_test_split
df = pd.read_csv("churn.csv")
y = df["churned"]
X = df.drop(columns=["customer"])
X_train, X_test, y_train, y_test = train_test_split(X, y)  # expect
""",
    """
import numpy as np
from sklearn.linear_model import LogisticRegression
def main(a, b, y):
    X = np.column_stack([a, b, y])
    LogisticRegression().fit(X, y)  # expect
""",
    """
import pandas as pd, torch
from torch.utils.data import TensorDataset
def load(path):
    table = pd.read_csv(path)
    target = table["price"].values
    features = table.values
    return TensorDataset(torch.tensor(features), torch.tensor(target))  # expect
""",
    """
import pandas as pd
from sklearn.model_selection import train_test_split
def load(path):
    df = pd.read_csv(path)
    df["city_mean"] = df.groupby("city")["price"].transform("mean")  # expect
    X, y = df[["city_mean", "rooms"]], df["price"]
    return train_test_split(X, y)
""",
    """
import pandas as pd
from sklearn.model_selection import train_test_split
df = pd.read_csv("a.csv")
rates = df.groupby("zip").label.mean()
df["zip_rate"] = df["zip"].map(rates)  # expect
a, b = train_test_split(df, stratify=df["label"])
""",
    """
import numpy as np
import torch
from torch import nn
rng = np.random.default_rng(0)
sales = rng.normal(size=3000)
total = np.cumsum(sales)
t = np.arange(30, 3000)
week = total[t] - total[t - 7]  # expect
features = np.stack([sales[t - 1], sales[t - 7], week / 7], axis=1)
x, y = torch.tensor(features).float(), torch.tensor(sales[t]).float()
net = nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 1), nn.Flatten(0))
opt = torch.optim.Adam(net.parameters())
for epoch in range(5):
    for idx in torch.randperm(len(x)).split(64):
        loss = (net(x[idx]) - y[idx]).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
""",
    """
import numpy as np
import torch
from torch import nn
from numpy.lib.stride_tricks import sliding_window_view
from torch.utils.data import DataLoader, TensorDataset
def table(load, width=6):
    smooth = sliding_window_view(load, width).mean(-1)
    y = load[width:]
    columns = {"before": load[width - 1 :], "smooth": smooth[1:]}  # expect
    n = len(y)
    return np.stack([c[:n] for c in columns.values()], 1), y
def main():
    x, y = table(np.random.default_rng(0).gamma(2.0, size=2000))
    loader = DataLoader(TensorDataset(torch.tensor(x), torch.tensor(y)), batch_size=32, shuffle=True)
    net = nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 1), nn.Flatten(0))
    opt = torch.optim.Adam(net.parameters())
    for a, b in loader:
        opt.zero_grad()
        nn.functional.l1_loss(net(a.float()), b.float()).backward()
        opt.step()
main()
""",
)
GOOD = (
    """
import pandas as pd, numpy as np
from sklearn.model_selection import train_test_split
df = pd.read_csv("churn.csv")
y = df.pop("churned")
a = train_test_split(df, y)
other = pd.read_csv("b.csv")
y2 = other["t"]
X2 = other.drop(columns=["t"])
b = train_test_split(X2, y2)
def third(path, cols):
    t = pd.read_csv(path)
    y = t["t"]
    t = t.drop("t", axis=1)
    u = pd.read_csv(path)
    return train_test_split(t, y), train_test_split(u[cols], u["t"]), train_test_split(u, stratify=u["t"])
""",
    """
import pandas as pd
from sklearn.model_selection import train_test_split
df = pd.read_csv("a.csv")
train, test = train_test_split(df)
rates = train.groupby("zip")["label"].mean()
train["rate"] = train["zip"].map(rates)
test["rate"] = test["zip"].map(rates)
means = df.groupby("zip")["income"].transform("mean")
""",
    """
import numpy as np
import torch
from torch import nn
rng = np.random.default_rng(0)
sales = rng.normal(size=3000)
total = np.cumsum(sales)
t = np.arange(30, 3000)
week = total[t - 1] - total[t - 8]
features = np.stack([sales[t - 1], sales[t - 7], week / 7], axis=1)
x, y = torch.tensor(features).float(), torch.tensor(sales[t]).float()
net = nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 1), nn.Flatten(0))
opt = torch.optim.Adam(net.parameters())
for epoch in range(5):
    for idx in torch.randperm(len(x)).split(64):
        loss = (net(x[idx]) - y[idx]).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
""",
    """
import numpy as np
import torch
from torch import nn
from numpy.lib.stride_tricks import sliding_window_view
from torch.utils.data import DataLoader, TensorDataset
def table(load, width=6):
    smooth = sliding_window_view(load, width).mean(-1)
    y = load[width:]
    columns = {"before": load[width - 1 :], "smooth": smooth[0:]}
    n = len(y)
    return np.stack([c[:n] for c in columns.values()], 1), y
def main():
    x, y = table(np.random.default_rng(0).gamma(2.0, size=2000))
    loader = DataLoader(TensorDataset(torch.tensor(x), torch.tensor(y)), batch_size=32, shuffle=True)
    net = nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 1), nn.Flatten(0))
    opt = torch.optim.Adam(net.parameters())
    for a, b in loader:
        opt.zero_grad()
        nn.functional.l1_loss(net(a.float()), b.float()).backward()
        opt.step()
main()
""",
)
TAKES_BOTH = ("train_test_split", "fit", "TensorDataset", "cross_val_score", "fit_transform")
STACKS = frozenset(["column_stack", "hstack", "concatenate", "c_", "cat", "concat"])
WRAPS = frozenset(
    ["tensor", "as_tensor", "from_numpy", "FloatTensor", "LongTensor", "to_numpy", "copy", "astype", "array"]
)


def find(project: Project) -> Iterator[Evidence]:
    asked = (
        reaching_the_target,
        target_in_the_window,
        target_in_the_row,
        column_is_the_target,
        target_among_columns,
        target_is_given,
        means_of_all,
        hidden_is_shown,
        hidden_is_not_asked,
        own_target_in_the_mean,
        means_of_parts,
        means_of_own_rows,
    )
    yield from further(__name__, project, _written(project), *asked)


def _written(project: Project) -> Iterator[Evidence]:
    for call in project.calls(*TAKES_BOTH):
        if len(call.node.args) < 2:
            continue
        pair = call.node.args[1:3] if call.name.startswith("cross") else call.node.args[:2]
        if len(pair) == 2:
            yield from _pair(project, call, pair[0], pair[1])
    yield from _encoded(project)


def _pair(project: Project, call: Call, x: ast.expr, y: ast.expr) -> Iterator[Evidence]:
    features, fs = _plain(project, x, call.scope)
    if isinstance(features, ast.Call) and last_name(features.func) in STACKS and features.args:
        parts = features.args[0].elts if isinstance(features.args[0], ast.List | ast.Tuple) else []
        if isinstance(y, ast.Name) and any(_same(p, y) for p in parts) and fs is call.scope:
            yield sighting(__name__, call, f"{y.id} is one of the columns of the features", proof=[Call(features, fs)])
        return
    target, ts = _plain(project, y, call.scope)
    column = _column(target)
    if column is None or fs is not ts:
        return
    table, name = column
    held = _holds(project, features, fs, table, name)
    if held and not _dropped(project, fs, table, name, call.node):
        place = (fs.module.path, getattr(features, "lineno", call.line), written(features)[:80])
        yield sighting(__name__, call, f"the features hold the column {name!r}, which is the target", proof=[place])


def _same(part: ast.expr, y: ast.Name) -> bool:
    while isinstance(part, ast.Subscript | ast.Call):
        if isinstance(part, ast.Subscript):
            part = part.value
        elif isinstance(part.func, ast.Attribute) and part.func.attr in ("reshape", "unsqueeze", "astype", "float"):
            part = part.func.value
        else:
            return False
    return isinstance(part, ast.Name) and part.id == y.id


def _plain(project: Project, node: ast.expr, scope: Scope, depth: int = 0) -> tuple[ast.expr, Scope]:
    """The expression behind single assignments and conversions."""
    if depth > 8:
        return node, scope
    if isinstance(node, ast.Call) and last_name(node.func) in WRAPS:
        own = isinstance(node.func, ast.Attribute) and project.bindings_of_values(node.func.value, scope)
        inner = (
            node.func.value if own and isinstance(node.func, ast.Attribute) else (node.args[0] if node.args else None)
        )
        return _plain(project, inner, scope, depth + 1) if inner is not None else (node, scope)
    if isinstance(node, ast.Attribute) and node.attr == "values":
        return _plain(project, node.value, scope, depth + 1)
    if isinstance(node, ast.Name):
        bindings = [b for b in project.lookup(node.id, scope) if b.kind != "append"]
        if len(bindings) == 1 and bindings[0].kind == "assign" and bindings[0].value is not None:
            value: ast.expr = bindings[0].value
            for part in bindings[0].path:
                if not isinstance(value, ast.Tuple) or not isinstance(part, int) or part >= len(value.elts):
                    return node, scope
                value = value.elts[part]
            if isinstance(value, ast.Call) and last_name(value.func).startswith(("read_", "DataFrame", "load")):
                return node, scope
            return _plain(project, value, bindings[0].scope, depth + 1)
    return node, scope


def _column(node: ast.expr) -> tuple[str, str] | None:
    """(table, column) of ``table["column"]``."""
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and isinstance(node.slice, ast.Constant):
        return (node.value.id, node.slice.value) if isinstance(node.slice.value, str) else None
    return None


def _holds(project: Project, node: ast.expr, scope: Scope, table: str, column: str) -> bool:
    """True if ``node`` is the table itself, a list of columns with the target, or the table less other columns."""
    if isinstance(node, ast.Name):
        return node.id == table
    if isinstance(node, ast.Subscript) and written(node.value) == table:
        return any(isinstance(k.value, tuple) and column in k.value for k in values(project, node.slice, scope))
    if isinstance(node, ast.Call) and last_name(node.func) == "drop" and isinstance(node.func, ast.Attribute):
        if written(node.func.value) != table:
            return False
        call = Call(node, scope)
        at = call.argument("columns") or call.argument("labels", 0)
        found = [k.value for k in values(project, at, scope)]
        axis = [k.value for k in values(project, call.argument("axis", 1), scope)]
        by_column = call.argument("columns") is not None or axis in ([1], ["columns"])
        if len(found) != 1 or not by_column:
            return False
        dropped = found[0] if isinstance(found[0], tuple) else (found[0],)
        return all(isinstance(n, str) for n in dropped) and column not in dropped
    return False


def _dropped(project: Project, scope: Scope, table: str, column: str, before: ast.AST) -> bool:
    """True if the column is taken out of the table in place, or the table is bound again."""
    if len([b for b in scope.bindings.get(table, ()) if b.kind != "append"]) != 1:
        return True
    for call in project.calls_by_scope.get(scope, ()):
        if call.name in ("pop", "drop") and call.receiver is not None and written(call.receiver) == table:
            text = written(call.node)
            if (call.name == "pop" or "inplace=True" in text) and not later(call.node, before):
                return True
    return any(isinstance(n, ast.Delete) and table in written(n) for n in project.within(scope, ast.Delete))


def _encoded(project: Project) -> Iterator[Evidence]:
    """Means of the target over all rows, put back into a table that is divided later."""
    splits = [s for s in random_splits(project)]
    for split in splits:
        tables = {n.id for d in split.data for n in _behind(project, d, split.scope)}
        targets = _targets(project, split.scope)
        for node in project.within(split.scope, ast.Assign):
            assert isinstance(node, ast.Assign)
            if later(node, split.place.node) or not isinstance(node.targets[0], ast.Subscript):
                continue
            table = written(node.targets[0].value)
            mean = _mean(project, node.value, split.scope)
            if table in tables and mean is not None and mean[0] == table and mean[1] in targets:
                text = f"the mean of {mean[1]!r}, the target, over all rows becomes a feature before the split"
                yield sighting(__name__, (node, split.scope), text, proof=[split.place])
                return


def _behind(project: Project, node: ast.expr, scope: Scope) -> Iterator[ast.Name]:
    for inner in ast.walk(node):
        if isinstance(inner, ast.Name):
            yield inner
            plain, _ = _plain(project, inner, scope)
            yield from (n for n in ast.walk(plain) if isinstance(n, ast.Name))


def _targets(project: Project, scope: Scope) -> set[str]:
    """Columns that are the target of a split or a fit in ``scope``."""
    found: set[str] = set()
    for call in project.calls_by_scope.get(scope, ()):
        if call.name in TAKES_BOTH:
            named = [*call.node.args[1:3], *(k.value for k in call.node.keywords if k.arg == "stratify")]
            for value in named:
                column = _column(_plain(project, value, scope)[0])
                if column is not None:
                    found.add(column[1])
    return found


def _mean(project: Project, node: ast.expr, scope: Scope) -> tuple[str, str] | None:
    """(table, column) of ``table.groupby(key)[column].transform("mean")``, or of a ``map`` with such means."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return None
    if node.func.attr in ("map", "replace") and node.args:
        inner, where = _plain(project, node.args[0], scope)
        return _mean(project, inner, where) if isinstance(inner, ast.Call) else None
    averages = node.func.attr in ("mean", "median") or (
        node.func.attr in ("transform", "agg")
        and node.args
        and written(node.args[0]) in ("'mean'", "np.mean", "'median'")
    )
    part = node.func.value
    if not averages or not isinstance(part, ast.Subscript | ast.Attribute):
        return None
    column = (
        part.attr
        if isinstance(part, ast.Attribute)
        else part.slice.value
        if isinstance(part.slice, ast.Constant)
        else None
    )
    group = part.value
    if isinstance(group, ast.Call) and last_name(group.func) == "groupby" and isinstance(group.func, ast.Attribute):
        return (written(group.func.value), str(column)) if column is not None else None
    return None
