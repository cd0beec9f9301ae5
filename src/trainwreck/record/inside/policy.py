"""Policy gradients: does the step make good actions more likely, or less?

Read off the graph: the product of an advantage (numbers of both signs, no gradient) and a log-probability or ratio, the
sign with which it stands in the loss, and the error of a value function on the same samples.
"""

from __future__ import annotations

import contextlib
from typing import Any

import torch

from . import graph
from .probe import Backward, Probe
from .variables import local_variables

LOOKS = 3
"""Sampled backwards that must agree before anything is told."""
CERTAIN = 0.7
"""Correlation from which two columns tell the same: the advantage and the value's error are one quantity, up to scale
and to what the value function has learned since."""
NEAR = 120
TALL = 12
"""Operations between the product and the log-probability or ratio."""
LOG_PROBABILITIES = ("LogSoftmaxBackward0", "LogsumexpBackward0", "LogBackward0", "LogSigmoidBackward0")


class Policy(Probe):
    """Events ``live-policy-gradient-reversed`` and ``live-advantage-reversed``."""

    name = "policy"
    rarely = frozenset(("backward",))

    def __init__(self, recorder: Any) -> None:
        super().__init__(recorder)
        self._ascents: list[bool] = []
        self._reversed: list[bool] = []
        self._nothing = 0
        self._last_error: Any = None

    def backward(self, moment: Backward) -> None:
        """Look for a policy gradient under this loss; a few losses without one end the search."""
        root = moment.loss.grad_fn
        if self._nothing >= 12 or root is None or moment.loss.device.type != "cpu" or moment.loss.numel() != 1:
            return
        if not moment.sampled and len(self._ascents) < LOOKS and moment.number > 60:
            return
        if len(self._ascents) >= 12:
            return
        saved = next(p.saved for p in self.recorder.probes if hasattr(p, "saved"))
        near = graph.nodes(root, NEAR)
        error = value_error(near, saved)
        found = self._products(root, near, saved)
        self._nothing = 0 if found or error is not None else self._nothing + 1
        own = error if error is not None else self._last_error
        self._last_error = error if error is not None and not found else self._last_error
        if found and not self._ascents:
            # such a loss is no measure of progress: a reader of the recording has to know
            self.recorder.row("policy", {"step": moment.step, "products": float(len(found))})
        for node, advantage, sign in found[:1]:
            self._judge(node, advantage, sign, own, moment)

    def _products(self, root: Any, near: list[Any], saved: graph.SavedTensors) -> list[tuple[Any, Any, float]]:
        """(node, advantage, sign in the loss) of every product of numbers of both signs with a log-probability."""
        found = []
        signs = signs_in(root, near)
        for node in near:
            if graph.kind(node) != "MulBackward0":
                continue
            inputs = [graph.child(node, 0), graph.child(node, 1)]
            if (inputs[0] is None) == (inputs[1] is None):
                continue
            other = saved.of(node, "other" if inputs[0] is not None else "self")
            if not isinstance(other, torch.Tensor) or not both_signs(other):
                continue
            if is_probability(inputs[0] or inputs[1]) and node in signs:
                found.append((node, other.detach(), signs[node]))
        return found

    def _judge(self, node: Any, advantage: Any, sign: float, error: Any, moment: Backward) -> None:
        self._ascents.append(sign > 0)
        if error is not None and error.numel() == advantage.numel():
            agreement = correlation(advantage, -error)
            if abs(agreement) >= CERTAIN:
                self._reversed.append(agreement < 0)
        if len(self._reversed) >= LOOKS and all(self._reversed) and not any(self._ascents):
            text = (
                "the advantage has the opposite sign of return minus value: actions that did better than expected"
                " become less likely"
            )
            name = self._named(advantage, moment)
            self.tell("live-advantage-reversed", text, frame=moment.frame, variable=name, step=moment.step)
        minimised = not any(g.get("maximize") for o in list(self.recorder.optimizers) for g in o.param_groups)
        if len(self._ascents) >= LOOKS and all(self._ascents) and not any(self._reversed) and minimised:
            text = (
                "the loss contains log-probability times advantage with a plus: minimising it makes good actions rarer"
            )
            self.tell("live-policy-gradient-reversed", text, frame=moment.frame, step=moment.step)

    def _named(self, advantage: Any, moment: Backward) -> str | None:
        """The variable of the calling frame that is the advantage."""
        if moment.frame is None:
            return None
        with local_variables(moment.frame) as found:
            for name, value in list(found.items()):
                same = isinstance(value, torch.Tensor) and value.data_ptr() == advantage.data_ptr()
                if same and value.numel() == advantage.numel():
                    return name
        return None


def signs_in(root: Any, near: list[Any]) -> dict[Any, float]:
    """The sign with which each node goes into the loss, as far as sums, means, minima and negations lead."""
    found: dict[Any, float] = {root: 1.0}
    through = ("Mean", "Sum", "Minimum", "Maximum", "Add", "View", "Squeeze", "Unsqueeze", "Reshape", "Clamp", "Where")
    for node in near:
        if node not in found:
            continue
        kind, sign = graph.kind(node), found[node]
        for index, (child, _) in enumerate(node.next_functions):
            if child is None or child in found:
                continue
            if kind.startswith("Neg") or (kind == "SubBackward0" and index == 1) or kind == "RsubBackward1":
                found[child] = -sign
            elif kind.startswith((*through, "Sub")):
                found[child] = sign
            elif kind in ("MulBackward0", "DivBackward0"):
                number = None
                with contextlib.suppress(AttributeError, RuntimeError):
                    number = graph.scalar(node._saved_other)
                if number is not None:
                    found[child] = sign * (1.0 if number >= 0 else -1.0)
                elif kind == "DivBackward0":
                    found[child] = sign
    return found


def both_signs(value: Any) -> bool:
    """Numbers per sample, a fair share of them on either side of zero."""
    if not value.is_floating_point() or value.numel() < 8 or value.requires_grad:
        return False
    positive = float((value > 0).float().mean())
    return 0.1 < positive < 0.9 and float((value < 0).float().mean()) > 0.1


def is_probability(node: Any) -> bool:
    """True if the values come from a log-probability or a ratio of probabilities: exp of a difference of them."""
    near = graph.nodes(node, TALL)
    kinds = [graph.kind(n) for n in near]
    if any(kind in LOG_PROBABILITIES for kind in kinds):
        return True
    return "ExpBackward0" in kinds and "SubBackward0" in kinds


def value_error(near: list[Any], saved: graph.SavedTensors) -> Any:
    """Prediction minus target of a squared error per sample under this loss, None without one."""
    for node in near:
        kind = graph.kind(node)
        if kind in ("MseLossBackward0", "SmoothL1LossBackward0"):
            scores, target = saved.of(node, "self"), saved.of(node, "target")
            if scores is not None and target is not None and scores.shape == target.shape and scores.numel() >= 8:
                return (scores - target).detach()
        if kind == "PowBackward0" and saved.of(node, "exponent") == 2:
            base, difference = saved.of(node, "self"), graph.child(node)
            if base is not None and base.numel() >= 8 and graph.kind(difference).startswith("Sub"):
                # (target - value) ** 2: what has no gradient stands first
                return base.detach() if graph.child(difference, 0) is not None else -base.detach()
    return None


def correlation(one: Any, other: Any) -> float:
    """Pearson's, over all elements in order; 0 where one of them does not vary."""
    a, b = one.reshape(-1).float(), other.reshape(-1).float()
    a, b = a - a.mean(), b - b.mean()
    size = float(a.norm() * b.norm())
    return float(a @ b) / size if size > 0 else 0.0
