"""An adapter is loaded or made frozen, and then trained.

What: ``PeftModel.from_pretrained`` without ``is_trainable=True``, or a configuration with ``inference_mode=True``, of
a model that goes to a trainer or an optimizer.
Why it matters: no parameter of the adapter needs a gradient; training fails or only the rest learns.
When it is fine: for inference, and after merging.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.arguments import attributes_set
from trainwreck.code.calls import Call, last_name
from trainwreck.code.facts import complete, made, only, optimizers, option
from trainwreck.code.huggingface import trainer_calls, trainer_option, trains
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.code.scopes import Scope
from trainwreck.core.evidence import Evidence
from trainwreck.core.fix import Fix

BAD = (
    """
from peft import PeftModel
from transformers import Trainer
def main(base, args, data):
    model = PeftModel.from_pretrained(base, "adapter")  # expect
    Trainer(model=model, args=args, train_dataset=data).train()
""",
    """
from peft import LoraConfig, get_peft_model
from transformers import Trainer
def main(base, args, data):
    config = LoraConfig(r=8, inference_mode=True)  # expect
    Trainer(model=get_peft_model(base, config), args=args, train_dataset=data).train()
""",
    """
import torch
from peft import AutoPeftModelForCausalLM
def main(loader):
    model = AutoPeftModelForCausalLM.from_pretrained("adapter")  # expect
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for batch in loader:
        model(**batch).loss.backward()
        optimizer.step()
""",
)
GOOD = """
from peft import LoraConfig, PeftModel, get_peft_model
from transformers import Trainer
def main(base, args, data):
    old = PeftModel.from_pretrained(base, "adapter").merge_and_unload()
    Trainer(model=get_peft_model(old, LoraConfig(r=8)), args=args, train_dataset=data).train()
    more = PeftModel.from_pretrained(base, "adapter", is_trainable=True)
    Trainer(model=more, args=args, train_dataset=data).train()
    judge = PeftModel.from_pretrained(base, "adapter")
    print(Trainer(model=judge, args=args, eval_dataset=data).evaluate())
    return LoraConfig(inference_mode=False)
"""


def find(project: Project) -> Iterator[Evidence]:
    if "requires_grad" in attributes_set(project) or any(True for _ in project.calls("requires_grad_", "set_adapter")):
        return
    for place, user in _trained(project):
        for call in made(project, *place):
            held = project.called(call)
            loads = call.name == "from_pretrained" and "Peft" in held and held.split(".")[0] in ("peft", "trl")
            if loads and option(project, call, "is_trainable") is None and complete(project, call):
                text = "the adapter is loaded frozen (is_trainable is not given) and then trained"
                yield sighting(__name__, call, text, proof=[user], fix=Fix("is_trainable=True"))
            config = option(project, call, "peft_config", 1) if call.name == "get_peft_model" else None
            for inner in made(project, *config) if config is not None else ():
                if inner.name.endswith("Config") and only(project, option(project, inner, "inference_mode")) is True:
                    text = "inference_mode=True makes the adapter frozen, and it is trained"
                    yield sighting(__name__, inner, text, proof=[user], fix=Fix("leave inference_mode out"))


def _trained(project: Project) -> Iterator[tuple[tuple[ast.expr, Scope], Call]]:
    """What trainers and optimizers are given to train, with the call that gets it."""
    if not trains(project):
        return
    for trainer in trainer_calls(project):
        model, data = trainer_option(project, trainer, "model"), trainer_option(project, trainer, "train_dataset")
        if model is not None and (data is not None or trainer.open_ended):
            yield model, trainer
    for built in optimizers(project):
        value = built.argument("params", 0)
        while isinstance(value, ast.Call) and value.args and last_name(value.func) in ("filter", "list"):
            value = value.args[-1]
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr == "parameters":
            yield (value.func.value, built.scope), built
