"""``compute_metrics`` gives back a number.

What: the function handed over as ``compute_metrics`` returns a number or a tuple, not a dict of names and numbers.
Why it matters: the trainer adds its own entries to the result: a TypeError after the first evaluation.
When it is fine: where it returns a dict (or what ``evaluate`` metrics return, which is one).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.facts import option
from trainwreck.code.huggingface import trainer_calls
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.code.scopes import Scope
from trainwreck.core.evidence import Evidence
from trainwreck.core.fix import Fix

BAD = (
    """
from sklearn.metrics import accuracy_score
from transformers import Trainer
def compute_metrics(pred):
    return accuracy_score(pred.label_ids, pred.predictions.argmax(-1))  # expect
def main(model, args, data):
    Trainer(model=model, args=args, eval_dataset=data, compute_metrics=compute_metrics).train()
""",
    """
from sklearn.metrics import f1_score
from transformers import Trainer
def score(pred):
    right = (pred.predictions.argmax(-1) == pred.label_ids).mean()
    return right, f1_score(pred.label_ids, pred.predictions.argmax(-1))  # expect
def main(model, args, data):
    Trainer(model=model, args=args, eval_dataset=data, compute_metrics=score).train()
""",
    """
from transformers import Trainer
def score(pred):
    right = pred.predictions.argmax(-1) == pred.label_ids
    value = float(right.mean())
    return value  # expect
def main(model, args, data):
    Trainer(model=model, args=args, eval_dataset=data, compute_metrics=score).train()
""",
)
GOOD = """
import evaluate
from sklearn.metrics import accuracy_score, classification_report
from transformers import Trainer
metric = evaluate.load("accuracy")
def one(pred):
    return {"accuracy": accuracy_score(pred.label_ids, pred.predictions)}
def two(pred):
    return metric.compute(predictions=pred.predictions, references=pred.label_ids)
def three(pred):
    result = {}
    result["f1"] = 1.0
    return result
def four(pred):
    return classification_report(pred.label_ids, pred.predictions, output_dict=True)
def five(pred):
    return dict(accuracy=1.0)
def main(model, args, data):
    for f in (one, two, three, four, five):
        Trainer(model=model, args=args, compute_metrics=f)
    Trainer(model=model, args=args, compute_metrics=one)
    Trainer(model=model, args=args, compute_metrics=two)
    Trainer(model=model, args=args, compute_metrics=three)
    Trainer(model=model, args=args, compute_metrics=four)
    Trainer(model=model, args=args, compute_metrics=five)
"""
NUMBERS = frozenset(
    ["accuracy_score", "f1_score", "precision_score", "recall_score", "roc_auc_score", "matthews_corrcoef",
     "balanced_accuracy_score", "mean_squared_error", "mean_absolute_error", "r2_score"]
)  # fmt: skip
"""Functions of sklearn.metrics that give one number (with the default average)."""


def find(project: Project) -> Iterator[Evidence]:
    for trainer in trainer_calls(project):
        given = option(project, trainer, "compute_metrics")
        function = project.resolve(*given) if given is not None else None
        if function is None or function.kind != "function":
            continue
        for value in function.returns:
            if value is not None and _number(project, value, function):
                fix = Fix('return {"name": value}')
                text = f"{function.name} returns no dict: the trainer can't add its own entries"
                yield sighting(__name__, (value, function), text, proof=[trainer], fix=fix)


def _number(project: Project, node: ast.expr, scope: Scope, depth: int = 0) -> bool:
    """True for what is surely a number or a tuple of values."""
    match node:
        case ast.Tuple():
            return len(node.elts) > 0
        case ast.Constant(value=int() | float()):
            return True
        case ast.Call(func=ast.Name(id="float" | "round" | "int")):
            return True
        case ast.Call():
            dotted = project.dotted(node.func, scope)
            average = any(k.arg == "average" and not _word(k.value) for k in node.keywords)
            return dotted.startswith("sklearn.metrics.") and dotted.rsplit(".", 1)[-1] in NUMBERS and not average
        case ast.Name() if depth < 3:
            bindings = project.lookup(node.id, scope)
            if len(bindings) != 1 or bindings[0].kind != "assign" or bindings[0].path or bindings[0].value is None:
                return False
            return _number(project, bindings[0].value, bindings[0].scope, depth + 1)
    return False


def _word(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)
