"""``load_best_model_at_end`` with different rhythms for evaluating and saving.

What: ``eval_strategy`` and ``save_strategy`` differ, or ``save_steps`` is no multiple of ``eval_steps``.
Why it matters: the Trainer refuses to start, because the best checkpoint could not be loaded.
When it is fine: without ``load_best_model_at_end``.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.arguments import contradicted
from trainwreck.code.calls import Call
from trainwreck.code.project import Project
from trainwreck.code.rule import guess
from trainwreck.code.scopes import Scope
from trainwreck.code.seek import keyword_place, training_arguments
from trainwreck.code.surface import Surface
from trainwreck.core.evidence import Evidence

SURFACES = (r"load_best_model_at_end", r"round multiple of the evaluation steps", r"save and eval(uation)? strateg")
ERROR = "ValueError: --load_best_model_at_end requires the save and eval strategy to match"
BAD = (
    """
from transformers import TrainingArguments
args = TrainingArguments(
    output_dir="out",
    eval_strategy="epoch",
    save_strategy="steps",  # expect
    load_best_model_at_end=True,
)
""",
    """
from transformers import TrainingArguments
args = TrainingArguments(
    output_dir="out",
    eval_strategy="steps",
    eval_steps=100,
    save_steps=250,  # expect
    load_best_model_at_end=True,
)
""",
    """
from trl import SFTConfig
args = SFTConfig(output_dir="out", load_best_model_at_end=True, eval_strategy="epoch")  # expect
""",
)
GOOD = """
from transformers import TrainingArguments
one = TrainingArguments(output_dir="out", eval_strategy="epoch", save_strategy="steps")
two = TrainingArguments(output_dir="out", eval_strategy="epoch", save_strategy="epoch", load_best_model_at_end=True)
three = TrainingArguments(
    output_dir="out", eval_strategy="steps", eval_steps=100, save_steps=500, load_best_model_at_end=True
)
four = TrainingArguments(output_dir="out", eval_strategy="epoch", save_strategy="best", load_best_model_at_end=True)
"""


def find(project: Project) -> Iterator[Evidence]:
    yield from contradicted(project, __name__)


def trace(project: Project, surface: Surface) -> Iterator[Evidence]:
    for call in training_arguments(project):
        if call.argument("load_best_model_at_end") is not None:
            yield guess(__name__, _place(call), "the rhythm of saving and evaluating is set here")
            return


def _place(call: Call) -> tuple[ast.AST, Scope] | Call:
    for name in ("save_strategy", "save_steps", "eval_strategy", "evaluation_strategy", "load_best_model_at_end"):
        place = keyword_place(call, name)
        if place is not None:
            return place
    return call
