"""The logits of a language model are kept for all of the evaluation.

What: a causal language model with ``compute_metrics`` and without ``preprocess_logits_for_metrics``.
Why it matters: the Trainer gathers logits of shape (rows, length, vocabulary): memory runs out in the evaluation.
When it is fine: with ``preprocess_logits_for_metrics``, ``prediction_loss_only``, ``batch_eval_metrics``, or a tiny
evaluation set.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.facts import complete, option
from trainwreck.code.huggingface import (
    arguments_call,
    holder,
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
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments
def main(data, held):
    model = AutoModelForCausalLM.from_pretrained("m")
    args = TrainingArguments(output_dir="o", eval_strategy="epoch")
    trainer = Trainer(model=model, args=args, train_dataset=data, eval_dataset=held, compute_metrics=score)  # expect
    trainer.train()
""",
)
GOOD = """
from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification, Trainer, TrainingArguments
def main(data, held):
    model = AutoModelForCausalLM.from_pretrained("m")
    args = TrainingArguments(output_dir="o", eval_strategy="epoch", batch_eval_metrics=True)
    Trainer(model=model, args=args, eval_dataset=held, compute_metrics=score)
    plain = TrainingArguments("o")
    Trainer(model=model, args=plain, eval_dataset=held, compute_metrics=score, preprocess_logits_for_metrics=top)
    Trainer(model=model, args=plain, eval_dataset=held, compute_metrics=None)
    head = AutoModelForSequenceClassification.from_pretrained("m")
    Trainer(model=head, args=plain, eval_dataset=held, compute_metrics=score)
"""
KEEPS = ("prediction_loss_only", "batch_eval_metrics", "eval_do_concat_batches", "eval_accumulation_steps")


def find(project: Project) -> Iterator[Evidence]:
    for trainer in trainer_calls(project):
        given, model = option(project, trainer, "compute_metrics"), trainer_option(project, trainer, "model")
        if trainer.name != "Trainer" or given is None or model is None or not complete(project, trainer):
            continue
        if getattr(given[0], "value", ...) is None or option(project, trainer, "preprocess_logits_for_metrics"):
            continue
        load, args = loaded_by(project, *model, model_loads(project)), arguments_call(project, trainer)
        if load is None or args is None or not holder(load).endswith(("ForCausalLM", "LMHeadModel")):
            continue
        if complete(project, args) and not any(option(project, args, n) for n in KEEPS):
            place = keyword_place(trainer, "compute_metrics") if trainer.line != trainer.node.end_lineno else None
            text = "logits over the whole vocabulary are kept for all of the evaluation"
            fix = Fix("preprocess_logits_for_metrics=lambda logits, labels: logits.argmax(-1)")
            yield sighting(__name__, place or trainer, text, proof=[load], fix=fix, severity="warning")
