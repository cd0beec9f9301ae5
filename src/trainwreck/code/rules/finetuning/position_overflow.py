"""Texts are cut to a length that the model has no positions for.

What: the tokenizer's ``max_length`` (or ``model_max_length``) is above the learned positions of the checkpoint.
Why it matters: the first longer text asks for a position that does not exist: an IndexError, or an assert on a GPU.
When it is fine: for models with rotary or relative positions.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import Call
from trainwreck.code.facts import made, only, option
from trainwreck.code.huggingface import checkpoint_of, model_loads, name_of, tokenizer_loads
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.code.seek import keyword_place
from trainwreck.core.evidence import Evidence
from trainwreck.core.fix import Fix

WORDS = ("from_pretrained",)
BAD = (
    """
from transformers import AutoModelForSequenceClassification, AutoTokenizer
tok = AutoTokenizer.from_pretrained("bert-base-uncased")
model = AutoModelForSequenceClassification.from_pretrained("bert-base-uncased")
def prepare(rows):
    return tok(rows["text"], truncation=True, max_length=1024)  # expect
""",
    """
from transformers import AutoModelForCausalLM, AutoTokenizer
MAX = 2048
tok = AutoTokenizer.from_pretrained("gpt2", model_max_length=MAX)  # expect
model = AutoModelForCausalLM.from_pretrained("gpt2")
""",
)
GOOD = """
from transformers import AutoModelForSequenceClassification, AutoTokenizer
tok = AutoTokenizer.from_pretrained("bert-base-uncased")
model = AutoModelForSequenceClassification.from_pretrained("bert-base-uncased")
flan = AutoTokenizer.from_pretrained("google/flan-t5-base")
own = AutoTokenizer.from_pretrained("./mine")
def prepare(rows):
    tok(rows["text"], truncation=True, max_length=512)
    flan(rows["text"], truncation=True, max_length=4096)
    own(rows["text"], truncation=True, max_length=4096)
    return tok(rows["text"], truncation=True, max_length=limit)
"""
LEARNED = frozenset(["bert", "roberta", "distilbert", "xlm-roberta", "electra", "gpt2", "opt", "gpt_neo", "bart"])
"""Families with a table of learned positions."""


def find(project: Project) -> Iterator[Evidence]:
    nodes = {c.node: c for c in tokenizer_loads(project)}
    names = {name_of(project, c) for c in model_loads(project)}
    if any("max_position_embeddings" in w.top.module.text for w in project.walked.values()):
        return
    for load in nodes.values():
        yield from _above(project, load, load, "model_max_length", names)
    for word in ("__call__", "encode", "encode_plus", "batch_encode_plus"):
        for call in project.calls(word):
            yield from _used(project, call, call.receiver, nodes, names)
    for walked in project.walked.values():
        for node, scope in walked.calls:
            call = Call(node, scope)
            if call.receiver is None and any(k.arg == "max_length" for k in node.keywords):
                yield from _used(project, call, node.func, nodes, names)


def _used(
    project: Project, call: Call, holder: ast.expr | None, nodes: dict[ast.Call, Call], names: set[str | None]
) -> Iterator[Evidence]:
    if holder is None:
        return
    loads = [nodes[c.node] for c in made(project, holder, call.scope) if c.node in nodes]
    if len(loads) == 1:
        yield from _above(project, call, loads[0], "max_length", names)


def _above(project: Project, call: Call, load: Call, word: str, names: set[str | None]) -> Iterator[Evidence]:
    known = checkpoint_of(project, load)
    limit = only(project, option(project, call, word))
    if known is None or known.positions is None or known.family not in LEARNED or not isinstance(limit, int):
        return
    if limit > known.positions and name_of(project, load) in names:
        place = keyword_place(call, word) if call.node.lineno != call.node.end_lineno else None
        text = f"{word}={limit}, and {known.id} has {known.positions} positions"
        yield sighting(__name__, place or call, text, proof=[load], fix=Fix(f"{word}={known.positions}"))
