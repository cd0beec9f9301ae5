"""An adapter on the output head, for a trainer that reads the head's weight itself.

What: ``target_modules`` holds "lm_head" in the ``peft_config`` of a trainer of TRL from 1.0 on.
Why it matters: the loss is computed from ``lm_head.weight`` directly, so the adapter would never be trained; TRL
raises.
When it is fine: with trainers that call the head, and in older releases.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.arguments import imported
from trainwreck.code.facts import made, option
from trainwreck.code.huggingface import release, words
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.code.seek import keyword_place
from trainwreck.core.evidence import Evidence
from trainwreck.core.fix import Fix

BAD = (
    """
from peft import LoraConfig
from trl import SFTTrainer
config = LoraConfig(
    r=8,
    target_modules=["q_proj", "lm_head"],  # expect
)
SFTTrainer("m", train_dataset=data, peft_config=config).train()
""",
)
GOOD = """
from peft import LoraConfig, get_peft_model
from trl import SFTTrainer
SFTTrainer("m", train_dataset=data, peft_config=LoraConfig(r=8, target_modules=["q_proj"])).train()
SFTTrainer("m", train_dataset=data, peft_config=LoraConfig(r=8, modules_to_save=["lm_head"])).train()
model = get_peft_model(base, LoraConfig(r=8, target_modules=["q_proj", "lm_head"]))
"""


def find(project: Project) -> Iterator[Evidence]:
    for call in project.calls("SFTTrainer", "DPOTrainer"):
        given = option(project, call, "peft_config")
        if given is None or not imported(project, call, "transformers"):
            continue
        since = release(project, "trl", call.scope.module.path, (1,))
        for config in made(project, *given):
            targets = option(project, config, "target_modules")
            if config.name != "LoraConfig" or targets is None or since == "no":
                continue
            if "lm_head" in (words(project, *targets) or []):
                hedge = "" if since == "yes" else " (since TRL 1.0)"
                text = f"{call.name} computes the loss from lm_head.weight: an adapter there is refused{hedge}"
                place = keyword_place(config, "target_modules") or config
                yield sighting(__name__, place, text, proof=[call], fix=Fix('leave "lm_head" out'))
