"""NaN is in the features.

What: NaN is written into an array, or a table operation that leaves NaN rows (``pct_change``, ``shift``, ``diff``,
``rolling``) fills a column; the values become tensors, and nothing in the program drops, fills or tests NaN.
Why it matters: one NaN in a batch makes the loss NaN, and after one step every weight.
When it is fine: for trees that take NaN, or where rows are cut off or filled before.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.calls import Call, last_name, written
from trainwreck.code.facts import source, trains
from trainwreck.code.flow import Step, back
from trainwreck.code.order import training_steps
from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.gaps_in_figures import open_gaps
from trainwreck.code.rule import sighting
from trainwreck.code.seek import LOADERS, is_module
from trainwreck.core.evidence import Evidence

BAD = (
    """
import numpy as np, torch
from torch.utils.data import DataLoader, TensorDataset
def rows(n):
    x = np.random.normal(size=(n, 4))
    x[::50, 2] = np.nan  # expect
    return x, x[:, 0] > 0
x, y = rows(100)
loader = DataLoader(TensorDataset(torch.from_numpy(x), torch.from_numpy(y)), 8)
for a, b in loader:
    net(a).sum().backward()
""",
    """
import pandas as pd, torch
df = pd.read_csv("prices.csv")
df["ret"] = df["close"].pct_change()  # expect
df["vol"] = df["ret"].rolling(20).std()
x = torch.tensor(df[["ret", "vol"]].values, dtype=torch.float32)
for i in range(10):
    net(x).mean().backward()
""",
    """
import pandas as pd, torch
def load(path):
    frame = pd.read_csv(path)
    frame["lag"] = frame.value.shift(1)  # expect
    return frame[["lag"]].to_numpy(), frame["value"].to_numpy()
class Data(torch.utils.data.Dataset):
    def __init__(self, path):
        self.x, self.y = load(path)
    def __getitem__(self, i):
        return torch.as_tensor(self.x[i]), torch.as_tensor(self.y[i])
for x, y in torch.utils.data.DataLoader(Data("a.csv")):
    ((net(x) - y) ** 2).mean().backward()
""",
    """
import numpy as np, torch
def corrupt(x, p):
    return np.where(np.random.rand(*x.shape) < p, np.nan, x)  # expect
def main(x, net):
    t = torch.tensor(corrupt(x, 0.1))
    net(t).sum().backward()
""",
    """
import torch
def rows(n):
    x = torch.randn(n, 5)
    x[torch.rand(n) < 0.02, 2] = float("nan")  # expect
    return x
x = rows(100)
net = torch.nn.Linear(5, 1)
for i in range(100):
    net(x[torch.randint(0, 100, (8,))]).sum().backward()
""",
)
GOOD = (
    """
import numpy as np, torch
def rows(n):
    x = np.random.normal(size=(n, 4))
    x[::50, 2] = np.nan
    return np.nan_to_num(x)
net(torch.from_numpy(rows(5))).sum().backward()
""",
    """
import pandas as pd, torch
df = pd.read_csv("prices.csv")
df["ret"] = df["close"].pct_change()
df = df.iloc[1:]
x = torch.tensor(df[["ret"]].values)
net(x).mean().backward()
""",
    """
import numpy as np, torch
def main(x, net):
    best = np.zeros(3)
    best[1] = np.nan
    print(best)
    net(torch.from_numpy(x)).sum().backward()
""",
)
HANDLED = pattern(
    r"isnan|nan_to_num|isfinite|dropna|fillna|interpolate\(|nanmean|nanstd|nanmedian|Imputer|notna|isna|isnull|notnull"
    r"|ffill|bfill|nansum|nan_policy|masked_invalid|iloc\[[^\]:]+:|\.tail\(|\.truncate\(|\.query\(",
)
"""Whatever drops, fills, cuts off or tests NaN."""
LEAVES_NAN = frozenset(["pct_change", "shift", "diff", "rolling"])
TO_TENSOR = ("from_numpy", "tensor", "as_tensor", "FloatTensor", "Tensor")


def find(project: Project) -> Iterator[Evidence]:
    yield from further(__name__, project, _written(project), open_gaps)


def _written(project: Project) -> Iterator[Evidence]:
    """NaN on its way into batches in a program that nowhere takes any out."""
    text = source(project)
    if not trains(project) or not re.search("nan|pandas", text, re.IGNORECASE) or HANDLED.search(text):
        return
    for call, value in _entrances(project):
        for step in back(project, value, call.scope):
            if _is_nan(project, step) and not _cut(step):
                where = project.statement(step.node, step.scope)
                shown = "NaN enters the features here, and nothing in the program takes it out again"
                yield sighting(__name__, (where, step.scope), shown, proof=[call])
                return


def _entrances(project: Project) -> Iterator[tuple[Call, ast.expr]]:
    """Values that become batches: of loaders, conversions, and calls of a network in a training step."""
    for call in project.calls(*LOADERS, *TO_TENSOR):
        value = call.argument("dataset", 0) if call.name in LOADERS else (call.node.args[0] if call.node.args else None)
        if value is not None and project.called(call).startswith("torch"):
            yield call, value
    for step in training_steps(project):
        for call in project.calls_by_scope.get(step.scope, ()):
            func = call.node.func
            if call.node.args and isinstance(func, ast.Name | ast.Attribute) and is_module(project, func, call.scope):
                yield call, call.node.args[0]


def _is_nan(project: Project, step: Step) -> bool:
    node = step.node
    if isinstance(node, ast.Call):
        call = Call(node, step.scope)
        if call.name in LEAVES_NAN and call.receiver is not None:
            pandas = "pandas" in step.scope.module.text and project.bindings_of_values(call.receiver, step.scope)
            filled = any(k.arg in ("fill_value", "min_periods") for k in node.keywords)
            return pandas and not filled and not written(call.receiver).startswith(("np.", "torch."))
        return call.name == "float" and len(node.args) == 1 and written(node.args[0]).strip("'\"").lower() == "nan"
    return written(node) in ("np.nan", "numpy.nan", "math.nan", "torch.nan", "np.NaN", "pd.NA", "nan")


def _cut(step: Step) -> bool:
    """True if rows are cut off between NaN and the tensor, or the value is compared only."""
    for at in step.chain():
        node = at.node
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice) and node.slice.lower is not None:
            return True
        if isinstance(node, ast.Compare) or (isinstance(node, ast.Call) and last_name(node.func) in ("print", "len")):
            return True
    return False
