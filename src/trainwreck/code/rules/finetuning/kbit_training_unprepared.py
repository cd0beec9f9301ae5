"""A quantised model is trained without being prepared, or prepared after its adapters.

What: a model in 4 or 8 bits goes to ``get_peft_model`` and is trained by an own loop or by ``Trainer``, without
``prepare_model_for_kbit_training``; or that function is called on the wrapped model.
Why it matters: norms stay in half precision and with activation checkpointing no gradient reaches the adapters;
called afterwards it freezes the adapters too, so nothing is trained.
When it is fine: with trainers of TRL, which do it; with ``enable_input_require_grads`` by hand.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.facts import made
from trainwreck.code.huggingface import before, loaded_by, model_loads, quantised, text_has, trains
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.core.evidence import Evidence
from trainwreck.core.fix import Fix

BAD = (
    """
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM, BitsAndBytesConfig, Trainer
def main(args, data):
    base = AutoModelForCausalLM.from_pretrained("m", quantization_config=BitsAndBytesConfig(load_in_4bit=True))
    model = get_peft_model(base, LoraConfig(r=8))  # expect
    Trainer(model=model, args=args, train_dataset=data).train()
""",
    """
from peft import LoraConfig, get_peft_model, prepare_model_for_kbit_training
from transformers import AutoModelForCausalLM
def main(optimizer, loader):
    model = AutoModelForCausalLM.from_pretrained("m")
    model = get_peft_model(model, LoraConfig(r=8))
    model = prepare_model_for_kbit_training(model)  # expect
    for batch in loader:
        model(**batch).loss.backward()
""",
)
GOOD = (
    """
from peft import LoraConfig, get_peft_model, prepare_model_for_kbit_training
from transformers import AutoModelForCausalLM, BitsAndBytesConfig, Trainer
def main(args, data):
    base = AutoModelForCausalLM.from_pretrained("m", quantization_config=BitsAndBytesConfig(load_in_4bit=True))
    base = prepare_model_for_kbit_training(base)
    model = get_peft_model(base, LoraConfig(r=8))
    Trainer(model=model, args=args, train_dataset=data).train()
""",
    """
from peft import LoraConfig
from transformers import AutoModelForCausalLM, BitsAndBytesConfig
from trl import SFTTrainer
def main(args, data):
    base = AutoModelForCausalLM.from_pretrained("m", quantization_config=BitsAndBytesConfig(load_in_4bit=True))
    SFTTrainer(model=base, args=args, train_dataset=data, peft_config=LoraConfig(r=8)).train()
""",
    """
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM, Trainer
def main(args, data):
    model = get_peft_model(AutoModelForCausalLM.from_pretrained("m"), LoraConfig(r=8))
    Trainer(model=model, args=args, train_dataset=data).train()
""",
)


def find(project: Project) -> Iterator[Evidence]:
    wraps = [c for c in project.calls("get_peft_model") if project.from_package(c, "peft")]
    for call in project.calls("prepare_model_for_kbit_training"):
        for wrap in wraps:
            target = call.argument("model", 0)
            if (
                target is not None
                and before(wrap, call)
                and any(c.node is wrap.node for c in made(project, target, call.scope))
            ):
                text = "called on the wrapped model it freezes the adapters as well: nothing is trained"
                fix = Fix("prepare the base first, then get_peft_model")
                yield sighting(__name__, call, text, proof=[wrap], fix=fix, severity="critical")
    if text_has(project, "prepare_model_for_kbit_training", "enable_input_require_grads", "SFTTrainer", "unsloth"):
        return
    for wrap in wraps if trains(project) else ():
        model = wrap.argument("model", 0)
        load = loaded_by(project, model, wrap.scope, model_loads(project))
        if load is not None and quantised(project, load):
            text = "a quantised base is wrapped without prepare_model_for_kbit_training"
            fix = Fix("model = prepare_model_for_kbit_training(model) before get_peft_model")
            yield sighting(__name__, wrap, text, proof=[load], fix=fix, severity="warning")
