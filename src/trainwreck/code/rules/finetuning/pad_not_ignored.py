"""Padding counts in the loss.

What: labels are a copy of padded ``input_ids`` (``padding="max_length"``), and nothing turns padding into -100.
Why it matters: most of the loss is about predicting padding; it falls fast and the model learns little else.
When it is fine: with a collator that makes the labels itself, or without padding in the labels.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import Call, written
from trainwreck.code.facts import made, only, option
from trainwreck.code.huggingface import text_has, tokenizer_loads, trainer_calls, trains
from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.code.scopes import Scope
from trainwreck.core.evidence import Evidence
from trainwreck.core.fix import Fix

BAD = (
    """
from transformers import AutoModelForCausalLM, AutoTokenizer, Trainer
tok = AutoTokenizer.from_pretrained("m")
def prepare(rows):
    out = tok(rows["text"], truncation=True, padding="max_length", max_length=256)
    out["labels"] = out["input_ids"].copy()  # expect
    return out
def main(args, data):
    model = AutoModelForCausalLM.from_pretrained("m")
    Trainer(model=model, args=args, train_dataset=data.map(prepare, batched=True)).train()
""",
    """
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer, Trainer
tok = AutoTokenizer.from_pretrained("t5-small")
def prepare(rows):
    inputs = tok(rows["document"], truncation=True, max_length=512)
    targets = tok(text_target=rows["summary"], truncation=True, padding="max_length", max_length=64)
    inputs["labels"] = targets["input_ids"]  # expect
    return inputs
def main(args, data):
    model = AutoModelForSeq2SeqLM.from_pretrained("t5-small")
    Trainer(model=model, args=args, train_dataset=data.map(prepare, batched=True)).train()
""",
)
GOOD = (
    """
from transformers import AutoModelForCausalLM, AutoTokenizer, DataCollatorForLanguageModeling, Trainer
tok = AutoTokenizer.from_pretrained("m")
def prepare(rows):
    out = tok(rows["text"], truncation=True, padding="max_length", max_length=256)
    out["labels"] = out["input_ids"].copy()
    return out
def main(args, data):
    collate = DataCollatorForLanguageModeling(tok, mlm=False)
    model = AutoModelForCausalLM.from_pretrained("m")
    Trainer(model=model, args=args, train_dataset=data, data_collator=collate).train()
""",
    """
from transformers import AutoModelForCausalLM, AutoTokenizer, Trainer
tok = AutoTokenizer.from_pretrained("m")
def prepare(rows):
    out = tok(rows["text"], truncation=True, padding="max_length", max_length=256)
    out["labels"] = [[t if m else -100 for t, m in zip(*r)] for r in zip(out["input_ids"], out["attention_mask"])]
    return out
def main(args, data):
    Trainer(model=AutoModelForCausalLM.from_pretrained("m"), args=args, train_dataset=data).train()
""",
    """
from transformers import AutoModelForCausalLM, AutoTokenizer, Trainer
tok = AutoTokenizer.from_pretrained("m")
def prepare(rows):
    out = tok(rows["text"], truncation=True, max_length=256)
    out["labels"] = out["input_ids"].copy()
    return out
def main(args, data):
    Trainer(model=AutoModelForCausalLM.from_pretrained("m"), args=args, train_dataset=data).train()
""",
)
COPY = pattern(r"(?:list\()?(\w+)(?:\[['\"]input_ids['\"]\]|\.input_ids)(\.copy\(\)|\.clone\(\)|\[:\])?\)?")


def find(project: Project) -> Iterator[Evidence]:
    fixes = ("-100", "ignore_index", "DataCollatorForLanguageModeling", "DataCollatorForCompletion", "shift_labels")
    if text_has(project, *fixes) or not trains(project) or not trainer_calls(project):
        return
    if any(not t.name.startswith(("Trainer", "Seq2Seq")) for t in trainer_calls(project)):
        return
    for scope in project.functions:
        for node in project.within(scope, ast.Assign):
            if not isinstance(node, ast.Assign) or not _is_labels(node.targets[0]):
                continue
            copied = COPY.fullmatch(written(node.value))
            padded = _padded(project, copied.group(1), scope) if copied is not None else None
            if padded is not None:
                text = "the labels hold the padding, and it is never turned into -100"
                fix = Fix("set labels to -100 where attention_mask is 0")
                yield sighting(__name__, (node, scope), text, proof=[padded], fix=fix)


def _is_labels(target: ast.expr) -> bool:
    return isinstance(target, ast.Subscript) and written(target.slice) in ("'labels'", '"labels"')


def _padded(project: Project, name: str, scope: Scope) -> Call | None:
    """The call of a tokenizer that pads to a fixed length and made ``name``."""
    nodes = {c.node for c in tokenizer_loads(project)}
    for binding in project.lookup(name, scope):
        if binding.kind != "assign" or not isinstance(binding.value, ast.Call) or binding.path:
            continue
        call = Call(binding.value, binding.scope)
        if only(project, option(project, call, "padding")) != "max_length":
            continue
        if any(c.node in nodes for c in made(project, call.node.func, call.scope)) or "tok" in written(call.node.func):
            return call
    return None
