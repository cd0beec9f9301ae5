"""Is everything connected: judged once after the first steps, almost for nothing.

Parameters without gradient or in no optimizer, evaluation mode while training, a step that changes nothing, gradients
that are never zeroed or thrown away.
"""

from __future__ import annotations

import re
import weakref
from collections.abc import Iterable, Iterator
from types import FrameType
from typing import Any

import torch

from . import graph, unreached
from .adapters import large_factors
from .hidden import hidden, stored
from .origins import Origins
from .probe import Backward, Probe, Step
from .variables import local_variables
from .watched import Watched, sample_of

WIRING_STEPS = 5
"""Steps after which the wiring is judged: one may be a warm-up, five of a kind are no accident (a judgement)."""
NEAR = 400
"""Nodes of a graph within which another loss's forward is recognised."""
MODE_STEPS = 20
"""Steps between two looks at the mode flags afterwards: sampled ones."""


ADAPTER = re.compile(r"(^|[._])(lora|loras|lora_[ab]|adapter|adapters|ia3|prefix_tuning)([._]|$)", re.IGNORECASE)
"""What adapters are called by PEFT and by those who write their own."""


class _Early:
    """What the first steps of one optimizer looked like."""

    def __init__(self) -> None:
        self.in_eval = 0
        self.still = 0
        self.kept = 0
        self.looked = 0
        self.sample: list[tuple[Any, Any]] = []
        self.held: list[Any] = []
        self.cleared = False
        self.since = 0
        """Number of backwards when the gradients were held; without one since, they tell nothing."""
        self.mode_told = False


