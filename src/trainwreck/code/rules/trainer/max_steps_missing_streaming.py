"""A stream without an end, and no number of steps.

What: the training data are loaded with ``streaming=True`` and the training arguments hold no ``max_steps``.
Why it matters: a stream has no length, so the trainer can't know how long to train and raises a ValueError.
When it is fine: with ``max_steps``.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.arguments import attributes_set
from trainwreck.code.facts import complete, option
from trainwreck.code.huggingface import arguments_call, dataset_root, streamed, trainer_calls, trainer_option
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.core.evidence import Evidence

BAD = (
    """
from datasets import load_dataset
from transformers import Trainer, TrainingArguments
def main(model, tok):
    data = load_dataset("c4", "en", split="train", streaming=True)
    data = data.map(tok, batched=True)
    args = TrainingArguments(output_dir="o", num_train_epochs=1)  # expect
    Trainer(model=model, args=args, train_dataset=data).train()
""",
    """
from datasets import load_dataset
from trl import SFTConfig, SFTTrainer
def prepare():
    return load_dataset("c4", streaming=True)["train"].shuffle(seed=1, buffer_size=1000)
def main():
    SFTTrainer("m", args=SFTConfig(output_dir="o"), train_dataset=prepare()).train()  # expect
""",
)
GOOD = """
from datasets import load_dataset
from transformers import Trainer, TrainingArguments
def main(model, tok, flag):
    data = load_dataset("c4", split="train", streaming=True).map(tok)
    Trainer(model=model, args=TrainingArguments("o", max_steps=1000), train_dataset=data).train()
    whole = load_dataset("c4", split="train", streaming=False)
    Trainer(model=model, args=TrainingArguments("o"), train_dataset=whole).train()
    some = load_dataset("c4", split="train", streaming=flag)
    Trainer(model=model, args=TrainingArguments("o"), train_dataset=some).train()
    Trainer(model=model, args=TrainingArguments("o", **options), train_dataset=data).train()
"""


def find(project: Project) -> Iterator[Evidence]:
    if "max_steps" in attributes_set(project):
        return
    for trainer in trainer_calls(project):
        args, given = arguments_call(project, trainer), trainer_option(project, trainer, "train_dataset")
        if args is None or given is None or not complete(project, args) or option(project, args, "max_steps"):
            continue
        root = dataset_root(project, *given)
        if root is not None and streamed(project, root):
            text = "the training data are a stream without a length, and max_steps is not given"
            yield sighting(__name__, args, text, proof=[root])
