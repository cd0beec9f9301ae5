"""What loss functions are given that they can't take, and what a norm layer holds against what it sees.

Read off the graph of the loss at sampled steps: a KL divergence whose first argument is no logarithm, texts that need
more frames than a CTC loss has, running statistics that are far from the batches that they stand for.
"""

from __future__ import annotations

from typing import Any

import torch

from . import callers, graph
from .lines import Lines
from .probe import Backward, Probe

NEAR = 200
"""Nodes from the loss within which its own functions are looked for."""
NO_LOGARITHM = (
    *("SoftmaxBackward0", "SigmoidBackward0", "ReluBackward0", "SoftplusBackward0"),
    *("AddmmBackward0", "MmBackward0", "LinearBackward0"),
)
"""Operations whose results are no log-probabilities: probabilities, or scores that nobody has normalised."""
MASS = 0.02
"""By how much the probabilities of one row may miss 1: half precision rounds them to three digits."""
LOOKS = 3
"""Looks at which something must be so before it is told: one batch may be odd."""
IMPOSSIBLE = 0.05
"""Share of the texts of the batches looked at that no path gives, from which it is no stray utterance (a judgement)."""
SETTLED = 60
"""Steps after which running statistics have forgotten how they began: with momentum 0.1 a thousandth of it is left."""
FAR = 0.3
"""Deviations of a batch by which its mean lies off zero, or e-foldings its deviation off one, so that statistics that
are left as they began are wrong."""
STILL_OFF = 0.7
"""Share of that way that is left after 60 steps only with a momentum below 0.006."""
LAYERS_NODES = 1500


