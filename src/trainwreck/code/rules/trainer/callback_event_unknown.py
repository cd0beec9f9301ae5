"""A callback waits for an event that never comes.

What: a method ``on_...`` of a ``TrainerCallback``, or of a callback or module of Lightning, that is no event of
the library.
Why it matters: nobody calls it: early stopping, logging or saving silently does not happen.
When it is fine: where the program calls the method itself.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.code.scopes import Scope
from trainwreck.core.evidence import Evidence
from trainwreck.core.fix import Fix

BAD = (
    """
from transformers import TrainerCallback
class Stop(TrainerCallback):
    def on_epoch_finish(self, args, state, control, **kwargs):  # expect
        control.should_training_stop = True
""",
    """
import lightning as L
class Net(L.LightningModule):
    def on_training_epoch_end(self):  # expect
        self.log("a", 1.0)
""",
)
GOOD = """
import lightning as L
from transformers import TrainerCallback
class Stop(TrainerCallback):
    def on_epoch_end(self, args, state, control, **kwargs):
        self.on_mine(args)
    def on_mine(self, args):
        pass
class Net(L.LightningModule):
    def on_train_epoch_end(self):
        self.log("a", 1.0)
class Other:
    def on_epoch_finish(self):
        pass
"""
TRAINER = frozenset(
    ["on_epoch_begin", "on_epoch_end", "on_evaluate", "on_init_end", "on_log", "on_optimizer_step",
     "on_pre_optimizer_step", "on_predict", "on_prediction_step", "on_push_begin", "on_save", "on_step_begin",
     "on_step_end", "on_substep_end", "on_train_begin", "on_train_end"]
)  # fmt: skip
"""Events of TrainerCallback (transformers 5.24)."""
_PARTS = ("train", "validation", "test", "predict")
LIGHTNING = frozenset(
    [f"on_{p}_{w}" for p in _PARTS for w in ("start", "end", "epoch_start", "epoch_end", "batch_start", "batch_end")]
    + [f"on_{p}_model_{w}" for p in _PARTS for w in ("eval", "train", "zero_grad")]
    + ["on_fit_start", "on_fit_end", "on_exception", "on_sanity_check_start", "on_sanity_check_end", "on_gpu"]
    + [f"on_{w}_checkpoint" for w in ("load", "save")]
    + [f"on_{when}_{what}" for when in ("before", "after") for what in ("backward", "batch_transfer", "zero_grad")]
    + ["on_before_optimizer_step", "on_before_accelerator_backend_setup", "on_hparams_update"]
    + [f"on_{p}_dataloader" for p in _PARTS] + ["on_epoch_start", "on_epoch_end", "on_pretrain_routine_start",
       "on_pretrain_routine_end", "on_batch_start", "on_batch_end", "on_keyboard_interrupt", "on_init_start",
       "on_init_end", "on_configure_sharded_model", "on_after_backward", "on_post_move_to_device",
       "on_train_val_dataloader"]
)  # fmt: skip
"""Hooks of modules and callbacks of Lightning 1 and 2 (those that went are told by another rule)."""


def find(project: Project) -> Iterator[Evidence]:
    for owner in project.classes:
        events = _events(project, owner)
        if not events:
            continue
        for method in owner.children:
            name = method.name
            if (
                method.kind != "function"
                or not name.startswith("on_")
                or name in events
                or _called(project, owner, name)
            ):
                continue
            from difflib import get_close_matches

            near = get_close_matches(name, sorted(events), 1, 0.7)
            hint = f", did you mean {near[0]}" if near else ""
            text = f"{name} is no event of the library, so nobody calls it{hint}"
            fix = Fix(f"def {near[0]}") if near else None
            if near:
                yield sighting(__name__, (method.node, method), text, fix=fix)


def _events(project: Project, owner: Scope) -> frozenset[str]:
    """The events of the one library that the class derives from; none where a base of the program may add some."""
    names = project.base_names(owner)
    direct = {project.dotted(b, owner.parent or owner) for b in getattr(owner.node, "bases", ())}
    if len(getattr(owner.node, "bases", ())) != 1 or not direct <= names:
        return frozenset()
    base = next(iter(direct), "")
    root, last = base.split(".")[0], base.rsplit(".", 1)[-1]
    if root == "transformers" and last in ("TrainerCallback",):
        return TRAINER
    return (
        LIGHTNING
        if root in ("lightning", "pytorch_lightning") and last in ("LightningModule", "Callback")
        else frozenset()
    )


def _called(project: Project, owner: Scope, name: str) -> bool:
    decorated = any(m.decorators for m in owner.children if m.name == name)
    return (
        decorated
        or any(True for _ in project.calls(name))
        or any(isinstance(n, ast.Constant) and n.value == name for n in ast.walk(owner.node))
    )
