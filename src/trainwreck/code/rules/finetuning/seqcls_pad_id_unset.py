"""A classifier on a decoder does not know which token is padding.

What: ``AutoModelForSequenceClassification`` on a checkpoint without padding token, and ``pad_token_id`` is never set on
its configuration.
Why it matters: it reads the last real token of each row: with more than one row it refuses.
When it is fine: for encoders, for batches of one, with ``model.config.pad_token_id = tokenizer.pad_token_id``.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.calls import Call
from trainwreck.code.facts import complete, only, option
from trainwreck.code.huggingface import checkpoint_of, holder, model_loads, text_has, trains
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.core.evidence import Evidence
from trainwreck.core.fix import Fix

WORDS = ("from_pretrained", "from_config", "transformers")
BAD = (
    """
from transformers import AutoModelForSequenceClassification, AutoTokenizer, Trainer
def main(args, data):
    tok = AutoTokenizer.from_pretrained("gpt2")
    tok.pad_token = tok.eos_token
    model = AutoModelForSequenceClassification.from_pretrained("gpt2", num_labels=2)  # expect
    Trainer(model=model, args=args, train_dataset=data).train()
""",
)
GOOD = (
    """
from transformers import AutoModelForSequenceClassification, AutoTokenizer, Trainer
def main(args, data):
    tok = AutoTokenizer.from_pretrained("gpt2")
    tok.pad_token = tok.eos_token
    model = AutoModelForSequenceClassification.from_pretrained("gpt2", num_labels=2)
    model.config.pad_token_id = tok.pad_token_id
    Trainer(model=model, args=args, train_dataset=data).train()
""",
    """
from transformers import AutoModelForSequenceClassification, Trainer
def main(args, data):
    model = AutoModelForSequenceClassification.from_pretrained("bert-base-uncased", num_labels=2)
    Trainer(model=model, args=args, train_dataset=data).train()
""",
)


def find(project: Project) -> Iterator[Evidence]:
    if text_has(project, "pad_token_id") or not trains(project) or _rows_of_one(project):
        return
    for load in model_loads(project):
        known = checkpoint_of(project, load)
        if known is None or not holder(load).endswith("ForSequenceClassification") or not complete(project, load):
            continue
        if known.decoder and known.pad_token is False and option(project, load, "config") is None:
            text = f"{known.id} has no padding token, and the classifier is never told which one to use"
            fix = Fix("model.config.pad_token_id = tokenizer.pad_token_id")
            yield sighting(__name__, load, text, fix=fix)


def _rows_of_one(project: Project) -> bool:
    calls: list[Call] = [c for calls in project.calls_by_name.values() for c in calls]
    return any(only(project, option(project, c, "per_device_train_batch_size")) == 1 for c in calls)
