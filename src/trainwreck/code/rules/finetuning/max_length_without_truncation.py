"""A length that cuts nothing.

What: a tokenizer is called with ``padding`` and ``max_length`` and without ``truncation``.
Why it matters: with padding asked for, ``max_length`` only pads: longer texts keep their length, batches don't stack,
or positions run out.
When it is fine: without ``padding`` (then a length alone does cut), or where nothing is longer.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import Call
from trainwreck.code.facts import complete, made, only, option
from trainwreck.code.huggingface import tokenizer_loads
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.core.evidence import Evidence
from trainwreck.core.fix import Fix

BAD = (
    """
from transformers import AutoTokenizer
tok = AutoTokenizer.from_pretrained("bert-base-uncased")
def prepare(rows):
    return tok(rows["text"], padding="max_length", max_length=128)  # expect
""",
    """
from transformers import AutoTokenizer
class Texts:
    def __init__(self):
        self.tokenizer = AutoTokenizer.from_pretrained("m")
    def __getitem__(self, i):
        return self.tokenizer(self.texts[i], max_length=64, padding=True, truncation=False)  # expect
""",
)
GOOD = """
from transformers import AutoTokenizer
tok = AutoTokenizer.from_pretrained("bert-base-uncased")
def prepare(rows, options):
    tok(rows["text"], padding="max_length", max_length=128, truncation=True)
    tok(rows["text"], max_length=128)
    tok(rows["text"], padding=True)
    tok(rows["text"], padding=pad, max_length=128)
    tok("one short text", padding="max_length", max_length=77)
    return tok(rows["text"], padding="max_length", max_length=128, **options)
"""


def find(project: Project) -> Iterator[Evidence]:
    nodes = {c.node for c in tokenizer_loads(project)}
    if not nodes:
        return
    for walked in project.walked.values():
        for node, scope in walked.calls:
            if not any(k.arg == "max_length" for k in node.keywords) or not node.args:
                continue
            call = Call(node, scope)
            padding = only(project, option(project, call, "padding"))
            truncation = option(project, call, "truncation")
            off = truncation is None or only(project, truncation) is False
            text_ = node.args[0]
            if padding not in (True, "max_length", "longest") or not off or not complete(project, call):
                continue
            if isinstance(text_, ast.Constant) or not isinstance(node.func, ast.Name | ast.Attribute):
                continue
            if only(project, option(project, call, "max_length")) is None:
                continue
            if any(c.node in nodes for c in made(project, node.func, scope)):
                text = "max_length cuts nothing here: padding is asked for and truncation is not"
                yield sighting(__name__, call, text, fix=Fix("truncation=True"))
