"""Overlapping windows are split at random.

What: windows of a series are cut with a step smaller than their length, and then split by ``random_split``, a
permutation or ``train_test_split`` with shuffling.
Why it matters: almost every test window overlaps training windows: the model is tested on values that it was shown.
When it is fine: with a split by time, or windows that do not overlap.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import Call, last_name, written
from trainwreck.code.facts import (
    only,
    option,
    trains,
)
from trainwreck.code.flow import back
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.lags import smoothed_to_the_target
from trainwreck.code.rehearsal.questions.shuffled_series import split_at_random
from trainwreck.code.rehearsal.questions.smoothing import looking_ahead
from trainwreck.code.rule import sighting
from trainwreck.core.evidence import Evidence

BAD = (
    """
import numpy as np
from sklearn.model_selection import train_test_split
def windows(series, width):
    X, y = [], []
    for i in range(len(series) - width):
        X.append(series[i : i + width])
        y.append(series[i + width])
    return np.array(X), np.array(y)
def main(series):
    X, y = windows(series, 24)
    return train_test_split(X, y, test_size=0.2)  # expect
""",
    """
from torch.utils.data import Dataset, random_split
class Windows(Dataset):
    def __init__(self, series, width=24):
        self.series, self.width = series, width
    def __len__(self):
        return len(self.series) - self.width
    def __getitem__(self, i):
        return self.series[i : i + self.width], self.series[i + self.width]
def main(series):
    data = Windows(series)
    train, test = random_split(data, [800, 200])  # expect
""",
    """
import torch
def features(frame):
    frame["calm"] = frame["flow"].rolling(7, center=True).median()  # expect
    frame["before"] = frame["flow"].rolling(7).mean()
    frame["next"] = frame["flow"].shift(-1)
    return frame.dropna()
def step(net, opt, x, y):
    loss = (net(x) - y).pow(2).mean()
    loss.backward()
    opt.step()
""",
)
GOOD = """
import numpy as np
import torch
def columns(frame):
    frame["trend"] = frame["flow"].rolling(7, center=True).mean().shift(-1)
    frame["level"] = frame["rain"].rolling(7, center=True).mean()
    frame["next"] = frame["flow"].shift(-1)
    frame["last"] = frame["flow"].rolling(7).mean()
    return frame.dropna()
def step(net, opt, x, y):
    loss = (net(x) - y).pow(2).mean()
    loss.backward()
    opt.step()
from sklearn.model_selection import train_test_split
from torch.utils.data import Dataset, Subset
def windows(series, width):
    X, y = [], []
    for i in range(len(series) - width):
        X.append(series[i : i + width])
        y.append(series[i + width])
    return np.array(X), np.array(y)
def blocks(tokens, width):
    return [tokens[i : i + width] for i in range(0, len(tokens), width)]
def main(series, rows):
    X, y = windows(series, 24)
    a = train_test_split(X, y, shuffle=False)
    cut = int(0.8 * len(X))
    return a, X[:cut], X[cut:], train_test_split(rows), train_test_split(blocks(series, 8))
"""


def find(project: Project) -> Iterator[Evidence]:
    yield from further(__name__, project, _found(project), looking_ahead, smoothed_to_the_target, split_at_random)


def _found(project: Project) -> Iterator[Evidence]:
    yield from _seen(project)
    yield from _centred(project)


def _centred(project: Project) -> Iterator[Evidence]:
    """``close.rolling(9, center=True)`` beside ``close.shift(-1)``, the same column some rows later, where a network is
    trained: the window of each row holds what is to be predicted."""
    ahead = {written(c.receiver): c for c in project.calls("shift") if c.receiver is not None and _ahead(project, c)}
    for call in project.calls("rolling") if ahead and trains(project) else ():
        series = written(call.receiver) if call.receiver is not None else ""
        width = only(project, option(project, call, "window", 0))
        if series not in ahead or only(project, option(project, call, "center")) is not True:
            continue
        statement = project.statement(call.node, call.scope)
        predicted = any(isinstance(n, ast.Call) and last_name(n.func) == "shift" for n in ast.walk(statement))
        if isinstance(width, int) and width > 2 and not predicted:
            text = "this window reaches behind its row, up to the later rows of the series that are to be predicted"
            yield sighting(__name__, call, text, proof=[ahead[series]])


def _ahead(project: Project, call: Call) -> bool:
    """True for a shift by a negative number: later rows stand beside earlier ones."""
    by = only(project, option(project, call, "periods", 0))
    return isinstance(by, int) and not isinstance(by, bool) and by < 0


def _seen(project: Project) -> Iterator[Evidence]:
    for split in project.calls("random_split", "train_test_split"):
        if only(project, split_shuffle := option(project, split, "shuffle")) is False or (
            split_shuffle and only(project, split_shuffle) is ...
        ):
            continue
        if not split.node.args or not project.called(split).startswith(("sklearn", "torch")):
            continue
        place = _window(project, split)
        if place is not None:
            text = (
                "overlapping windows of one series are split at random: test windows share values with training windows"
            )
            yield sighting(__name__, split, text, proof=[place])


def _window(project: Project, split: Call) -> tuple[str, int, str] | None:
    value = split.node.args[0]
    owner = project.class_of(value, split.scope)
    if owner is not None:
        getter = project.find_method(owner, "__getitem__")
        index = getter.params[1] if getter is not None and len(getter.params) > 1 else None
        for node in project.within(getter, ast.Subscript) if getter is not None else ():
            assert isinstance(node, ast.Subscript)
            if index and _sliding(node, index):
                return owner.module.path, node.lineno, written(node)
        return None
    for step in back(project, value, split.scope):
        node = step.node
        if isinstance(node, ast.Subscript) and step.depth < 8:
            for loop in [a for a in project.ancestors(node, step.scope) if isinstance(a, ast.For | ast.ListComp)]:
                target, iterable = (
                    (loop.target, loop.iter)
                    if isinstance(loop, ast.For)
                    else (loop.generators[0].target, loop.generators[0].iter)
                )
                single = isinstance(iterable, ast.Call) and last_name(iterable.func) == "range" and _unit(iterable)
                if isinstance(target, ast.Name) and single and _sliding(node, target.id):
                    return step.scope.module.path, node.lineno, written(node)
    return None


def _unit(node: ast.Call) -> bool:
    """True for a range that goes by one."""
    return len(node.args) < 3 or (isinstance(node.args[2], ast.Constant) and node.args[2].value == 1)


def _sliding(node: ast.Subscript, index: str) -> bool:
    """``series[i : i + width]``."""
    part = node.slice.elts[0] if isinstance(node.slice, ast.Tuple) and node.slice.elts else node.slice
    if not isinstance(part, ast.Slice) or part.lower is None or part.upper is None or part.step is not None:
        return False
    if written(part.lower) == index:
        upper = part.upper
        return (
            isinstance(upper, ast.BinOp)
            and isinstance(upper.op, ast.Add)
            and written(upper.left) == index
            and written(upper.right) != "1"
        )
    return False
