"""Small functions of a program, worked out statement by statement (``trial.steps``)."""

from __future__ import annotations

import numpy as np
import pytest

from trainwreck.code.project import Project
from trainwreck.code.read import parse
from trainwreck.code.rehearsal.trial.bench import Unknown
from trainwreck.code.rehearsal.trial.steps import Steps
from trainwreck.core.program import Module, Program

PROGRAM = """
import numpy as np
import torch
from itertools import groupby
BLANK = 0
NAMES = {n: c for n, c in enumerate("_abc")}
def text(scores):
    return "".join(NAMES[k] for k, _ in groupby(scores.argmax(-1).tolist()) if k != BLANK)
def distance(a, b):
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        before, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (x != y))
    return row[-1]
def pairs(rows, size=2):
    for at in range(0, len(rows), size):
        yield rows[at : at + size]
def ranks(values):
    order = torch.argsort(values, descending=True)
    place = np.empty(len(values))
    place[order] = np.arange(len(values))
    return place
def grows(x):
    while True:
        x = x * x
def doubled(rows):
    for _ in range(60):
        rows.extend(rows)
    return rows
def large():
    return torch.zeros(10**7, 10**7)
def reads(path):
    return open(path).read()
"""


@pytest.fixture(scope="module")
def project() -> Project:
    module = parse("train.py", PROGRAM)
    assert isinstance(module, Module)
    return Project(Program({"train.py": module}))


def worked(project: Project, name: str, *given: object) -> object:
    return Steps(project).call(next(f for f in project.functions if f.name == name), list(given))


def test_what_functions_give(project: Project) -> None:
    assert worked(project, "text", np.eye(4)[[1, 1, 0, 1, 2, 3, 3]]) == "aabc"
    assert worked(project, "distance", "kitten", "sitting") == 3
    assert worked(project, "pairs", [1, 2, 3, 4, 5]) == [[1, 2], [3, 4], [5]]
    assert np.asarray(worked(project, "ranks", np.asarray([0.1, 0.9, 0.5]))).tolist() == [2, 0, 1]


@pytest.mark.parametrize(
    ("name", "given"), [("grows", (3,)), ("doubled", ([1],)), ("large", ()), ("reads", ("/etc/hosts",))]
)
def test_what_is_not_worked_out(project: Project, name: str, given: tuple[object, ...]) -> None:
    with pytest.raises(Unknown):
        worked(project, name, *given)
