"""Samples of one group are divided at random.

What: the program knows a group (patient, user, speaker, session, ...) with several samples each, and divides the
samples by ``train_test_split``, ``random_split``, ``KFold`` or a permutation, without looking at the group.
Why it matters: the model recognises the patient instead of the disease: the score does not hold for new ones.
When it is fine: with a split by group, with one sample per group, or where the same groups are met in use.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.calls import last_name, written
from trainwreck.code.facts import names, source
from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.samples import divided_at_random
from trainwreck.code.rule import sighting
from trainwreck.code.scopes import Scope
from trainwreck.code.splits import Split, random_splits
from trainwreck.core.evidence import Evidence

BAD = (
    """
import pandas as pd
from sklearn.model_selection import train_test_split
df = pd.read_csv("scans.csv")
per_patient = df.groupby("patient_id")["age"].mean()
X, y = df[["a", "b"]], df["label"]
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.2)  # expect
""",
    """
import numpy as np
def make(rng):
    subjects = np.repeat(np.arange(40), 25)
    offset = rng.normal(size=40)
    x = rng.normal(size=(1000, 8)) + offset[subjects][:, None]
    return x, (offset > 0)[subjects]
def main(rng):
    x, y = make(rng)
    perm = rng.permutation(len(x))  # expect
    train, test = perm[:800], perm[800:]
    return x[train], x[test]
""",
    """
import torch
from torch.utils.data import random_split
samples = []
for speaker in range(30):
    voice = torch.randn(16)
    for take in range(20):
        samples.append((voice + 0.1 * torch.randn(16), speaker % 2))
train, test = random_split(samples, [500, 100])  # expect
""",
    """
import pandas as pd
from sklearn.model_selection import KFold, cross_val_score
def run(model, path):
    visits = pd.read_parquet(path)
    visits["n"] = visits.groupby("user_id")["item"].transform("count")
    return cross_val_score(model, visits[["n", "hour"]], visits["bought"])  # expect
""",
)
GOOD = (
    """
import pandas as pd
from sklearn.model_selection import GroupShuffleSplit, train_test_split
df = pd.read_csv("scans.csv")
per_patient = df.groupby("patient_id")["age"].mean()
splitter = GroupShuffleSplit(1, test_size=0.2)
train, test = next(splitter.split(df, groups=df["patient_id"]))
a, b = train_test_split(df)
""",
    """
import pandas as pd
from sklearn.model_selection import train_test_split
df = pd.read_csv("users.csv")
X, y = df.drop(columns=["user_id", "label"]), df["label"]
a, b, c, d = train_test_split(X, y)
""",
    """
import numpy as np, pandas as pd
from sklearn.model_selection import train_test_split
df = pd.read_csv("scans.csv")
sizes = df.groupby("patient_id").size()
train_ids, test_ids = train_test_split(df["patient_id"].unique(), test_size=0.2)
train = df[df["patient_id"].isin(train_ids)]
""",
)
GROUP = pattern(
    r"^(patient|subject|user|speaker|session|customer|client|person|participant|household|author|video|clip|scene|animal"
    r"|slide|site|device|machine|driver|writer|player|student|family|donor|vessel|well|recording)s?(_?(id|ids|idx|index|no))?$",
    re.IGNORECASE,
)
"""Names of what has several samples in common data sets."""
BY_GROUP = pattern(
    r"Group(KFold|Shuffle|Split)|LeaveOneGroup|LeavePGroup|groups=|\.isin\(|isin\(|\.unique\(\)|np\.unique"
)


def find(project: Project) -> Iterator[Evidence]:
    yield from further(__name__, project, _named(project), divided_at_random)


def _named(project: Project) -> Iterator[Evidence]:
    lines = (line for line in source(project).splitlines() if not line.lstrip().startswith(("import ", "from ")))
    if any(BY_GROUP.search(line) for line in lines):
        return
    shared = next(_groups(project), None)
    if shared is None:
        return
    name, proof = shared
    for split in random_splits(project):
        if not _is_group(split) and proof[0] == split.scope.module.path:
            text = f"samples of one {name} can land on both sides of this split"
            yield sighting(__name__, split.place, text, proof=[proof])
            return


def _is_group(split: Split) -> bool:
    """True if the groups themselves are divided."""
    return any(GROUP.match(n) for d in split.data for n in names(d)) or any(
        isinstance(n, ast.Constant) and isinstance(n.value, str) and GROUP.match(n.value)
        for d in split.data[:1]
        for n in ast.walk(d)
    )


def _groups(project: Project) -> Iterator[tuple[str, tuple[str, int, str]]]:
    """(group, place) where the program shows that a group has several samples."""
    for call in project.calls("groupby"):
        key = call.argument("by", 0)
        if isinstance(key, ast.Constant) and isinstance(key.value, str) and GROUP.match(key.value):
            yield _plain(key.value), (call.scope.module.path, call.line, written(call.node)[:80])
    for call in project.calls("repeat", "integers", "randint", "choice"):
        statement = project.statement(call.node, call.scope)
        if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
            continue
        bound = _bound(statement.targets[0])
        sized = call.argument("size", 2) is not None or call.name == "repeat" or len(call.node.args) > 1
        if GROUP.match(bound) and sized and written(statement.value).startswith(written(call.node.func)):
            yield _plain(bound), (call.scope.module.path, call.line, written(statement)[:80])
    for scope in project.scopes:
        if scope.kind != "class":
            yield from _nested(project, scope)


def _nested(project: Project, scope: Scope) -> Iterator[tuple[str, tuple[str, int, str]]]:
    """``for patient in ...: for scan in ...: rows.append(...)``."""
    for loop in project.within(scope, ast.For):
        assert isinstance(loop, ast.For)
        if not isinstance(loop.target, ast.Name) or not GROUP.match(loop.target.id):
            continue
        for inner in ast.walk(loop):
            if inner is loop or not isinstance(inner, ast.For):
                continue
            if any(isinstance(n, ast.Call) and last_name(n.func) == "append" for n in ast.walk(inner)):
                head = f"for {loop.target.id} in {written(loop.iter)}:"
                yield _plain(loop.target.id), (scope.module.path, loop.lineno, head[:80])


def _bound(target: ast.expr) -> str:
    if isinstance(target, ast.Name):
        return target.id
    if isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Constant):
        return str(target.slice.value)
    return ""


def _plain(name: str) -> str:
    return re.sub(r"s?(_?(id|ids|idx|index|no))?$", "", name.lower())
