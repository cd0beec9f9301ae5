"""``Trainer.fit`` of Lightning, and the ``train`` of a Hugging Face trainer with its own loss: the loop they run."""

from __future__ import annotations

import ast
from typing import Any

from trainwreck.code.rehearsal.calling import Asked
from trainwreck.code.rehearsal.domain import (
    UNKNOWN,
    Bound,
    Class,
    Function,
    Items,
    Node,
    Obj,
    Place,
    Table,
    Turn,
    Value,
    candidates,
)
from trainwreck.code.rehearsal.graph import reached
from trainwreck.code.rehearsal.holding import is_optimizer, is_scheduler
from trainwreck.code.rehearsal.library import METHODS, method
from trainwreck.code.rehearsal.library.training import held_by
from trainwreck.code.rehearsal.rehearsing import Rehearsing

TRAINERS = ("lightning.Trainer", "lightning.pytorch.Trainer", "pytorch_lightning.Trainer",
            "lightning.pytorch.trainer.Trainer", "pytorch_lightning.trainer.Trainer")  # fmt: skip


class Fit:
    """One ``fit``: a ``LightningModule`` of the program, its optimizers, and where the call stands."""

    def __init__(self, run: Rehearsing, model: Obj, place: Place, frame: Any) -> None:
        self.run = run
        self.model = model
        self.place = place
        self.frame = frame
        self.schedulers: list[tuple[Obj, bool]] = []
        """With each: moved after every step, not after every epoch."""
        self.configured: Value = None
        """What ``configure_optimizers`` gave."""

    def hook(self, name: str, *args: Value, of: Value = None) -> Value:
        """What a method that the program defines returns; ``UNKNOWN`` where it defines none."""
        owner = of if isinstance(of, Obj) else self.model
        found = owner.cls.find(name) if owner.cls is not None else None
        if not isinstance(found, Function):
            return UNKNOWN
        wanted = len(found.node.args.posonlyargs) + len(found.node.args.args) - 1 + 9 * bool(found.node.args.vararg)
        return self.run.call(Bound(found, owner), list(args)[:wanted], {}, self.place, self.frame)

    def go(self, loader: Value, data: Value, held_out: Value) -> None:
        """Set up, then two epochs of two batches each: the first, and any other."""
        run = self.run
        self.hook("setup", "fit", of=data)
        self.hook("setup", "fit")
        before = len(run.objects)
        configured = self.hook("configure_optimizers")
        optimizers = _optimizers(configured)
        self.schedulers = _schedulers(configured, by_step=False)
        self.configured = configured
        listed = {id(scheduler) for scheduler, _ in self.schedulers}
        made = [obj for obj in run.objects[before:] if is_scheduler(obj) and id(obj) not in listed]
        self.schedulers += [(obj, False) for obj in made]  # handed over in a way that is not understood
        self.model.attributes["optimizers()"] = optimizers[0] if len(optimizers) == 1 else Items(list(optimizers))
        if loader is None:
            loader = self.hook("train_dataloader", of=data)
        automatic = run.truth(self.model.attributes.get("automatic_optimization", True)) is not False
        self.hook("on_fit_start")
        self.hook("on_train_start")
        node, scope = self.place
        inner = node.func if isinstance(node, ast.Call) else getattr(node, "body", [node])[0]
        for epoch in range(2):
            with run.turn(Turn(node, scope, epoch, None, epoch > 0)):
                self.hook("on_train_epoch_start")
                elements, _ = run.elements(loader, self.place, self.frame)
                for number, element in enumerate(elements[:2]):
                    with run.turn(Turn(inner, scope, number, loader, number > 0)):
                        self.step(element, number, optimizers if automatic else [])
                self.validate(held_out, data)
                self.moved(by_step=False)
                self.hook("on_train_epoch_end")
        self.hook("on_train_end")

    def step(self, batch: Value, number: int, optimizers: list[Obj]) -> None:
        run = self.run
        index: Value = number if number == 0 else run.node("counter", (), self.place)
        self.hook("on_train_batch_start", batch, index)
        loss = _loss(self.hook("training_step", batch, index))
        if optimizers and isinstance(loss, Node) and not loss.unknown:
            for optimizer in optimizers:
                run.event("zero_grad", optimizer, (), {}, self.place, state=held_by(run, optimizer))
            event = run.event("backward", loss, (), {}, self.place, state={"through": self.model})
            event.state["reached"] = reached(loss)
            for optimizer in optimizers:
                run.event("step", optimizer, (), {}, self.place, state=held_by(run, optimizer))
            self.moved(by_step=True)
        self.hook("on_train_batch_end", loss, batch, index)

    def moved(self, *, by_step: bool) -> None:
        for scheduler, each_step in self.schedulers:
            if each_step is by_step:
                watched = self.logged(_monitor(self.configured, scheduler))
                self.run.event("step", scheduler, (watched,), {}, self.place)

    def logged(self, name: Value) -> Value:
        """What was logged last under a name."""
        for event in reversed(self.run.tape if isinstance(name, str) else ()):
            given = event.args[0] if event.name in ("log", "log_dict") and event.args else None
            value = given.entries.get(name) if isinstance(given, Table) else None
            value = event.args[1] if given == name and len(event.args) > 1 else value
            if isinstance(value, Node):
                return value
        return self.run.node("monitored", (), self.place, grad=False)

    def validate(self, loader: Value, data: Value) -> None:
        run = self.run
        if loader is None:
            loader = self.hook("val_dataloader", of=data)
        known = run.submodules(self.model, deep=True)
        modes = [(module, module.training) for _, module in known]
        for _, module in known:
            run.switch(module, False)
        with run.grads(False):
            for element in run.elements(loader, self.place, self.frame)[0][:1]:
                self.hook("validation_step", element, 0)
            self.hook("on_validation_epoch_end")
        for module, mode in modes:
            run.switch(module, mode)


