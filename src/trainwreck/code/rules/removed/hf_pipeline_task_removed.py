"""Tasks of pipeline() that are gone.

What: `pipeline("summarization")`, `"translation"`, `"question-answering"`, `"text2text-generation"`, `"image-
to-text"` and others.
Why it matters: a KeyError when the pipeline is made, with transformers 5.
When it is fine: where the project pins transformers below 5.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.catalogue import releases, specifiers
from trainwreck.code.outdated import callee, grade, guarded
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.code.targets import aim
from trainwreck.core.evidence import Evidence
from trainwreck.core.fix import Fix

BAD = """
from transformers import pipeline
sums = pipeline("summarization", model="t5-small")  # expect
talk = pipeline(task="translation_en_to_fr")  # expect
"""
GOOD = """
from transformers import pipeline
from mylib import pipeline as other
other("summarization")
write = pipeline("text-generation", model="gpt2")
tags = pipeline("text-classification")
"""


def find(project: Project) -> Iterator[Evidence]:
    for call in project.calls("pipeline"):
        task = call.argument("task", 0)
        if not isinstance(task, ast.Constant) or not isinstance(task.value, str):
            continue
        if callee(project, call) != ("transformers", "pipeline") or guarded(project, call.node, call.scope):
            continue
        entry = releases.rename("transformers", "task", task.value)
        where = aim(project, "transformers", call.scope.module.path)
        if entry is None or where is None:
            continue
        since = specifiers.parse(entry.since)
        gone = [low >= 0 and where.table.versions[low] >= since for low, _ in where.allowed]
        if not gone[-1]:
            continue
        words = entry.names.get(task.value) or entry.instead
        text = f'the pipeline task "{task.value}" is gone from transformers {entry.since} on; {words}'
        severity = grade(where.pin is not None and all(gone))
        yield sighting(__name__, (task, call.scope), text, fix=Fix(words), severity=severity)