class Wiring(Probe):
    """Judges how model, loss and optimizer are connected."""

    name = "wiring"
    rarely = frozenset(("backward", "before_step", "after_step"))

    def __init__(self, recorder: Any) -> None:
        super().__init__(recorder)
        self._early: weakref.WeakKeyDictionary[Any, _Early] = weakref.WeakKeyDictionary()
        self._watching: list[_Early] = []
        self._lines: dict[int, int] = {}
        self._discards: list[bool] = []
        self._looked_at = 0
        """Number of the last backward that was looked at: backwards between sampled steps are not."""
        self._marker = torch.zeros((), requires_grad=True)
        self._drawn: int | None = None
        """Number of the newest node of autograd at that backward."""

    def backward(self, moment: Backward) -> None:
        """Before a backward: have the gradients of the last step been cleared?

        They may stay while another loss goes backward (a GAN's), so one look at which they are gone is enough.
        """
        if not moment.sampled or not moment.accumulates:
            return  # steps 6 to 10 are no sampled ones
        self._looked_at = moment.number
        for early in self._watching:
            early.cleared = early.cleared or any(p.grad is None or not sample_of(p.grad).any() for p in early.held)
        known, self._drawn = self._drawn, self._latest_node()
        node = getattr(moment.loss, "grad_fn", None)
        if known is not None and node is not None and made_before(node, known):
            return  # several losses of one forward (multi-task weighting, gradient surgery): no batches that add up
        if moment.frame is not None and collects(moment.frame, self.recorder.optimizers.values()):
            self._discards.clear()
            return  # gradients of each sample, put together by the program itself
        if self.recorder.open:
            return  # within a step: a closure goes backward several times, each time for itself
        line = moment.frame.f_lineno if moment.frame is not None else 0
        before = self._lines.get(line, 0)
        self._lines[line] = before + 1
        if before and len(self.recorder.optimizers) == 1 and len(self._discards) < 60:
            self._between(moment)

    def _latest_node(self) -> int:
        """Autograd numbers its nodes in the order in which they are made: the number of one that is made now."""
        with torch.enable_grad():
            number: int = (self._marker * 1.0).grad_fn._sequence_nr()
        return number

    def _between(self, moment: Backward) -> None:
        """Between two backwards of the same line without a step: are the gradients of the first one gone?"""
        for watched in self.recorder.optimizers.values():
            gone = all(p.grad is None or not sample_of(p.grad).any() for p in ends(watched.parameters))
            if all(n >= watched.steps for n in watched.without_grad):
                return  # none has ever come: nothing that could be thrown away
            self._discards.append(gone)
            if len(self._discards) >= 6 and all(self._discards):
                text = "gradients are cleared between backwards of one step: only the last micro-batch counts"
                self.tell("live-gradients-discarded", text, frame=moment.frame, step=moment.step)

    def before_step(self, step: Step) -> None:
        """In the first steps: sample weights and modes; after five of them judge."""
        early = self._early.get(step.optimizer)
        if early is None:
            early = self._early[step.optimizer] = _Early()
        watched, number = step.watched, step.number
        if self._lines:
            step.row["micro_batches"] = float(max(self._lines.values()))
            self._lines = {}
        self._conclude(early)
        if number <= WIRING_STEPS:
            if number <= 2:
                early.sample = [(p, sample_of(p).clone()) for p in ends(watched.parameters)]
            early.in_eval += in_evaluation(self._modes(watched))
        if number == WIRING_STEPS:
            self._judge(watched, early)
        elif number > WIRING_STEPS and number % MODE_STEPS == 0 and not early.mode_told:
            self._mode_flip(watched, early)

    def _conclude(self, early: _Early) -> None:
        """Were the held gradients gone before the backward that has come since?

        Gradients are cleared just before their own backward; a step whose backward was not seen tells nothing (a
        generator that steps once in five of its critic). A closure runs backward within the step: judged after it.
        """
        if early not in self._watching or self.recorder.backwards == early.since:
            return
        self._watching.remove(early)
        if self._looked_at == self.recorder.backwards:
            early.looked += 1
            early.kept += not early.cleared

    def after_step(self, step: Step) -> None:
        """Did the weights move; what are the gradients now, to see whether they are zeroed before the next backward."""
        early, watched = self._early.get(step.optimizer), step.watched
        if early is None:
            return
        self._conclude(early)
        if step.number <= 2 and early.sample:
            early.still += all(torch.equal(sample_of(p), old) for p, old in early.sample)
            if early.still >= 2 and watched.rates().get("lr", 0.0) > 0.0:
                self._say("live-step-changes-nothing", "the optimizer's steps change no weight", None, step)
        if step.number == 2:
            early.sample = []
        if step.number < WIRING_STEPS:
            present = [p for p in ends(watched.parameters) if p.grad is not None and p.grad.layout == torch.strided]
            early.held = [p for p in present if sample_of(p.grad).any()][-4:]
            early.cleared, early.since = False, self.recorder.backwards
            if early.held and early not in self._watching:
                self._watching.append(early)
        if early.looked >= WIRING_STEPS - 1 and early.kept == early.looked and step.number >= WIRING_STEPS:
            text = "gradients are not zeroed between steps: each step uses the sum of all gradients so far"
            self._say("live-gradients-never-zeroed", text, None, step)
            early.looked = early.kept = -1000

    def _say(self, kind: str, text: str, module: str | None, step: Step) -> None:
        self.recorder.event(kind, text, module, step=step.number)

    def _judge(self, watched: Watched, early: _Early) -> None:
        recorder, number = self.recorder, WIRING_STEPS
        dead = [n for n, c in zip(watched.names, watched.without_grad, strict=True) if c >= WIRING_STEPS]
        if dead:
            unreached.tell(recorder, watched, dead, number)
        zero = [n for n, c in zip(watched.names, watched.zero_grad, strict=True) if c >= WIRING_STEPS]
        if zero:
            text = f"{len(zero)} of {len(watched.names)} parameters get a gradient of exactly 0: {', '.join(zero[:4])}"
            recorder.event(
                "live-zero-gradient", text, zero[0], step=number, value=round(len(zero) / len(watched.names), 3)
            )
        factors = [
            name
            for name, parameter, count in zip(watched.names, watched.parameters, watched.zero_grad, strict=True)
            if count >= WIRING_STEPS and parameter.dim() >= 2 and not sample_of(parameter).any()
        ]
        if len(factors) >= 2:
            # A product of two zero matrices keeps both at zero: each is the other's gradient.
            text = f"{len(factors)} matrices are zero and get a gradient of exactly 0: {', '.join(factors[:4])}"
            recorder.event("live-zero-factors", text, factors[0], step=number)
        held = {id(p) for w in recorder.optimizers.values() for p in w.parameters}
        self._frozen(watched, held)
        for owner, attribute, module in hidden(recorder.names.modules(), held)[:1]:
            name = f"{owner[0]}.{attribute}"
            text = (
                f"{name} holds modules that the model doesn't know of ({type(module).__name__}): they get gradients,"
                " and no optimizer holds them"
            )
            facts = stored(type(owner[1]), attribute)
            self.tell("live-modules-not-registered", text, name, step=number, attribute=attribute, **facts)
        for module, attribute, factor in large_factors(recorder.names.modules(), held)[:1]:
            text = f"{module} adds its product {factor:g}-fold ({attribute})"
            self.tell("live-adapter-scale-large", text, module, step=number, attribute=attribute, value=factor)
        for root in recorder.names.roots:
            mine = [(n, p) for n, p in root.named_parameters() if p.requires_grad]
            left = [n for n, p in mine if id(p) not in held]
            got = [n for n, p in mine if id(p) not in held and p.grad is not None]
            # Most of the model left out is a choice (a linear probe); a minority was forgotten.
            if got and 2 * len(left) < len(mine):
                text = f"{len(left)} of {len(mine)} trainable parameters are in no optimizer: {', '.join(left[:4])}"
                recorder.event("live-not-in-optimizer", text, f"{recorder.names.name_of(root)}.{left[0]}", step=number)
        if early.in_eval >= WIRING_STEPS:
            text = "dropout and batch norm are in evaluation mode while the optimizer steps"
            recorder.event("live-eval-mode-in-training", text, None, step=number, **self._put())
            early.mode_told = True
        early.in_eval = 0

    def _frozen(self, watched: Watched, held: set[int]) -> None:
        """Adapters and new heads that are frozen while something else is trained."""
        for root in self.recorder.names.roots:
            named = [(n, p) for n, p in root.named_parameters()]
            new = [(n, p) for n, p in named if ADAPTER.search(n)]
            frozen = [n for n, p in new if not p.requires_grad]
            rest = [id(p) in held for n, p in named if not ADAPTER.search(n)]
            # where most of the model is trained, this is the time before the adapters: they may get theirs later
            if frozen and len(frozen) == len(new) and any(rest) and 2 * sum(rest) < len(rest):
                text = f"all {len(new)} adapter parameters are frozen, as {frozen[0]}"
                self.recorder.event(
                    "live-adapters-frozen", text, f"{self.recorder.names.name_of(root)}.{frozen[0]}", step=WIRING_STEPS
                )

    def _modes(self, watched: Watched) -> list[Any]:
        """Modules whose behaviour depends on the mode, in the trained parts of the models of this optimizer.

        A teacher or a finished model beside them is in evaluation mode on purpose.
        """
        held = {id(p) for p in watched.parameters}
        roots = [r for r in self.recorder.names.roots if any(id(p) in held for p in r.parameters())]
        return [m for root in roots for m in trained_modes(root, False)]

    def _put(self) -> dict[str, Any]:
        """Where the program last asked for evaluation mode."""
        place = next((p.evaluation for p in self.recorder.probes if isinstance(p, Origins)), None)
        return {"path": place[0], "line": place[1]} if place is not None else {}

    def _mode_flip(self, watched: Watched, early: _Early) -> None:
        modes = self._modes(watched)
        held = {id(p) for p in watched.parameters}
        trained = [m for m in modes if any(id(p) in held for p in m.parameters())] or modes
        early.in_eval = early.in_eval + 1 if in_evaluation(trained) else 0
        if early.in_eval >= 2:
            text = f"from about step {watched.steps} on dropout and batch norm are in evaluation mode while training"
            self.recorder.event("live-eval-mode-in-training", text, None, step=watched.steps, **self._put())
            early.mode_told = True