def _optimizers(given: Value) -> list[Obj]:
    """Optimizers in any of the forms that ``configure_optimizers`` may return."""
    match given:
        case Obj() if is_optimizer(given):
            return [given]
        case Table():
            return _optimizers(given.entries.get("optimizer"))
        case tuple() | Items():
            parts = given if isinstance(given, tuple) else given.items
            return [found for part in parts for found in _optimizers(part)]
        case Node():
            return next((found for c in candidates(given) if c is not given and (found := _optimizers(c))), [])
    return []


def _schedulers(given: Value, *, by_step: bool) -> list[tuple[Obj, bool]]:
    """Schedulers in any of the forms that ``configure_optimizers`` may return, with the interval that they ask for."""
    match given:
        case Obj() if is_scheduler(given):
            return [(given, by_step)]
        case Table():
            asked = given.entries.get("interval", "step" if by_step else "epoch")
            inner = [given.entries.get("lr_scheduler"), given.entries.get("scheduler")]
            return [found for part in inner for found in _schedulers(part, by_step=asked == "step")]
        case tuple() | Items():
            parts = given if isinstance(given, tuple) else given.items
            return [found for part in parts for found in _schedulers(part, by_step=by_step)]
        case Node():
            tried = (_schedulers(c, by_step=by_step) for c in candidates(given) if c is not given)
            return next((found for found in tried if found), [])
    return []


def _monitor(given: Value, scheduler: Obj) -> Value:
    """The name of what a scheduler watches, as ``configure_optimizers`` gives it."""
    match given:
        case Table():
            inner = [given.entries.get("lr_scheduler"), given.entries.get("scheduler")]
            if any(part is scheduler for part in inner):
                return given.entries.get("monitor")
            return next((name for part in inner if (name := _monitor(part, scheduler)) is not None), None)
        case tuple() | Items():
            parts = given if isinstance(given, tuple) else given.items
            return next((name for part in parts if (name := _monitor(part, scheduler)) is not None), None)
        case Node():
            tried = (_monitor(c, scheduler) for c in candidates(given) if c is not given)
            return next((name for name in tried if name is not None), None)
    return None


