"""Tokens are added to a tokenizer, and the embedding keeps its size.

What: ``add_tokens`` or ``add_special_tokens`` with new tokens, a model of transformers in the same file, and no
``resize_token_embeddings``.
Why it matters: the new ids lie beyond the embedding: an IndexError on the CPU, an assert on a GPU.
When it is fine: where the embedding has spare rows (Qwen, Phi, T5, Pythia), or the token exists already.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import Call
from trainwreck.code.facts import made
from trainwreck.code.huggingface import checkpoint_of, holder, model_loads, name_of, text_has, tokenizer_loads
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.core.evidence import Evidence, Severity
from trainwreck.core.fix import Fix

BAD = (
    """
from transformers import AutoModelForCausalLM, AutoTokenizer
tok = AutoTokenizer.from_pretrained("gpt2")
tok.add_special_tokens({"pad_token": "[PAD]"})  # expect
model = AutoModelForCausalLM.from_pretrained("gpt2")
loss = model(**tok(texts, padding=True, return_tensors="pt")).loss
loss.backward()
""",
    """
from transformers import BertForMaskedLM, BertTokenizerFast, Trainer
def main(args, data):
    tokenizer = BertTokenizerFast.from_pretrained("bert-base-uncased")
    tokenizer.add_tokens(["<drug>", "<gene>"])  # expect
    model = BertForMaskedLM.from_pretrained("bert-base-uncased")
    Trainer(model=model, args=args, train_dataset=data).train()
""",
)
GOOD = (
    """
from transformers import AutoModelForCausalLM, AutoTokenizer
tok = AutoTokenizer.from_pretrained("gpt2")
tok.add_special_tokens({"pad_token": "[PAD]"})
model = AutoModelForCausalLM.from_pretrained("gpt2")
model.resize_token_embeddings(len(tok))
""",
    """
from transformers import AutoModelForCausalLM, AutoTokenizer
tok = AutoTokenizer.from_pretrained("gpt2")
tok.add_special_tokens({"pad_token": "<|endoftext|>"})
tok.add_special_tokens({"pad_token": tok.eos_token})
model = AutoModelForCausalLM.from_pretrained("gpt2")
""",
    """
from transformers import AutoModelForCausalLM, AutoTokenizer
tok = AutoTokenizer.from_pretrained("Qwen/Qwen2.5-0.5B")
tok.add_tokens(["<think>"])
model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-0.5B")
""",
    """
from transformers import AutoTokenizer, GPT2Config, GPT2LMHeadModel
tok = AutoTokenizer.from_pretrained("gpt2")
tok.add_tokens(["<think>"])
model = GPT2LMHeadModel(GPT2Config(vocab_size=len(tok)))
""",
)
SPARE = frozenset(["qwen2", "qwen3", "qwen3_moe", "phi", "phi3", "t5", "gpt_neox", "bloom", "opt", "gemma3_text"])
"""Families whose embedding has more rows than their tokenizer has tokens."""
NEW_PADS = frozenset(["[PAD]", "<PAD>", "<pad>", "<|pad|>", "<|PAD|>", "[pad]"])
"""Padding tokens that checkpoints without one do not have."""


def find(project: Project) -> Iterator[Evidence]:
    ways = ("resize_token_embeddings", "resize_embeddings", "setup_chat_format", "clone_chat_template", "len(tok")
    if text_has(project, *ways, "smart_tokenizer") or not model_loads(project):
        return
    for call in project.calls("add_tokens", "add_special_tokens"):
        load = _tokenizer(project, call)
        models = [c for c in model_loads(project) if c.scope.module.path == call.scope.module.path]
        if load is None or not models or any("Config" in holder(c) for c in models):
            continue
        known = checkpoint_of(project, load)
        new = _new(call, known is not None and known.pad_token is False)
        same = {name_of(project, c) for c in models} == {name_of(project, load)} != {None}
        if not new or (known is not None and known.family in SPARE) or not same:
            continue
        severity: Severity = "critical" if known is not None else "warning"
        text = f"{new} is new, and the embedding of the model is never resized"
        fix = Fix("model.resize_token_embeddings(len(tokenizer))")
        yield sighting(__name__, call, text, proof=[models[0]], fix=fix, severity=severity)


def _tokenizer(project: Project, call: Call) -> Call | None:
    nodes = {c.node: c for c in tokenizer_loads(project)}
    found = (
        [nodes[c.node] for c in made(project, call.receiver, call.scope) if c.node in nodes] if call.receiver else []
    )
    return found[0] if len(found) == 1 else None


def _new(call: Call, without_pad: bool) -> str:
    """What is surely new, "" where it may exist already."""
    value = call.node.args[0] if call.node.args else call.argument("new_tokens") or call.argument("special_tokens_dict")
    if call.name == "add_tokens":
        items = value.elts if isinstance(value, ast.List | ast.Tuple) else [value]
        words = [i.value for i in items if isinstance(i, ast.Constant) and isinstance(i.value, str)]
        return repr(words[0]) if words and len(words) == len(items) else ""
    if not isinstance(value, ast.Dict):
        return ""
    for key, item in zip(value.keys, value.values, strict=True):
        name = key.value if isinstance(key, ast.Constant) else ""
        if name == "additional_special_tokens" and isinstance(item, ast.List) and item.elts:
            return "an additional special token"
        if name == "pad_token" and isinstance(item, ast.Constant) and item.value in NEW_PADS and without_pad:
            return repr(item.value)
    return ""
