"""A wrapped model is handed over with an adapter configuration.

What: the model given to a trainer of TRL comes from ``get_peft_model`` (or is a loaded adapter) and ``peft_config``
is given too.
Why it matters: TRL raises; older releases merged the first adapter away or stacked a second one.
When it is fine: with a plain model, or without ``peft_config``.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.arguments import imported
from trainwreck.code.facts import made, option
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.code.seek import keyword_place
from trainwreck.core.evidence import Evidence
from trainwreck.core.fix import Fix

BAD = (
    """
from peft import LoraConfig, get_peft_model
from trl import SFTTrainer
def main(base, data):
    config = LoraConfig(r=8)
    model = get_peft_model(base, config)
    SFTTrainer(model=model, train_dataset=data, peft_config=config).train()  # expect
""",
    """
from peft import PeftModel
from trl import DPOTrainer
def main(base, data, config):
    policy = PeftModel.from_pretrained(base, "adapter", is_trainable=True)
    DPOTrainer(policy, args=None, train_dataset=data, peft_config=config).train()  # expect
""",
)
GOOD = """
from peft import LoraConfig, PeftModel, get_peft_model
from trl import SFTTrainer
def main(base, data, config):
    SFTTrainer(model=base, train_dataset=data, peft_config=config)
    wrapped = get_peft_model(base, config)
    SFTTrainer(model=wrapped, train_dataset=data)
    SFTTrainer(model=wrapped, train_dataset=data, peft_config=None)
    merged = PeftModel.from_pretrained(base, "a").merge_and_unload()
    SFTTrainer(model=merged, train_dataset=data, peft_config=config)
"""


def find(project: Project) -> Iterator[Evidence]:
    for call in project.calls(*TRAINERS):
        given, model = option(project, call, "peft_config"), option(project, call, "model", 0)
        if given is None or model is None or not imported(project, call, "transformers"):
            continue
        if isinstance(given[0], ast.IfExp) or getattr(given[0], "value", ...) is None:
            continue
        makers = made(project, *model)
        wrapped = [c for c in makers if c.name == "get_peft_model" or "Peft" in project.called(c)]
        if wrapped and len(makers) == len(wrapped):
            place = keyword_place(call, "peft_config") if call.node.lineno != call.node.end_lineno else None
            text = "the model is wrapped already, and peft_config asks to wrap it again"
            yield sighting(__name__, place or call, text, proof=wrapped[:1], fix=Fix("leave peft_config out"))


TRAINERS = ("SFTTrainer", "DPOTrainer", "GRPOTrainer", "RewardTrainer", "KTOTrainer", "RLOOTrainer", "ORPOTrainer")
