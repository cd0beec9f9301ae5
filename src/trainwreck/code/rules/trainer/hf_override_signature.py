"""An overridden method does not take what the Trainer hands over.

What: ``training_step`` of a subclass of Trainer without ``num_items_in_batch`` (handed over since 4.46), ``log``
without ``start_time`` (since 4.47), or a callback method without ``**kwargs``.
Why it matters: a TypeError in the first step.
When it is fine: in older releases, and with ``**kwargs``.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.huggingface import TRAINERS, release
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.code.rules.trainer.callback_event_unknown import TRAINER
from trainwreck.code.scopes import FunctionNode, Scope
from trainwreck.core.evidence import Evidence
from trainwreck.core.fix import Fix

WORDS = ("transformers", "trl")
BAD = (
    """
from transformers import Trainer
class Own(Trainer):
    def training_step(self, model, inputs):  # expect
        return super().training_step(model, inputs)
    def log(self, logs):  # expect
        super().log(logs)
""",
    """
from transformers import TrainerCallback
class Watch(TrainerCallback):
    def on_step_end(self, args, state, control):  # expect
        print(state.global_step)
    def on_log(self, args, state, control, logs=None):  # expect
        print(logs)
""",
)
GOOD = """
from transformers import Trainer, TrainerCallback
class Own(Trainer):
    def training_step(self, model, inputs, num_items_in_batch=None):
        return super().training_step(model, inputs, num_items_in_batch)
    def log(self, logs, start_time=None):
        super().log(logs, start_time)
class Wide(Trainer):
    def training_step(self, model, inputs, *args, **kwargs):
        return super().training_step(model, inputs, *args, **kwargs)
class Watch(TrainerCallback):
    def on_step_end(self, args, state, control, **kwargs):
        print(state.global_step)
    def note(self, args):
        pass
class Plain:
    def training_step(self, model, inputs):
        pass
    def on_step_end(self, args, state, control):
        pass
"""
PARAMETERS = {"training_step": ("num_items_in_batch", 4, (4, 46)), "log": ("start_time", 3, (4, 47))}
"""Method: the new argument, how many positional parameters (self included) it makes, and since when."""


def find(project: Project) -> Iterator[Evidence]:
    for owner in project.classes:
        bases = {b for b in project.base_names(owner) if b.split(".")[0] in ("transformers", "trl")}
        ends = {b.rsplit(".", 1)[-1] for b in bases}
        if any(TRAINERS.fullmatch(e) for e in ends):
            yield from _trainer(project, owner)
        if "TrainerCallback" in ends:
            yield from _callback(owner)


def _trainer(project: Project, owner: Scope) -> Iterator[Evidence]:
    for name, (argument, count, since) in PARAMETERS.items():
        method = owner.method(name)
        if method is None or not isinstance(method.node, FunctionNode):
            continue
        args = method.node.args
        known = release(project, "transformers", owner.module.path, since)
        if args.vararg or known == "no" or len(args.args) + len(args.posonlyargs) >= count:
            continue
        hedge = "" if known == "yes" else f" since transformers {since[0]}.{since[1]}"
        text = f"{name} is handed {argument} too{hedge}, and this one takes {len(args.args)} positional arguments"
        yield sighting(__name__, (method.node, method), text, fix=Fix(f"def {name}(..., {argument}=None)"))


def _callback(owner: Scope) -> Iterator[Evidence]:
    for method in owner.children:
        node = method.node
        if not method.name.startswith("on_") or not isinstance(node, ast.FunctionDef):
            continue
        if method.name in TRAINER and node.args.kwarg is None:
            text = f"{method.name} is handed the model, the optimizer and more by name, and takes no **kwargs"
            yield sighting(__name__, (node, method), text, fix=Fix("add **kwargs"))
