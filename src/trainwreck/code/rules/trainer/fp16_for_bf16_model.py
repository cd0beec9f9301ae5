"""fp16 for a family whose activations overflow it.

What: ``fp16=True`` for a checkpoint of T5 (mT5, Flan-T5) or Gemma, which were trained in bf16.
Why it matters: activations pass 65504: the loss becomes NaN or the scaler skips step after step.
When it is fine: with bf16 or fp32.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.arguments import attributes_set
from trainwreck.code.facts import only, option
from trainwreck.code.huggingface import (
    arguments_call,
    checkpoint_of,
    loaded_by,
    model_loads,
    trainer_calls,
    trainer_option,
)
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.code.seek import keyword_place
from trainwreck.core.evidence import Evidence
from trainwreck.core.fix import Fix

BAD = (
    """
from transformers import AutoModelForSeq2SeqLM, Seq2SeqTrainer, Seq2SeqTrainingArguments
def main(data):
    model = AutoModelForSeq2SeqLM.from_pretrained("google/flan-t5-base")
    args = Seq2SeqTrainingArguments(
        output_dir="o",
        fp16=True,  # expect
    )
    Seq2SeqTrainer(model=model, args=args, train_dataset=data).train()
""",
)
GOOD = """
from transformers import AutoModelForSeq2SeqLM, AutoModelForSequenceClassification, Trainer, TrainingArguments
def main(data, fast):
    model = AutoModelForSeq2SeqLM.from_pretrained("google/flan-t5-base")
    Trainer(model=model, args=TrainingArguments("o", bf16=True), train_dataset=data).train()
    Trainer(model=model, args=TrainingArguments("o", fp16=fast), train_dataset=data).train()
    bert = AutoModelForSequenceClassification.from_pretrained("bert-base-uncased")
    Trainer(model=bert, args=TrainingArguments("o", fp16=True), train_dataset=data).train()
"""
OVERFLOWING = frozenset(["t5", "gemma", "gemma2", "gemma3_text"])
"""Families with reports of overflow in fp16 (transformers issues on T5; the model cards of Gemma ask for bf16)."""


def find(project: Project) -> Iterator[Evidence]:
    if "fp16" in attributes_set(project):
        return
    for trainer in trainer_calls(project):
        args, given = arguments_call(project, trainer), trainer_option(project, trainer, "model")
        if args is None or given is None or only(project, option(project, args, "fp16")) is not True:
            continue
        load = loaded_by(project, *given, model_loads(project))
        known = checkpoint_of(project, load) if load is not None else None
        if load is not None and known is not None and known.family in OVERFLOWING:
            place = keyword_place(args, "fp16") or args
            text = f"{known.id} was trained in bf16; its activations overflow fp16"
            yield sighting(__name__, place, text, proof=[load], fix=Fix("bf16=True"))
