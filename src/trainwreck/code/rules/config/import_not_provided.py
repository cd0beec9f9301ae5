"""A module is imported that no requirement provides.

What: an import of a well-known package that is in none of the project's lists of requirements and comes with none of
what is in them.
Why it matters: the program runs where it was written and ends with ModuleNotFoundError everywhere else.
When it is fine: optional imports (in a `try`, under an `if`, in a function), tests and examples, lists that include
others, and projects without a list.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.catalogue.tables import settings_table
from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.code.settings.requirements import complete, requirements
from trainwreck.code.triggers import BESIDE
from trainwreck.core.evidence import Evidence
from trainwreck.core.fix import Fix

WORDS = (BESIDE,)
BAD = (
    """
#--- requirements.txt
torch
numpy
tqdm
#--- train.py
import torch
import cv2  # expect
from sklearn.metrics import f1_score  # expect
""",
    """
#--- pyproject.toml
[project]
name = "x"
dependencies = ["torch>=2", "transformers", "datasets"]
#--- src/x/train.py
import transformers
import peft  # expect
""",
)
GOOD = """
#--- requirements.txt
torch
transformers
scikit-learn
pillow
#--- train.py
import os
import torch, numpy as np
import yaml, requests
from PIL import Image
from sklearn.svm import SVC
import my_private_thing
import datasets
try:
    import wandb
except ImportError:
    wandb = None
def plot():
    import matplotlib.pyplot as plt
#--- datasets/__init__.py
x = 1
#--- tests/test_x.py
import pandas
"""
FEW = 3
"""Entries that a list must have to count as one that was kept: shorter ones are often only a hint."""
_SIDE = pattern(
    r"(?:^|/)(?:tests?|docs?|examples?|notebooks?|scripts?|tools|benchmarks?)/|(?:^|/)(?:test_|conftest|setup\.)"
)


def find(project: Project) -> Iterator[Evidence]:
    table = settings_table("packages")
    lists: dict[str, set[str]] = {}
    for item in requirements(project):
        lists.setdefault(item.path.rpartition("/")[0], set()).add(item.name)
    given = {folder: _with_theirs(names, table["brings"]) for folder, names in lists.items() if len(names) >= FEW}
    if not given:
        return
    told_of: set[str] = set()
    for path, walked in project.walked.items():
        folders = [f for f in given if not f or path.startswith(f + "/")]
        if (
            not folders
            or path.endswith(".ipynb")
            or _SIDE.search(path)
            or not all(complete(project, f) for f in folders)
        ):
            continue
        names = set().union(*(given[f] for f in folders))
        for binding in (b for found in walked.top.bindings.values() for b in found if b.kind == "import"):
            root = binding.target.split(".")[0]
            provided = table["module"].get(root)
            node = binding.node
            if provided is None or root in told_of or names & set(provided) or _local(project, root):
                continue
            if project.parent(node, walked.top) is not walked.top.node or binding.target.startswith("."):
                continue
            told_of.add(root)
            place = node if isinstance(node, ast.ImportFrom | ast.Import) else walked.top.node
            text = f"{root} is imported, but no requirement provides it"
            yield sighting(__name__, (place, walked.top), text, fix=Fix(f"add {provided[0]} to the requirements"))


def _with_theirs(names: set[str], brings: dict[str, list[str]]) -> set[str]:
    """These distributions and what comes with them."""
    found, todo = set(names), list(names)
    while todo:
        for other in brings.get(todo.pop(), ()):
            if other not in found:
                found.add(other)
                todo.append(other)
    return found


def _local(project: Project, root: str) -> bool:
    return any(p == f"{root}.py" or p.endswith(f"/{root}.py") or f"/{root}/" in f"/{p}" for p in project.walked)
