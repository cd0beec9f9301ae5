"""A name that no release of the library has.

What: `from transformers import X`, and so for trl, peft, accelerate and datasets, where X is in none of their
releases but close to a name that is.
Why it matters: the import raises an ImportError.
When it is fine: for names that the tables cannot see; only what is one slip away from a real name is told.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.catalogue.releases import TABLES
from trainwreck.code.outdated import guarded
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.code.targets import aim
from trainwreck.core.evidence import Evidence
from trainwreck.core.fix import Fix

BAD = """
from transformers import AutoModelForCasualLM, AutoTokenizer  # expect
from peft import LoRAConfig  # expect
"""
GOOD = """
from transformers import AutoModelForCausalLM, AutoTokenizer, logging
from transformers.utils import something_new
from peft import LoraConfig
import transformers.models.llama as llama
try:
    from trl import GRPOTrainr
except ImportError:
    GRPOTrainr = None
"""


CLOSE = 0.86
"""Similarity (difflib) above which a name counts as a slip: one or two letters in a name of usual length."""
PACKAGES = ("transformers", "trl", "peft", "accelerate", "datasets")


def find(project: Project) -> Iterator[Evidence]:
    for path, walked in project.walked.items():
        for scope in walked.scopes:
            for bindings in scope.bindings.values():
                for binding in bindings:
                    root, _, name = binding.target.partition(".")
                    node = binding.node
                    if binding.kind != "import" or not isinstance(node, ast.ImportFrom) or node.level or "." in name:
                        continue
                    if root not in PACKAGES or not name[:1].isupper() or name.isupper() or len(bindings) > 1:
                        continue
                    meant = _slip(project, path, root, name)
                    if meant and not guarded(project, node, scope):
                        place = next((a for a in node.names if a.name == name), node)
                        text = f"{root} has no {name} in any release; {meant} is close"
                        yield sighting(__name__, (place, scope), text, fix=Fix(f"import {meant}"))


def _slip(project: Project, path: str, root: str, name: str) -> str:
    where = aim(project, TABLES[root], path)
    if where is None or where.table.name(name) is not None or where.table.module(name) is not None:
        return ""
    there = [n for n, ranges in where.table.names.items() if ranges[-1][1] == where.newest[1] and n[:1].isupper()]
    same = [n for n in there if n.lower() == name.lower()]
    from difflib import get_close_matches  # only for names that are not there

    return next(iter(same or get_close_matches(name, there, 1, CLOSE)), "")
