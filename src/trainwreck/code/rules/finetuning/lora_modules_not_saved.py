"""New rows or a new head, which the adapter neither trains nor saves.

What: tokens are added and the embedding resized, or the model gets a new classification head, and the adapter
configuration names neither ``modules_to_save`` nor ``trainable_token_indices`` (for a head: a fitting ``task_type``).
Why it matters: PEFT freezes everything that it is not told of: the new rows or the head keep their random values, and
are not in the saved adapter.
When it is fine: where the new token is only for padding; with "embed_tokens" among the targets.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.calls import Call
from trainwreck.code.facts import complete, made, only, option, text_of
from trainwreck.code.huggingface import holder, loaded_by, model_loads, words
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.attaching import part_left_behind
from trainwreck.code.rule import sighting
from trainwreck.core.evidence import Evidence
from trainwreck.core.fix import Fix

BAD = (
    """
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM, AutoTokenizer
tok = AutoTokenizer.from_pretrained("m")
model = AutoModelForCausalLM.from_pretrained("m")
tok.add_tokens(["<think>", "</think>"])
model.resize_token_embeddings(len(tok))
config = LoraConfig(r=8, target_modules=["q_proj", "v_proj"])  # expect
model = get_peft_model(model, config)
""",
    """
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForSequenceClassification
def main():
    model = AutoModelForSequenceClassification.from_pretrained("bert-base-uncased", num_labels=5)
    config = LoraConfig(r=8, task_type="CAUSAL_LM")  # expect
    return get_peft_model(model, config)
""",
    """
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForTokenClassification
def main():
    model = AutoModelForTokenClassification.from_pretrained("roberta-base", num_labels=9)
    return get_peft_model(model, LoraConfig(r=8, target_modules=["query", "value"]))  # expect
""",
)
GOOD = """
from peft import LoraConfig, TaskType, get_peft_model
from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification, AutoTokenizer
def tokens(model, tok):
    tok.add_tokens(["<think>"])
    model.resize_token_embeddings(len(tok))
    return get_peft_model(model, LoraConfig(r=8, modules_to_save=["embed_tokens", "lm_head"]))
def indices(model, tok, ids):
    return get_peft_model(model, LoraConfig(r=8, trainable_token_indices={"embed_tokens": ids}))
def head():
    model = AutoModelForSequenceClassification.from_pretrained("m", num_labels=5)
    return get_peft_model(model, LoraConfig(r=8, task_type=TaskType.SEQ_CLS))
def read(kind):
    model = AutoModelForSequenceClassification.from_pretrained("m", num_labels=5)
    return get_peft_model(model, LoraConfig(r=8, task_type=kind))
def pad(model, tok):
    tok.add_special_tokens({"pad_token": "[PAD]"})
    model.resize_token_embeddings(len(tok))
    return get_peft_model(model, LoraConfig(r=8))
"""
EMBEDDING = ("embed_tokens", "wte", "word_embeddings", "embed_in", "shared", "lm_head")
HEADS = ("ForSequenceClassification", "ForTokenClassification", "ForImageClassification", "ForAudioClassification")


def find(project: Project) -> Iterator[Evidence]:
    yield from further(__name__, project, _by_library(project), part_left_behind)


def _by_library(project: Project) -> Iterator[Evidence]:
    for wrap in project.calls("get_peft_model"):
        given, model = option(project, wrap, "peft_config", 1), option(project, wrap, "model", 0)
        if given is None or model is None or not project.from_package(wrap, "peft"):
            continue
        for config in made(project, *given):
            kept = any(
                option(project, config, name) is not None for name in ("modules_to_save", "trainable_token_indices")
            )
            if config.name != "LoraConfig" or kept or not complete(project, config):
                continue
            yield from _tokens(project, wrap, config)
            load = loaded_by(project, *model, model_loads(project))
            if load is not None and holder(load).endswith(HEADS):
                yield from _head(project, load, config)


def _tokens(project: Project, wrap: Call, config: Call) -> Iterator[Evidence]:
    resized = next((c for c in project.calls("resize_token_embeddings") if c.scope is wrap.scope), None)
    added = next((c for c in project.calls("add_tokens", "add_special_tokens") if c.scope is wrap.scope), None)
    if resized is None or added is None or resized.line > wrap.line or _padding_only(project, added):
        return
    targets = option(project, config, "target_modules")
    named = (words(project, *targets) if targets is not None else []) or []
    if any(n.endswith(EMBEDDING) for n in named) or (targets is not None and not named):
        return
    text = "tokens are added, and the adapter neither trains nor saves their rows of the embedding"
    fix = Fix('modules_to_save=["embed_tokens", "lm_head"], or trainable_token_indices of the new ids')
    yield sighting(__name__, config, text, proof=[added, resized], fix=fix)


def _padding_only(project: Project, added: Call) -> bool:
    text = " ".join(text_of(project, s) for s in [added.scope]) if added.name == "add_tokens" else ""
    if added.name == "add_tokens":
        return not added.node.args or "pad" in text.split("add_tokens", 1)[1][:40].lower()
    import ast

    value = added.argument("special_tokens_dict", 0)
    if not isinstance(value, ast.Dict):
        return True
    keys = {k.value for k in value.keys if isinstance(k, ast.Constant)}
    return keys <= {"pad_token", "eos_token", "bos_token", "unk_token"}


def _head(project: Project, load: Call, config: Call) -> Iterator[Evidence]:
    task = option(project, config, "task_type")
    word = only(project, task)
    if task is not None and word in (None, ...):
        from trainwreck.code.calls import written

        text = written(task[0])
        if not text.startswith("TaskType.") and not text.startswith("peft.TaskType."):
            return
        word = text.rsplit(".", 1)[-1]
    if word in ("SEQ_CLS", "TOKEN_CLS"):
        return
    said = f"task_type is {word}" if task is not None else "task_type is not given"
    text = f"{holder(load)} has a new head and {said}: PEFT freezes the head at its random values"
    place = config
    fix = Fix('task_type="SEQ_CLS" (or "TOKEN_CLS"), or modules_to_save with the name of the head')
    yield sighting(__name__, place, text, proof=[load], fix=fix)
