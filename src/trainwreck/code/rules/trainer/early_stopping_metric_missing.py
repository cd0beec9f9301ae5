"""Early stopping without a metric or an evaluation to follow.

What: ``EarlyStoppingCallback`` while ``eval_strategy`` is "no", or with neither ``metric_for_best_model`` nor
``load_best_model_at_end``.
Why it matters: the callback asserts both when training starts.
When it is fine: with ``load_best_model_at_end=True``, which sets the metric to the loss.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.arguments import attributes_set
from trainwreck.code.calls import Call
from trainwreck.code.facts import complete, made, made_names, only, option
from trainwreck.code.huggingface import arguments_call, trainer_calls
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.code.scopes import Scope
from trainwreck.core.evidence import Evidence

BAD = (
    """
from transformers import EarlyStoppingCallback, Trainer, TrainingArguments
def main(model, data, held):
    args = TrainingArguments(output_dir="o", eval_strategy="epoch")
    stop = EarlyStoppingCallback(early_stopping_patience=3)
    Trainer(model=model, args=args, train_dataset=data, eval_dataset=held, callbacks=[stop]).train()  # expect
""",
    """
from transformers import EarlyStoppingCallback, Trainer, TrainingArguments
def main(model, data, held):
    args = TrainingArguments(output_dir="o", metric_for_best_model="f1")
    trainer = Trainer(model=model, args=args, train_dataset=data)
    trainer.add_callback(EarlyStoppingCallback(3))  # expect
""",
)
GOOD = """
from transformers import EarlyStoppingCallback, Trainer, TrainingArguments
def main(model, data, held, options):
    stop = EarlyStoppingCallback(early_stopping_patience=3)
    best = TrainingArguments("o", eval_strategy="epoch", save_strategy="epoch", load_best_model_at_end=True)
    Trainer(model=model, args=best, train_dataset=data, eval_dataset=held, callbacks=[stop])
    named = TrainingArguments("o", eval_strategy="epoch", metric_for_best_model="f1")
    Trainer(model=model, args=named, train_dataset=data, eval_dataset=held, callbacks=[stop])
    Trainer(model=model, args=TrainingArguments("o", **options), train_dataset=data, callbacks=[stop])
    Trainer(model=model, args=TrainingArguments("o"), train_dataset=data, callbacks=[other])
"""


def find(project: Project) -> Iterator[Evidence]:
    if {"eval_strategy", "metric_for_best_model", "load_best_model_at_end"} & attributes_set(project):
        return
    for place, trainer in _stopped(project):
        args = arguments_call(project, trainer)
        if args is None or not complete(project, args):
            continue
        word = only(project, option(project, args, "eval_strategy") or option(project, args, "evaluation_strategy"))
        metric = option(project, args, "metric_for_best_model")
        best = only(project, option(project, args, "load_best_model_at_end"))
        schedule = only(project, option(project, args, "lr_scheduler_type"))
        if word in (None, "no"):
            text = "early stopping needs an evaluation, and eval_strategy is no"
        elif metric is None and best in (None, False) and schedule not in (..., "reduce_lr_on_plateau", "greedy"):
            text = "early stopping needs metric_for_best_model (or load_best_model_at_end)"
        else:
            continue
        yield sighting(__name__, place, text, proof=[args])


def _stopped(project: Project) -> Iterator[tuple[Call, Call]]:
    """(where it is handed over, the trainer) for each early stopping."""
    for trainer in trainer_calls(project):
        given = option(project, trainer, "callbacks")
        items = given[0].elts if given is not None and isinstance(given[0], ast.List | ast.Tuple) else []
        if given is not None and any(_is_stop(project, item, given[1]) for item in items):
            yield trainer, trainer
    for call in project.calls("add_callback"):
        if call.receiver is not None and call.node.args and _is_stop(project, call.node.args[0], call.scope):
            nodes = {c.node for c in trainer_calls(project)}
            for maker in made(project, call.receiver, call.scope):
                if maker.node in nodes:
                    yield call, maker


def _is_stop(project: Project, node: ast.expr, scope: Scope) -> bool:
    return "EarlyStoppingCallback" in made_names(project, node, scope)
