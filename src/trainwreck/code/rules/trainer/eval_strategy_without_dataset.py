"""Evaluation is scheduled, and there is nothing to evaluate on.

What: ``eval_strategy`` is "steps" or "epoch" and the trainer gets no ``eval_dataset``.
Why it matters: the trainer raises a ValueError, at once or at the first evaluation.
When it is fine: where the data set is set later, or the trainer's own class makes the loader.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.arguments import attributes_set
from trainwreck.code.calls import Call
from trainwreck.code.facts import complete, only, option
from trainwreck.code.huggingface import arguments_call, trainer_calls, trainer_option
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.code.seek import keyword_place
from trainwreck.core.evidence import Evidence

BAD = (
    """
from transformers import Trainer, TrainingArguments
def main(model, data):
    args = TrainingArguments(output_dir="o", eval_strategy="epoch")
    trainer = Trainer(model=model, args=args, train_dataset=data)  # expect
    trainer.train()
""",
    """
from trl import SFTConfig, SFTTrainer
trainer = SFTTrainer("m", args=SFTConfig(output_dir="o", eval_strategy="steps"), train_dataset=data)  # expect
""",
    """
from transformers import Trainer, TrainingArguments
class Weighted(Trainer):
    def compute_loss(self, model, inputs, **rest):
        return 0
def main(model, data):
    args = TrainingArguments("o", evaluation_strategy="steps", eval_steps=100)
    Weighted(model, args, train_dataset=data, eval_dataset=None).train()  # expect
""",
)
GOOD = """
from transformers import Trainer, TrainingArguments
class Own(Trainer):
    def get_eval_dataloader(self, data=None):
        return loader()
def main(model, data, held, kind):
    args = TrainingArguments(output_dir="o", eval_strategy="epoch")
    Trainer(model=model, args=args, train_dataset=data, eval_dataset=held)
    Trainer(model, args, collate, data, held)
    Trainer(model=model, args=TrainingArguments("o"), train_dataset=data)
    Trainer(model=model, args=TrainingArguments("o", eval_strategy=kind), train_dataset=data)
    Trainer(model=model, args=args, **parts)
    Own(model=model, args=args, train_dataset=data)
"""


def find(project: Project) -> Iterator[Evidence]:
    if "eval_dataset" in attributes_set(project):
        return
    for trainer in trainer_calls(project):
        own = project.resolve(trainer.node.func, trainer.scope)
        if own is not None and project.find_method(own, "get_eval_dataloader"):
            continue
        args = arguments_call(project, trainer)
        given = trainer_option(project, trainer, "eval_dataset")
        missing = given is None or (only(project, given) is None and _is_none(given[0]))
        if args is None or not missing or not complete(project, trainer):
            continue
        word = _strategy(project, args)
        if word in ("steps", "epoch") and not {"eval_strategy", "evaluation_strategy"} & attributes_set(project):
            place = keyword_place(args, "eval_strategy") or keyword_place(args, "evaluation_strategy")
            text = f"evaluation by {word} is asked for, and there is no eval_dataset"
            yield sighting(__name__, trainer, text, proof=[Call(args.node, args.scope)] if place else ())


def _strategy(project: Project, args: Call) -> object:
    found = option(project, args, "eval_strategy") or option(project, args, "evaluation_strategy")
    return only(project, found)


def _is_none(node: object) -> bool:
    return getattr(node, "value", ...) is None