def made_before(root: Any, known: int) -> bool:
    """True if the graph under ``root`` has a node that was made before the number ``known``: the forward of a loss that
    has gone backward already. Leaves have no such number."""
    numbers = [n._sequence_nr() for n in graph.nodes(root, NEAR) if not graph.kind(n).endswith("AccumulateGrad")]
    return any(0 <= n <= known for n in numbers)


def collects(frame: FrameType, optimizers: Iterable[Watched]) -> bool:
    """True if a variable of ``frame`` holds gradients that were taken out (of each sample, of each task): a tensor, or
    a list of them, of the shape of a parameter or as long as all of them, which is no parameter itself."""
    parameters = [p for w in optimizers for p in w.parameters]
    shapes = {tuple(p.shape) for p in parameters if p.numel() > 1}
    mine, total = {id(p) for p in parameters}, sum(p.numel() for p in parameters)
    with local_variables(frame) as variables:
        return any(_holds(v, shapes, mine, total, 3) for v in list(variables.values()))


def _holds(value: Any, shapes: set[tuple[int, ...]], mine: set[int], total: int, depth: int) -> bool:
    if type(value) is torch.Tensor:
        if id(value) in mine or value.requires_grad or not value.is_floating_point():
            return False
        return tuple(value.shape) in shapes or total in (value.numel(), *value.shape[-1:])
    if depth and isinstance(value, (list, tuple, dict)):
        items = list(value.values() if isinstance(value, dict) else value)[:8]
        return any(_holds(item, shapes, mine, total, depth - 1) for item in items)
    return False


def ends(parameters: list[Any]) -> list[Any]:
    """A few parameters from either end: the input's and the output's layers."""
    return parameters if len(parameters) <= 16 else parameters[:8] + parameters[-8:]


def has_modes(module: Any) -> bool:
    """True for dropout and batch norm."""
    return isinstance(module, (torch.nn.modules.dropout._DropoutNd, torch.nn.modules.batchnorm._NormBase))


def trained_modes(module: Any, trained: bool) -> Iterator[Any]:
    """Dropout and batch norm below ``module``, without frozen parts: those are kept in evaluation mode on purpose.

    ``trained`` holds for a module without parameters: whether something beside it is trained as a whole. A frozen layer
    with a trainable parametrisation is not.
    """
    own = [p.requires_grad for p in module.parameters()]
    trained = any(own) if own else trained
    if has_modes(module):
        if trained:
            yield module
        return
    if own:
        parts = [[p.requires_grad for p in child.parameters()] for child in module.children()]
        direct = any(p.requires_grad for p in module.parameters(recurse=False))
        trained = direct or any(part and all(part) for part in parts)
    for child in module.children():
        yield from trained_modes(child, trained)


def in_evaluation(modes: list[Any]) -> bool:
    """True if there are such modules and none of them is in training mode."""
    return bool(modes) and not any(m.training for m in modes)
