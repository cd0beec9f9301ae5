"""Evaluation data are given, and nothing ever evaluates.

What: the trainer gets an ``eval_dataset``, ``eval_strategy`` is left at "no" (or its steps lie beyond the run), and
nobody calls ``evaluate`` or ``predict``.
Why it matters: the run ends without one number on held-out data.
When it is fine: where evaluation is called by hand.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.arguments import attributes_set, contradicted
from trainwreck.code.facts import complete, option
from trainwreck.code.huggingface import arguments_call, trainer_calls, trainer_option
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.never_due import never_due
from trainwreck.code.rule import sighting
from trainwreck.code.seek import keyword_place
from trainwreck.core.evidence import Evidence
from trainwreck.core.fix import Fix

BAD = (
    """
from transformers import Trainer, TrainingArguments
def main(model, data, held):
    args = TrainingArguments(output_dir="o")
    trainer = Trainer(
        model=model,
        args=args,
        train_dataset=data,
        eval_dataset=held,  # expect
    )
    trainer.train()
""",
    """
from transformers import TrainingArguments
args = TrainingArguments(
    output_dir="o",
    max_steps=300,
    eval_strategy="steps",
    eval_steps=500,  # expect
)
""",
)
GOOD = (
    """
from transformers import Trainer, TrainingArguments
def main(model, data, held):
    trainer = Trainer(model=model, args=TrainingArguments("o"), train_dataset=data, eval_dataset=held)
    trainer.train()
    print(trainer.evaluate())
""",
    """
from transformers import Trainer, TrainingArguments
def main(model, data, held, options):
    Trainer(model=model, args=TrainingArguments("o", eval_strategy="epoch"), eval_dataset=held).train()
    Trainer(model=model, args=TrainingArguments("o", **options), eval_dataset=held).train()
    Trainer(model=model, args=TrainingArguments("o"), eval_dataset=None).train()
few = TrainingArguments("o", max_steps=300, eval_strategy="steps", eval_steps=100)
""",
)


def find(project: Project) -> Iterator[Evidence]:
    yield from further(__name__, project, _written(project), never_due)


def _written(project: Project) -> Iterator[Evidence]:
    yield from contradicted(project, __name__)
    by_hand = any(True for _ in project.calls("evaluate", "predict", "evaluation_loop"))
    if by_hand or {"eval_strategy", "evaluation_strategy", "do_eval"} & attributes_set(project):
        return
    for trainer in trainer_calls(project):
        if not trainer.name.startswith(("Trainer", "Seq2Seq", "SFT", "DPO", "Reward", "KTO", "ORPO", "GRPO")):
            continue
        args, given = arguments_call(project, trainer), trainer_option(project, trainer, "eval_dataset")
        if args is None or given is None or _nothing(given[0]) or not complete(project, args):
            continue
        if all(option(project, args, n) is None for n in ("eval_strategy", "evaluation_strategy", "do_eval")):
            place = keyword_place(trainer, "eval_dataset") or trainer
            text = 'eval_strategy is left at "no" and nobody calls evaluate: these data are never looked at'
            yield sighting(__name__, place, text, proof=[args], fix=Fix('eval_strategy="epoch"'))


def _nothing(node: ast.expr) -> bool:
    """None, or something that may be None."""
    return isinstance(node, ast.IfExp) or (isinstance(node, ast.Constant) and node.value is None)
