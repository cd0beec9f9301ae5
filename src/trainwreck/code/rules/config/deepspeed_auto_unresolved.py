"""A DeepSpeed file with "auto" is read without the integration that fills it in.

What: `"auto"` in a configuration that `deepspeed.initialize` gets, in a program that uses neither the Trainer of
transformers nor accelerate.
Why it matters: DeepSpeed itself does not know the word: it fails on the type of the value.
When it is fine: with TrainingArguments(deepspeed=…), with accelerate, and where the program replaces the values.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainwreck.code.facts import source
from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.settings.bags import bags
from trainwreck.code.settings.told import told
from trainwreck.core.evidence import Evidence

BAD = """
#--- ds.json
{
  "train_micro_batch_size_per_gpu": "auto", // # expect
  "zero_optimization": {"stage": 2, "reduce_bucket_size": "auto"}
}
#--- train.py
import deepspeed
engine, *_ = deepspeed.initialize(model=net, model_parameters=net.parameters(), config="ds.json")
engine.backward(loss)
"""
GOOD = (
    """
#--- ds.json
{"train_micro_batch_size_per_gpu": "auto", "zero_optimization": {"stage": 2}}
#--- train.py
from transformers import Trainer, TrainingArguments
args = TrainingArguments("out", deepspeed="ds.json")
""",
    """
#--- ds.json
{"train_micro_batch_size_per_gpu": "auto", "zero_optimization": {"stage": 2}}
#--- train.py
import deepspeed, json
config = json.load(open("ds.json"))
config["train_micro_batch_size_per_gpu"] = 4
engine, *_ = deepspeed.initialize(model=net, config=config)
""",
)
_FILLED = pattern(r"\bTrainer\b|accelerat|TrainingArguments|HfDeepSpeedConfig|lightning|[\"']auto[\"']|Config\(")


def find(project: Project) -> Iterator[Evidence]:
    calls = [c for c in project.calls("initialize") if project.called(c).startswith("deepspeed")]
    if not calls or _FILLED.search(source(project)):
        return
    for bag in bags(project):
        if bag.reader != "deepspeed" or bag.document is None:
            continue
        for setting in bag.document.settings.values():
            name = setting.keys[-1]
            if setting.word == "auto" and not re.search(rf"[\"']{re.escape(name)}[\"']", source(project)):
                text = f'"auto" for {name} is filled in by transformers or accelerate; deepspeed.initialize alone fails'
                proof = [(calls[0].scope.module.path, calls[0].line, "deepspeed.initialize(…)")]
                yield told(__name__, setting, text, proof=proof, severity="critical")
                break