def _loss(returned: Value) -> Value:
    found = [c for c in candidates(returned) if c is not None]
    if len(found) > 1 and all(isinstance(c, Node) for c in found):
        return returned
    value = found[0] if found else None
    return value.entries.get("loss") if isinstance(value, Table) else value


def _fit(run: Rehearsing, asked: Asked) -> Value:
    model = next((c for c in candidates(asked.get("model", 0)) if isinstance(c, Obj)), None)
    run.event("fit", asked.receiver, asked.args, asked.options, asked.place)
    if model is None or model.cls is None:
        return None
    given, held_out = asked.get("train_dataloaders", 1), asked.get("val_dataloaders", 2)
    data = asked.get("datamodule", 3)
    if isinstance(given, Obj) and given.cls is not None and given.cls.find("train_dataloader") is not None:
        given, data = None, given
    Fit(run, model, asked.place, asked.frame).go(given, data, held_out)
    return None


METHODS.update({(kind, "fit"): _fit for kind in TRAINERS})


def alone(run: Rehearsing, cls: Class) -> bool:
    """Rehearse the training of a ``LightningModule`` that no script of the program makes; False for another class."""
    steps = cls.find("training_step")
    if not isinstance(steps, Function) or not any(b.endswith("LightningModule") for b in cls.external()):
        return False
    place = (steps.node, steps.scope)
    model = run.build(cls, [], {}, place)
    Fit(run, model, place, cls.frame).go(run.node("argument", (), place, name="loader"), None, UNKNOWN)
    return True


@method("module", "optimizers")
def _their_optimizers(run: Rehearsing, asked: Asked) -> Value:
    return asked.receiver.attributes.get("optimizers()", UNKNOWN)


@method("module", "manual_backward")
def _manual(run: Rehearsing, asked: Asked) -> Value:
    loss = asked.get("loss", 0, UNKNOWN)
    event = run.event("backward", loss, asked.args[1:], {}, asked.place, state={"through": asked.receiver})
    event.state["reached"] = reached(loss)
    return None


@method("module", "save_hyperparameters")
def _hyperparameters(run: Rehearsing, asked: Asked) -> Value:
    """The arguments of the ``__init__`` that calls it stay with the module as ``hparams``."""
    wanted = [a for a in asked.args if isinstance(a, str)]
    names = {k: v for k, v in asked.frame.names.items() if k not in ("self", "__class__")}
    kept = run.thing("lightning.hparams", (), {}, asked.place)
    kept.attributes.update({k: v for k, v in names.items() if not wanted or k in wanted})
    run.set_attribute(asked.receiver, "hparams", kept, asked.place)
    return None


def _train(run: Rehearsing, asked: Asked) -> Value:
    """A Hugging Face trainer of the program with a ``compute_loss`` of its own: one step of it."""
    trainer: Obj = asked.receiver
    run.event("train", trainer, asked.args, asked.options, asked.place)
    own = trainer.cls.find("compute_loss") if trainer.cls is not None else None
    model = next((c for c in candidates(trainer.get("model", 0)) if isinstance(c, Obj)), None)
    if not isinstance(own, Function) or model is None:
        return run.node("train", asked.given, asked.place, grad=False)
    batch = Table({}, True)
    with run.turn(Turn(asked.place[0], asked.place[1], 1, trainer.get("train_dataset"), True)):
        loss = _loss(run.call(Bound(own, trainer), [model, batch], {}, asked.place, asked.frame))
        loss = loss[0] if isinstance(loss, tuple) and loss else loss
        if isinstance(loss, Node) and not loss.unknown:
            event = run.event("backward", loss, (), {}, asked.place, state={"through": trainer})
            event.state["reached"] = reached(loss)
    return run.node("train", asked.given, asked.place, grad=False)


METHODS.update({(kind, "train"): _train for kind in ("transformers.Trainer", "transformers.Seq2SeqTrainer")})
