"""A padded batch is generated from without its mask.

What: ``generate(batch["input_ids"])`` of what a tokenizer padded, without ``attention_mask``.
Why it matters: where padding and end token are the same the mask can't be guessed: padding is read as text.
When it is fine: for one prompt, and with ``**batch``.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import Call
from trainwreck.code.facts import complete, made, only, option
from trainwreck.code.huggingface import tokenizer_loads
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.code.rules.generation.right_padding_generation import single, sources
from trainwreck.core.evidence import Evidence
from trainwreck.core.fix import Fix

BAD = (
    """
from transformers import AutoModelForCausalLM, AutoTokenizer
tok = AutoTokenizer.from_pretrained("m", padding_side="left")
tok.pad_token = tok.eos_token
model = AutoModelForCausalLM.from_pretrained("m")
def ask(prompts):
    batch = tok(prompts, padding=True, return_tensors="pt")
    return model.generate(batch["input_ids"], max_new_tokens=20)  # expect
""",
    """
from transformers import AutoTokenizer
tok = AutoTokenizer.from_pretrained("m", padding_side="left")
def ask(model, prompts):
    ids = tok(prompts, padding=True, return_tensors="pt").input_ids
    return model.generate(input_ids=ids, max_new_tokens=20)  # expect
""",
)
GOOD = """
from transformers import AutoTokenizer
tok = AutoTokenizer.from_pretrained("m", padding_side="left")
def ask(model, prompts, prompt):
    batch = tok(prompts, padding=True, return_tensors="pt")
    model.generate(**batch), model.generate(batch.input_ids, attention_mask=batch.attention_mask)
    model.generate(tok(prompt, return_tensors="pt").input_ids)
    return model.generate(tok("one", padding=True, return_tensors="pt").input_ids)
"""


def find(project: Project) -> Iterator[Evidence]:
    nodes = {c.node for c in tokenizer_loads(project)}
    for call in project.calls("generate") if nodes else ():
        value = call.argument("input_ids", 0)
        if value is None or not complete(project, call) or option(project, call, "attention_mask") is not None:
            continue
        for maker in _ids(project, value, call):
            padded = only(project, option(project, maker, "padding")) in (True, "longest", "max_length")
            if not padded or not maker.node.args or single(maker.node.args[0]):
                continue
            if any(c.node in nodes for c in made(project, maker.node.func, maker.scope)):
                text = "the batch is padded, and generate gets no attention_mask"
                yield sighting(__name__, call, text, proof=[maker], fix=Fix("generate(**batch)"))


def _ids(project: Project, node: ast.expr, call: Call) -> Iterator[Call]:
    """The tokenizer calls behind ``x.input_ids``, ``x["input_ids"]`` or a name for one of them."""
    if isinstance(node, ast.Name):
        bindings = [b for b in project.lookup(node.id, call.scope) if b.kind == "assign" and not b.path]
        if len(bindings) != 1 or bindings[0].value is None:
            return
        node = bindings[0].value
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("to", "cuda"):
        node = node.func.value
    if (isinstance(node, ast.Attribute) and node.attr == "input_ids") or (
        isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and node.slice.value == "input_ids"
    ):
        yield from sources(project, node.value, call.scope)
