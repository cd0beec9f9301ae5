"""Evaluation decodes what was never generated.

What: ``compute_metrics`` of a ``Seq2SeqTrainer`` decodes the predictions, and ``predict_with_generate`` is off.
Why it matters: predictions are then logits: decoding them fails, or scores the answers of teacher forcing.
When it is fine: where the logits are reduced by argmax first.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.arguments import attributes_set, contradicted
from trainwreck.code.facts import complete, only, option, text_of
from trainwreck.code.huggingface import arguments_call, trainer_calls
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.core.evidence import Evidence
from trainwreck.core.fix import Fix

BAD = (
    """
from transformers import Seq2SeqTrainer, Seq2SeqTrainingArguments
def score(pred):
    texts = tok.batch_decode(pred.predictions, skip_special_tokens=True)
    return {"rouge": rouge(texts, pred.label_ids)}
def main(model, data, held):
    args = Seq2SeqTrainingArguments(output_dir="o", eval_strategy="epoch")  # expect
    Seq2SeqTrainer(model=model, args=args, train_dataset=data, eval_dataset=held, compute_metrics=score).train()
""",
    """
from transformers import Seq2SeqTrainingArguments
args = Seq2SeqTrainingArguments(
    output_dir="o",
    generation_max_length=128,  # expect
)
""",
)
GOOD = """
import numpy as np
from transformers import Seq2SeqTrainer, Seq2SeqTrainingArguments
def score(pred):
    return {"rouge": rouge(tok.batch_decode(pred.predictions), pred.label_ids)}
def forced(pred):
    return {"rouge": rouge(tok.batch_decode(np.argmax(pred.predictions[0], -1)), pred.label_ids)}
def main(model, data, held, flag):
    args = Seq2SeqTrainingArguments("o", predict_with_generate=True, generation_max_length=128)
    Seq2SeqTrainer(model=model, args=args, eval_dataset=held, compute_metrics=score)
    read = Seq2SeqTrainingArguments("o", predict_with_generate=flag, generation_max_length=128)
    Seq2SeqTrainer(model=model, args=read, eval_dataset=held, compute_metrics=score)
    Seq2SeqTrainer(model=model, args=Seq2SeqTrainingArguments("o"), compute_metrics=forced)
"""


def find(project: Project) -> Iterator[Evidence]:
    yield from contradicted(project, __name__)
    if "predict_with_generate" in attributes_set(project):
        return
    for trainer in trainer_calls(project):
        given, args = option(project, trainer, "compute_metrics"), arguments_call(project, trainer)
        if trainer.name != "Seq2SeqTrainer" or given is None or args is None or not complete(project, args):
            continue
        if args.name != "Seq2SeqTrainingArguments" or option(project, trainer, "preprocess_logits_for_metrics"):
            continue
        function = project.resolve(*given)
        if function is None or only(project, option(project, args, "predict_with_generate")) not in (None, False):
            continue
        text = text_of(project, function)
        if "batch_decode(" in text and "argmax" not in text:
            says = f"{function.name} decodes the predictions, and without predict_with_generate they are logits"
            yield sighting(__name__, args, says, fix=Fix("predict_with_generate=True"))
