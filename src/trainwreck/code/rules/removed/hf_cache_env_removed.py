"""A cache variable that is no longer read.

What: `TRANSFORMERS_CACHE` set in the environment of the program.
Why it matters: transformers 5 reads HF_HOME and HF_HUB_CACHE only: files are downloaded again to another
disk.
When it is fine: with transformers below 5, or beside HF_HOME.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.beside import texts
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting, sign_of
from trainwreck.code.targets import Aim, aim
from trainwreck.core.evidence import Evidence, Where
from trainwreck.core.fix import Fix

BAD = """
import os
os.environ["TRANSFORMERS_CACHE"] = "/big/disk"  # expect
import transformers
"""
GOOD = """
import os
os.environ["HF_HOME"] = "/big/disk"
os.environ["TRANSFORMERS_CACHE"] = "/big/disk"
import transformers
"""


NAMES = ("TRANSFORMERS_CACHE", "PYTORCH_TRANSFORMERS_CACHE", "PYTORCH_PRETRAINED_BERT_CACHE")
TEXT = "{} is not read by transformers 5: the cache goes to the default place"
FIX = Fix("set HF_HOME (or HF_HUB_CACHE)")


def find(project: Project) -> Iterator[Evidence]:
    for path, walked in project.walked.items():
        text = walked.top.module.text
        if "TRANSFORMERS_CACHE" not in text or "transformers" not in text.replace("TRANSFORMERS", "") or "HF_H" in text:
            continue
        if not _new(aim(project, "transformers", path)):
            continue
        for node in ast.walk(walked.top.module.tree):
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
                key = node.targets[0].slice
                if isinstance(key, ast.Constant) and key.value in NAMES:
                    yield sighting(__name__, (node, walked.top), TEXT.format(key.value), fix=FIX)
    for path, text in texts(project, ("shell",)):
        found = re.search(r"^\s*(?:export\s+|ENV\s+)?(TRANSFORMERS_CACHE)[= ]", text, re.MULTILINE)
        if found and "HF_H" not in text and _new(aim(project, "transformers", path)):
            line = text.count("\n", 0, found.start(1)) + 1
            place = Where("config", path=path, line=line, column=1, key=found[1])
            yield Evidence(sign_of(__name__), "direct", TEXT.format(found[1]), place, fix=FIX)


def _new(where: Aim | None) -> bool:
    return where is not None and where.newest[0] >= 0 and where.table.versions[where.newest[0]] >= (5,)
