"""``load_best_model_at_end`` with different rhythms for evaluating and saving.

What: ``eval_strategy`` and ``save_strategy`` differ, or ``save_steps`` is no multiple of ``eval_steps``.
Why it matters: the Trainer refuses to start, because the best checkpoint could not be loaded.
When it is fine: without ``load_best_model_at_end``.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import Call
from trainwreck.code.project import Project
from trainwreck.code.rule import guess, sighting
from trainwreck.code.scopes import Scope
from trainwreck.code.seek import keyword_place, training_arguments
from trainwreck.code.surface import Surface
from trainwreck.code.values import is_true, values
from trainwreck.core.evidence import Evidence

SURFACES = (r"load_best_model_at_end", r"round multiple of the evaluation steps", r"save and eval(uation)? strateg")
ERROR = "ValueError: --load_best_model_at_end requires the save and eval strategy to match"
BAD = """
from transformers import TrainingArguments
args = TrainingArguments(
    output_dir="out",
    eval_strategy="epoch",
    save_strategy="steps",  # expect
    load_best_model_at_end=True,
)
"""
GOOD = """
from transformers import TrainingArguments
one = TrainingArguments(output_dir="out", eval_strategy="epoch", save_strategy="steps")
two = TrainingArguments(output_dir="out", eval_strategy="epoch", save_strategy="epoch", load_best_model_at_end=True)
"""


def find(project: Project) -> Iterator[Evidence]:
    for call in training_arguments(project):
        if not is_true(call.argument("load_best_model_at_end")) or call.open_ended:
            continue
        evaluating = _word(project, call, ("eval_strategy", "evaluation_strategy"), "no")
        saving = _word(project, call, ("save_strategy",), "steps")
        if evaluating is not None and saving is not None and saving != "best" and evaluating != saving:
            text = f"saving by {saving} and evaluating by {evaluating} do not go together with load_best_model_at_end"
            yield sighting(__name__, _place(call), text)


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


def _word(project: Project, call: Call, names: tuple[str, ...], default: str) -> str | None:
    for name in names:
        value = call.argument(name)
        if value is not None:
            known = values(project, value, call.scope)
            return known[0].value if len(known) == 1 and isinstance(known[0].value, str) else None
    return default
