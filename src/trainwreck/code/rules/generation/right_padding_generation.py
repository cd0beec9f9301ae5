"""A batch for a decoder is padded on the right before it generates.

What: a tokenizer pads a batch for ``generate`` of a decoder-only model, and ``padding_side`` is never set to "left".
Why it matters: generation goes on after the padding: shorter prompts get answers to nothing.
When it is fine: for encoder-decoders, for one prompt, and for tokenizers whose files say that they pad left.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import Call
from trainwreck.code.facts import made, only, option
from trainwreck.code.huggingface import checkpoint_of, holder, loaded_by, model_loads, text_has, tokenizer_loads
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.code.scopes import Scope
from trainwreck.core.evidence import Evidence, Severity
from trainwreck.core.fix import Fix

BAD = (
    """
from transformers import AutoModelForCausalLM, AutoTokenizer
tok = AutoTokenizer.from_pretrained("gpt2")
tok.pad_token = tok.eos_token
model = AutoModelForCausalLM.from_pretrained("gpt2")
def ask(prompts):
    batch = tok(prompts, padding=True, return_tensors="pt").to("cuda")  # expect
    return tok.batch_decode(model.generate(**batch, max_new_tokens=20))
""",
    """
from transformers import GPT2LMHeadModel, GPT2Tokenizer
class Bot:
    def __init__(self):
        self.tokenizer = GPT2Tokenizer.from_pretrained("gpt2", padding_side="right")
        self.model = GPT2LMHeadModel.from_pretrained("gpt2").eval()
    def ask(self, prompts):
        enc = self.tokenizer(prompts, padding="longest", return_tensors="pt")  # expect
        return self.model.generate(enc.input_ids, attention_mask=enc.attention_mask, max_new_tokens=20)
""",
    """
from transformers import AutoModelForCausalLM, AutoTokenizer
tok = AutoTokenizer.from_pretrained("m")
model = AutoModelForCausalLM.from_pretrained("m")
enc = tok(["a", "b c"], padding=True, return_tensors="pt")  # expect
out = model.generate(enc["input_ids"], max_new_tokens=5)
""",
)
GOOD = (
    """
from transformers import AutoModelForCausalLM, AutoTokenizer
tok = AutoTokenizer.from_pretrained("gpt2", padding_side="left")
model = AutoModelForCausalLM.from_pretrained("gpt2")
enc = tok(["a", "b c"], padding=True, return_tensors="pt")
out = model.generate(**enc, max_new_tokens=5)
""",
    """
from transformers import AutoModelForCausalLM, AutoModelForSeq2SeqLM, AutoTokenizer
tok = AutoTokenizer.from_pretrained("google/flan-t5-base")
model = AutoModelForSeq2SeqLM.from_pretrained("google/flan-t5-base")
enc = tok(["a", "b c"], padding=True, return_tensors="pt")
out = model.generate(**enc, max_new_tokens=5)
""",
    """
from transformers import AutoModelForCausalLM, AutoTokenizer
tok = AutoTokenizer.from_pretrained("gpt2")
model = AutoModelForCausalLM.from_pretrained("gpt2")
one = tok("a", padding=True, return_tensors="pt")
out = model.generate(**one, max_new_tokens=5), model.generate(**tok(texts, return_tensors="pt"))
loss = model(**tok(texts, padding=True, return_tensors="pt")).loss
""",
)
RIGHT = frozenset(["gpt2", "gpt_neo", "gpt_neox", "gptj", "opt"])
"""Families whose tokenizer files name no side, so that the default (right) holds."""


def find(project: Project) -> Iterator[Evidence]:
    if text_has(
        project, 'padding_side="left"', "padding_side='left'", 'padding_side = "left"', "padding_side = 'left'"
    ):
        return
    loads, seen = model_loads(project), set()
    for call in project.calls("generate"):
        if call.receiver is None:
            continue
        load = loaded_by(project, call.receiver, call.scope, loads)
        if load is None or not holder(load).endswith(("ForCausalLM", "LMHeadModel")):
            continue
        for padded in _padded(project, call):
            if padded.node in seen:
                continue
            seen.add(padded.node)
            known = checkpoint_of(project, load)
            if known is not None and not known.decoder:
                continue
            certain = known is not None and known.family in RIGHT
            severity: Severity = "critical" if certain else "warning"
            hedge = "" if certain else " (unless the files of this tokenizer say left)"
            text = f"this batch is padded on the right{hedge}, and the model continues after the padding"
            fix = Fix('tokenizer.padding_side = "left"')
            yield sighting(__name__, padded, text, proof=[call], fix=fix, severity=severity)


def _padded(project: Project, call: Call) -> Iterator[Call]:
    """Calls of a tokenizer with padding whose result is handed to ``generate``."""
    nodes = {c.node for c in tokenizer_loads(project)}
    values: list[ast.expr] = [
        *call.node.args[:1],
        *(k.value for k in call.node.keywords if k.arg in (None, "input_ids")),
    ]
    for value in values:
        for maker in sources(project, value, call.scope):
            padding = only(project, option(project, maker, "padding"))
            if padding not in (True, "longest", "max_length") or not maker.node.args or single(maker.node.args[0]):
                continue
            if any(c.node in nodes for c in made(project, maker.node.func, maker.scope)):
                yield maker


def sources(project: Project, node: ast.expr, scope: Scope) -> Iterator[Call]:
    """The calls behind a value: through names, ``.input_ids``, ``["input_ids"]`` and ``.to(...)``."""
    while isinstance(node, ast.Attribute | ast.Subscript) and not isinstance(node.value, ast.Call):
        if isinstance(node, ast.Attribute) and node.attr not in ("input_ids", "data"):
            break
        node = node.value
    for call in made(project, node, scope):
        inner: ast.expr = call.node
        while (
            isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute) and inner.func.attr in ("to", "cuda")
        ):
            inner = inner.func.value
        if isinstance(inner, ast.Call):
            yield Call(inner, call.scope)


def single(node: ast.expr) -> bool:
    """True for one text: a literal, a list of one."""
    if isinstance(node, ast.List | ast.Tuple):
        return len(node.elts) == 1
    return isinstance(node, ast.Constant | ast.JoinedStr)
