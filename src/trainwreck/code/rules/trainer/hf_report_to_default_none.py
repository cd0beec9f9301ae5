"""A tracker is started, and the trainer does not report to it.

What: ``wandb.init`` (or another tracker) beside training arguments without ``report_to``, from transformers 5 on.
Why it matters: the default became "none": the run page stays empty.
When it is fine: below transformers 5, with ``report_to``, or with a callback or logging of one's own.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.arguments import attributes_set, imported
from trainwreck.code.facts import complete, option
from trainwreck.code.huggingface import release, text_has
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.code.seek import ARGUMENTS
from trainwreck.core.evidence import Evidence
from trainwreck.core.fix import Fix

BAD = (
    """
import wandb
from transformers import TrainingArguments, Trainer
def main(model, data):
    wandb.init(project="x")
    args = TrainingArguments(output_dir="o", run_name="a")  # expect
    Trainer(model=model, args=args, train_dataset=data).train()
""",
)
GOOD = (
    """
import wandb
from transformers import TrainingArguments, Trainer
def main(model, data, options):
    wandb.init(project="x")
    Trainer(model=model, args=TrainingArguments("o", report_to="wandb"), train_dataset=data).train()
    Trainer(model=model, args=TrainingArguments("o", **options), train_dataset=data).train()
""",
    """
import wandb
from transformers import TrainingArguments, Trainer
def main(model, data):
    wandb.init(project="x")
    Trainer(model=model, args=TrainingArguments("o"), train_dataset=data).train()
    wandb.log({"done": 1})
""",
    """
from transformers import TrainingArguments
args = TrainingArguments("o")
""",
)


def find(project: Project) -> Iterator[Evidence]:
    started = [
        c
        for c in project.calls("init", "set_experiment")
        if project.called(c) in ("wandb.init", "mlflow.set_experiment")
    ]
    logs = any(project.called(c).split(".")[0] in ("wandb", "mlflow") for c in project.calls("log", "log_metrics"))
    own = logs or text_has(project, "WandbCallback", "MLflowCallback", "TrainerCallback")
    if not started or own or "report_to" in attributes_set(project):
        return
    if not any(True for _ in project.calls("train")):
        return
    for call in project.calls(*ARGUMENTS):
        if not imported(project, call, "transformers") or not complete(project, call):
            continue
        since = release(project, "transformers", call.scope.module.path, (5,))
        if option(project, call, "report_to") is None and since != "no":
            hedge = "" if since == "yes" else "with transformers 5 "
            text = f"{hedge}the trainer reports to nothing unless report_to is given, and a tracker is started here"
            yield sighting(__name__, call, text, proof=started[:1], fix=Fix('report_to="wandb"'))
