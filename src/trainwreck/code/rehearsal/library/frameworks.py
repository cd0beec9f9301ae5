"""Accelerate and Lightning's Fabric: what they are given comes back wrapped, and behaves as before."""

from __future__ import annotations

from trainwreck.code.rehearsal.calling import Asked
from trainwreck.code.rehearsal.domain import UNKNOWN, Value
from trainwreck.code.rehearsal.graph import reached
from trainwreck.code.rehearsal.library import METHODS, Handler
from trainwreck.code.rehearsal.rehearsing import Rehearsing

ACCELERATORS = ("accelerate.Accelerator", "accelerate.accelerator.Accelerator")
FABRICS = (
    "lightning.Fabric", "lightning.fabric.Fabric", "lightning_fabric.Fabric", "lightning.fabric.fabric.Fabric",
    "lightning_fabric.fabric.Fabric",
)  # fmt: skip


def _note(kinds: tuple[str, ...], handler: Handler, *names: str) -> None:
    METHODS.update({(kind, name): handler for kind in kinds for name in names})


def _given(run: Rehearsing, asked: Asked) -> Value:
    """One thing comes back alone, several as a tuple."""
    run.event("prepare", asked.receiver, asked.args, asked.options, asked.place)
    given = [
        *asked.args,
        *(v for k, v in asked.options.items() if k in ("module", "model", "optimizer", "data_loader")),
    ]
    if asked.more or not given:
        return run.node("prepare", asked.given, asked.place)
    return given[0] if len(given) == 1 else tuple(given)


def _first(run: Rehearsing, asked: Asked) -> Value:
    """The argument itself: unwrapped, or gathered from all processes."""
    return asked.args[0] if asked.args else next(iter(asked.options.values()), UNKNOWN)


def _backward(run: Rehearsing, asked: Asked) -> Value:
    loss = asked.args[0] if asked.args else asked.options.get("loss", asked.options.get("tensor", UNKNOWN))
    event = run.event("backward", loss, asked.args[1:], {}, asked.place, state={"through": asked.receiver})
    event.state["reached"] = reached(loss)
    return None


def _clip(run: Rehearsing, asked: Asked) -> Value:
    made = run.node(asked.name, asked.args, asked.place, dict(asked.options), full=asked.name, grad=False)
    run.event("clip", None, asked.args, asked.options, asked.place, full=asked.name, result=made)
    return made


def _context(run: Rehearsing, asked: Asked) -> Value:
    return run.thing(f"{asked.receiver.kind}.{asked.name}", asked.args, asked.options, asked.place)


_note(ACCELERATORS, _given, "prepare", "prepare_model", "prepare_optimizer", "prepare_data_loader", "prepare_scheduler")
_note(ACCELERATORS, _first, "unwrap_model", "gather", "gather_for_metrics", "reduce", "pad_across_processes")
_note(ACCELERATORS, _backward, "backward")
_note(ACCELERATORS, _clip, "clip_grad_norm_", "clip_grad_value_")
_note(ACCELERATORS, _context, "accumulate", "autocast", "no_sync", "main_process_first", "local_main_process_first",
      "join_uneven_inputs", "profile")  # fmt: skip
_note(FABRICS, _given, "setup", "setup_module", "setup_optimizers", "setup_dataloaders")
_note(FABRICS, _first, "all_gather", "all_reduce", "broadcast", "to_device")
_note(FABRICS, _backward, "backward")
_note(FABRICS, _clip, "clip_gradients")
_note(FABRICS, _context, "autocast", "no_backward_sync", "init_module", "init_tensor", "rank_zero_first")
