"""``metric_for_best_model`` (or a monitor) names a metric that the evaluation does not give.

What: the name differs from the keys that ``compute_metrics`` returns or the module logs.
Why it matters: a KeyError after the first evaluation, or the best checkpoint is never chosen.
When it is fine: with or without the prefix ``eval_``.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import Call
from trainwreck.code.project import Project
from trainwreck.code.rule import guess, sighting
from trainwreck.code.seek import keyword_place, trainers, training_arguments
from trainwreck.code.surface import Surface
from trainwreck.code.values import values
from trainwreck.core.evidence import Evidence

SURFACES = (r"metric_for_best_model", r"KeyError: .?['\"]eval_", r"conditioned on metric|monitor")
ERROR = "KeyError: \"The `metric_for_best_model` training argument is set to 'eval_f1', which is not found\""
BAD = """
from transformers import Trainer, TrainingArguments
def compute_metrics(pred):
    return {"accuracy": 1.0}
def main(model, data):
    args = TrainingArguments(
        output_dir="out",
        metric_for_best_model="f1",  # expect
    )
    Trainer(model=model, args=args, eval_dataset=data, compute_metrics=compute_metrics).train()
"""
GOOD = """
from transformers import Trainer, TrainingArguments
def compute_metrics(pred):
    return {"accuracy": 1.0, "f1": 0.5}
def main(model, data):
    args = TrainingArguments(output_dir="out", metric_for_best_model="eval_f1")
    Trainer(model=model, args=args, eval_dataset=data, compute_metrics=compute_metrics).train()
"""
ALWAYS = frozenset(["loss", "runtime", "samples_per_second", "steps_per_second"])


def find(project: Project) -> Iterator[Evidence]:
    keys = _given(project)
    if keys is None:
        return
    for call in training_arguments(project):
        for known in values(project, call.argument("metric_for_best_model"), call.scope):
            name = str(known.value).removeprefix("eval_")
            place = keyword_place(call, "metric_for_best_model")
            if known.value and name not in keys | ALWAYS and place is not None:
                text = f"compute_metrics gives {', '.join(sorted(keys)) or 'nothing'}, not {name}"
                yield sighting(__name__, place, text)


def trace(project: Project, surface: Surface) -> Iterator[Evidence]:
    for calls in project.calls_by_name.values():
        for call in calls:
            for item in call.node.keywords:
                if item.arg in ("metric_for_best_model", "monitor"):
                    yield guess(__name__, (item, call.scope), "the metric to watch is named here")
                    return


def _given(project: Project) -> set[str] | None:
    """Keys that the one ``compute_metrics`` of the program returns, None where they can't be listed."""
    found: set[str] = set()
    makers = [c for c in trainers(project) if isinstance(c, Call) and c.argument("compute_metrics") is not None]
    if not makers:
        return None
    for call in makers:
        value = call.argument("compute_metrics")
        function = project.resolve(value, call.scope) if value is not None else None
        if function is None or not function.returns:
            return None
        for result in function.returns:
            if not isinstance(result, ast.Dict) or not all(isinstance(k, ast.Constant) for k in result.keys):
                return None
            found |= {str(k.value) for k in result.keys if isinstance(k, ast.Constant)}
    return found
