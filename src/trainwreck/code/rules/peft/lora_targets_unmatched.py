"""``target_modules`` of a LoRA configuration names layers that the model does not have.

What: names of another architecture ("query_key_value" for a Llama).
Why it matters: PEFT refuses, or adapts fewer layers than meant.
When it is fine: with ``"all-linear"`` or names from ``model.named_modules()``.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import Call
from trainwreck.code.facts import made, option
from trainwreck.code.huggingface import family_of, linear_layers, loaded_by, model_loads, words
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.attaching import none_picked, nowhere
from trainwreck.code.rule import guess, sighting
from trainwreck.code.scopes import Scope
from trainwreck.code.seek import keyword_place
from trainwreck.code.surface import Surface
from trainwreck.core.evidence import Evidence, Severity
from trainwreck.core.fix import Fix

SURFACES = (
    r"[Tt]arget modules .*not found",
    r"NoMatchingPeftModule|No modules were targeted|Please specify `target_modules`",
)
ERROR = "ValueError: Target modules {'query'} not found in the base model."
BAD = (
    """
from peft import LoraConfig, get_peft_model
from transformers import LlamaConfig, LlamaForCausalLM
def build():
    return LlamaForCausalLM(LlamaConfig(hidden_size=32))
def main():
    base = build()
    config = LoraConfig(
        r=4,
        target_modules=["query_key_value", "dense"],  # expect
    )
    return get_peft_model(base, config)
""",
    """
from peft import LoraConfig, get_peft_model
def main(base):
    config = LoraConfig(
        r=8,
        target_modules=["query"],  # expect
    )
    return get_peft_model(base, config)  # fails
""",
    """
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM
model = AutoModelForCausalLM.from_pretrained("gpt2")
config = LoraConfig(
    r=8,
    target_modules=["q_proj", "v_proj"],  # expect
)
model = get_peft_model(model, config)
""",
    """
from peft import LoraConfig
from transformers import AutoModelForCausalLM
from trl import SFTTrainer
NAME = "mistralai/Mistral-7B-v0.1"
TARGETS = ("query_key_value",)
base = AutoModelForCausalLM.from_pretrained(NAME)
SFTTrainer(base, peft_config=LoraConfig(r=8, target_modules=TARGETS), train_dataset=data).train()  # expect
""",
    """
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM
model = AutoModelForCausalLM.from_pretrained("mistralai/Mistral-7B-v0.1")
config = LoraConfig(r=8, target_modules=["q_proj", "v_prj"])  # expect
model = get_peft_model(model, config)
""",
)
GOOD = (
    """
from peft import get_peft_model
def main(base, config):
    return get_peft_model(base, config)  # fails
""",
    """
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM
one = get_peft_model(AutoModelForCausalLM.from_pretrained("gpt2"), LoraConfig(target_modules=["c_attn", "c_proj"]))
two = get_peft_model(AutoModelForCausalLM.from_pretrained("gpt2"), LoraConfig(target_modules="all-linear"))
three = get_peft_model(AutoModelForCausalLM.from_pretrained("gpt2"), LoraConfig(target_modules=["attn.c_attn"]))
four = get_peft_model(AutoModelForCausalLM.from_pretrained("me/own"), LoraConfig(target_modules=["q_proj"]))
five = get_peft_model(AutoModelForCausalLM.from_pretrained("gpt2"), LoraConfig(target_modules=r".*attn.*"))
six = get_peft_model(AutoModelForCausalLM.from_pretrained("gpt2"), LoraConfig(target_modules=["wte", "lm_head"]))
seven = get_peft_model(AutoModelForCausalLM.from_pretrained(name), LoraConfig(target_modules=["q_proj"]))
""",
)
EMBEDDINGS = frozenset(
    ["lm_head", "embed_tokens", "wte", "wpe", "score", "classifier", "embed_out", "embed_in", "embeddings", "shared"]
)
"""Modules beside the linear layers of the blocks; those of all families, for they are rarely mistaken."""


def find(project: Project) -> Iterator[Evidence]:
    yield from further(__name__, project, _of_family(project), nowhere, none_picked)


def _of_family(project: Project) -> Iterator[Evidence]:
    """Names that the family of the checkpoint does not have, by the table of checkpoints."""
    for wrap, model, config in _wrapped(project):
        load = loaded_by(project, *model, model_loads(project))
        family = family_of(project, load) if load is not None else ""
        layers = linear_layers(family)
        targets = option(project, config, "target_modules")
        names = words(project, *targets) if targets is not None else None
        if load is None or not layers or not names:
            continue
        has = layers | EMBEDDINGS
        absent = [n for n in names if n.rsplit(".", 1)[-1] not in has and not n.rsplit(".", 1)[-1].isdigit()]
        if not absent or (len(absent) < len(names) and family not in PLAIN):
            continue
        place = keyword_place(config, "target_modules") or config
        text = f"{family} has no layers called {', '.join(absent[:4])}"
        if len(absent) < len(names):
            text += ": only part of the intended layers gets an adapter"
        fix = Fix(f'of {", ".join(sorted(layers))}, or target_modules="all-linear"')
        severity: Severity = "critical" if len(absent) == len(names) else "warning"
        yield sighting(__name__, place, text, proof=[load, wrap], fix=fix, severity=severity)


PLAIN = frozenset(
    ["llama", "mistral", "qwen2", "qwen3", "gemma", "gemma2", "gpt2", "gpt_neox", "bert", "roberta", "opt"]
)
"""Families without further kinds of linear layers, where one name that is not in the list is a mistake."""


def _wrapped(project: Project) -> Iterator[tuple[Call, tuple[ast.expr, Scope], Call]]:
    """(call, model, configuration) where an adapter configuration meets a model."""
    for call in project.calls(
        "get_peft_model", "SFTTrainer", "DPOTrainer", "GRPOTrainer", "RewardTrainer", "KTOTrainer"
    ):
        model = option(project, call, "model", 0)
        given = option(project, call, "peft_config", 1 if call.name == "get_peft_model" else None)
        if model is None or given is None or project.resolve(call.node.func, call.scope) is not None:
            continue
        configs = {c.node: c for c in made(project, *given) if c.name in CONFIGS}
        if len(configs) == 1:
            yield call, model, next(iter(configs.values()))


CONFIGS = ("LoraConfig", "AdaLoraConfig", "LoHaConfig", "LoKrConfig", "OFTConfig", "IA3Config")


def trace(project: Project, surface: Surface) -> Iterator[Evidence]:
    yield from locate(project, surface)


def locate(project: Project, surface: Surface | None) -> Iterator[Evidence]:
    for call in project.calls("LoraConfig", "IA3Config", "AdaLoraConfig", "LoHaConfig", "LoKrConfig", "OFTConfig"):
        place = keyword_place(call, "target_modules")
        yield guess(__name__, place or call, "the layers to adapt are named here")
        return