class Arguments(Probe):
    """Events ``live-kl-of-no-logarithm``, ``live-ctc-text-too-long`` and ``live-running-statistics-off``."""

    name = "arguments of losses"
    rarely = frozenset(("backward",))

    def __init__(self, recorder: Any) -> None:
        super().__init__(recorder)
        self.saved = graph.SavedTensors()
        self._divergences = 0
        self._texts = self._impossible = self._ctc_looks = 0
        self._norms: dict[int, list[bool]] = {}
        """By the buffer of a norm layer: whether it was far off, at each late look."""
        self._names: dict[int, tuple[str, Any]] = {}
        self._has_norms: bool | None = None

    def attach(self) -> None:
        """Know when saved tensors must not be touched."""
        self.saved.attach()

    def backward(self, moment: Backward) -> None:
        """Look at the functions near this loss."""
        root = moment.loss.grad_fn
        if not moment.sampled or root is None or not self.saved.readable:
            return
        for node in graph.nodes(root, NEAR):
            kind = graph.kind(node)
            if kind == "SubBackward0":
                self._divergence(node, moment)
            elif kind.startswith("CtcLoss"):
                self._ctc(node, moment)
        if self._has_norms is None and moment.step > 1:
            self._has_norms = any(
                isinstance(m, torch.nn.modules.batchnorm._NormBase) for _, m in self.recorder.names.modules()
            )
        if self._has_norms and moment.step > SETTLED:
            self._statistics(root)

    # a KL divergence

    def _divergence(self, node: Any, moment: Backward) -> None:
        """``xlogy(t, t) - t * x``, which only a KL divergence computes: is ``x`` a logarithm, given what made it?"""
        first, product = graph.child(node, 0), graph.child(node, 1)
        if graph.kind(product) != "MulBackward0" or (first is not None and graph.kind(first) != "XlogyBackward0"):
            return
        made = graph.source(product, 1)
        weights = self.saved.of(product, "self")
        wrong = graph.kind(made) in NO_LOGARITHM and distribution(weights)
        if not wrong and graph.child(product, 1) is None and graph.kind(first) == "XlogyBackward0":
            other = self.saved.of(product, "other")  # the first argument is given, the second one is learned
            wrong = distribution(other) and distribution(self.saved.of(first, "self"))
        if not wrong:
            return
        self._divergences += 1
        if self._divergences < LOOKS:
            return
        what = graph.kind(graph.source(product, 1)).removesuffix("Backward0").lower() or "distribution"
        text = (
            f"the KL divergence takes the output of a {what} as its first argument, where log-probabilities belong:"
            " it is no distance, and can go below zero"
        )
        self._at(node, "live-kl-of-no-logarithm", text, moment)

    # connectionist temporal classification

    def _ctc(self, node: Any, moment: Backward) -> None:
        """Texts for which no path through the frames exists: their likelihood is zero, whatever the model says."""
        losses = self.saved.of(node, "result0")
        if losses is None or losses.device.type != "cpu" or not self.saved.of(node, "zero_infinity"):
            return  # without zero_infinity the loss itself is infinite, and is told as such
        self._texts += losses.numel()
        self._impossible += int(torch.isinf(losses.detach()).sum())
        self._ctc_looks += 1
        share = self._impossible / max(1, self._texts)
        if self._ctc_looks < LOOKS or share < IMPOSSIBLE:
            return
        frames = sorted({int(n) for n in self.saved.of(node, "input_lengths")})
        letters = sorted({int(n) for n in self.saved.of(node, "target_lengths")})
        text = (
            f"{share:.0%} of the texts have no path through their frames ({frames[0]} to {frames[-1]} frames, texts of"
            f" {letters[0]} to {letters[-1]}): their loss is infinite and zero_infinity takes them out"
        )
        self._at(node, "live-ctc-text-too-long", text, moment, value=round(share, 3))

    # running statistics

    def _statistics(self, root: Any) -> None:
        """Is what a norm layer keeps for evaluation what its batches are like?"""
        for node in graph.nodes(root, LAYERS_NODES):
            if graph.kind(node) != "NativeBatchNormBackward0" or not self.saved.of(node, "training"):
                continue
            kept, inverse = self.saved.of(node, "running_var"), self.saved.of(node, "result2")
            mean, batch_mean = self.saved.of(node, "running_mean"), self.saved.of(node, "result1")
            if kept is None or inverse is None or mean is None or batch_mean is None:
                continue
            if kept.device.type != "cpu" or not kept.numel():
                continue
            known = kept.detach(), mean.detach(), inverse.detach().pow(-2), batch_mean.detach()
            began, now = apart(torch.ones_like(known[0]), torch.zeros_like(known[1]), *known[2:]), apart(*known)
            if began > FAR:
                key = kept.data_ptr()
                if key not in self._norms:
                    self._names[key] = self._named(key)
                self._norms.setdefault(key, []).append(now > STILL_OFF * began)

    def _named(self, key: int) -> tuple[str, Any]:
        """Name and momentum of the layer whose variance lies there; asked while the model is alive."""
        for name, module in self.recorder.names.modules():
            held = getattr(module, "running_var", None)
            if isinstance(held, torch.Tensor) and held.data_ptr() == key:
                return name, getattr(module, "momentum", None)
        return "", None

    def close(self) -> None:
        """Tell of layers whose statistics were as far off as at the start at the last looks."""
        if not self._norms or not self._evaluates():
            return
        bad = {key for key, looks in self._norms.items() if len(looks) > LOOKS and all(looks[-LOOKS:])}
        if not bad or 2 * len(bad) < len(self._norms):
            return
        name, momentum = next((self._names[k] for k in self._norms if k in bad and self._names[k][0]), ("", None))
        if name:
            text = (
                f"the statistics that {name} keeps for evaluation are as far off its batches as at the start"
                f" (momentum {momentum})"
            )
            self.tell("live-running-statistics-off", text, name)

    def _evaluates(self) -> bool:
        """Whether the program has put a module into evaluation mode: only then are the statistics used."""
        return any(getattr(p, "evaluation", None) is not None for p in self.recorder.probes)

    def _at(self, node: Any, kind: str, text: str, moment: Backward, **facts: Any) -> None:
        """An event at the line that made ``node``, which is known one step later."""
        if kind in self.recorder.told:
            return
        lines = next((p for p in self.recorder.probes if isinstance(p, Lines)), None)
        place = lines.of(node) if lines is not None else None
        if lines is not None and place is not None:
            lines.answered(kind)
            self.tell(kind, text, path=place[0], line=place[1], step=moment.step, **facts)
            return
        step, frame_facts = moment.step, place_of(moment)

        def anyhow() -> None:
            self.tell(kind, text, step=step, **frame_facts, **facts)

        if lines is None or not lines.ask(kind, anyhow):
            anyhow()


def apart(variance: Any, mean: Any, batch_variance: Any, batch_mean: Any) -> float:
    """How far statistics are from those of a batch: root mean square over channels, in deviations of the batch."""
    shift = (mean - batch_mean).double() * (batch_variance.double() + 1e-12).rsqrt()
    scale = 0.5 * ((variance.double() + 1e-12) / (batch_variance.double() + 1e-12)).log()
    return float((shift.square() + scale.square()).mean().sqrt())


def place_of(moment: Backward) -> dict[str, Any]:
    """Where the backward was asked for, as facts of an event."""
    place = callers.place(moment.frame)
    return {"path": place[0], "line": place[1]} if place is not None else {}


def distribution(value: Any) -> bool:
    """True for a tensor of probabilities: none negative, and those of a row sum to 1 in some dimension."""
    if not isinstance(value, torch.Tensor) or value.device.type != "cpu" or not value.is_floating_point():
        return False
    value = value.detach()
    if value.dim() == 0 or not value.numel() or value.numel() > 4_000_000 or float(value.min()) < 0:
        return False
    dims = {d % value.dim() for d in (-1, 1) if d < value.dim()}
    return any(value.shape[d] > 1 and float((value.float().sum(dim=d) - 1.0).abs().max()) < MASS for d in dims)
