"""What the loss is made of, read off its graph at sampled steps: the loss function's own inputs, terms and factors.

Certain faults are plain here whatever the code looks like: a softmax under a cross-entropy, a sigmoid under
``BCEWithLogits``, a likelihood of raw logits, a difference that broadcasts to a square.
"""

from __future__ import annotations

from typing import Any

import torch

from . import callers, graph, readings
from .lines import Lines
from .probe import Backward, Probe
from .variables import local_variables

TABLE = "objective"
ENTROPY_LOSSES = ("NllLossBackward0", "NllLoss2DBackward0")
PAIR_LOSSES = ("MseLossBackward0", "SmoothL1LossBackward0", "HuberLossBackward0")
BINARY_LOSSES = ("BinaryCrossEntropyWithLogitsBackward0", "BinaryCrossEntropyBackward0")
MAX_ITEMS = 32
"""Items of a dictionary of terms; larger ones are no such thing."""
FACTOR_NAMES = ("weight", "lambda", "lam", "coef", "beta", "alpha", "gamma", "scale")
"""What factors of terms are called (regular expressions over names beside a number)."""
NEAR = 200
"""Nodes from the loss within which its own functions are looked for."""
LINEAR = ("AddmmBackward0", "MmBackward0", "LinearBackward0", "BmmBackward0", "ConvolutionBackward0", "ReluBackward0")


REACH = {
    "TanhBackward0": (-1.0, 1.0),
    "SigmoidBackward0": (0.0, 1.0),
    "SoftmaxBackward0": (0.0, 1.0),
    "ReluBackward0": (0.0, float("inf")),
    "SoftplusBackward0": (0.0, float("inf")),
}
"""Between what an activation gives out."""
BEYOND, BEYOND_LOOKS, MARGIN = 0.05, 4, 0.02
"""Share of the targets of a batch beyond those ends by more than the margin, at the first so many sampled steps:
outliers are few, and noise in labels is small (judgements)."""
LEAST_MEASURED = 16
"""Elements of a difference from which the same size twice is no accident."""
ZERO_LOOKS = 40
"""Samples (one in 20 steps) in which a factor is zero before it is told while the run goes on: a warm-up of 800 steps
is long."""
LEAST_ZERO_LOOKS = 3
AGAINST = 5
"""Looks in a row at a negated loss after which it is no step of another kind between ordinary ones."""


class Objective(Probe):
    """Events for what is wrong in the loss itself; a table ``objective`` of how predictions and targets agree."""

    name = "objective"
    rarely = frozenset(("backward",))

    def __init__(self, recorder: Any) -> None:
        super().__init__(recorder)
        self.saved = graph.SavedTensors()
        self._label_counts: dict[int, Any] = {}
        self._values: dict[Any, Any] = {}
        self._distances: list[float] = []
        """Sizes of the differences that terms of the loss that is looked at measure."""
        self._beyond: dict[int, int] = {}
        self._against = 0
        """Looks in a row at which all loss functions had a negative factor."""
        self._zeros: dict[str, tuple[int, dict[str, Any]]] = {}
        self._counting: set[str] = set()
        """Values of the terms of the loss that is looked at, by their nodes."""
        self._names: dict[Any, str] = {}

    def attach(self) -> None:
        """Know when saved tensors must not be touched."""
        self.saved.attach()

    def backward(self, moment: Backward) -> None:
        """Read the graph of this loss."""
        root = moment.loss.grad_fn
        if not moment.sampled or root is None:
            return
        near = graph.nodes(root, NEAR)
        row: dict[str, Any] = {"step": moment.step}
        names = self._names = self._term_names(moment)
        factors = graph.terms(root, self.saved)
        self._factors(factors, names, moment, row)
        factors_by_node = dict(factors)
        counts: dict[str, int] = {}
        self._distances = []
        for node in near:
            kind = graph.kind(node)
            found = None
            if kind in ENTROPY_LOSSES:
                found = "ce", self._cross_entropy(node, moment)
            elif kind in PAIR_LOSSES:
                found = "mse", self._pair(node, moment)
            elif kind in BINARY_LOSSES:
                found = "bce", self._binary(node, kind, moment)
            elif kind == "SoftmaxBackward0":
                self._one_class(node, moment)
            elif kind == "PowBackward0":
                self._measured(self.saved.of(node, "self"), moment)
            elif kind == "SubBackward0":
                self._broadcast(node, graph.shape(node), "a difference in the loss", moment)
            if found is None:
                continue
            label, numbers = found
            if node in factors_by_node:
                numbers["factor"] = factors_by_node[node]
                numbers["averaged"] = float(self.saved.of(node, "reduction") == 1)
            counts[label] = counts.get(label, 0) + 1
            for name, value in numbers.items():
                row[f"{label}{counts[label] if counts[label] > 1 else ''}/{name}"] = value
        self._values, self._names = {}, {}
        if len(row) > 1:
            line = moment.frame.f_lineno if moment.frame is not None else 0
            self.recorder.row(f"{TABLE}{line}", row)

    # terms

    def _term_names(self, moment: Backward) -> dict[Any, str]:
        """Variables of the calling frame by the graph node that made them."""
        found: dict[Any, str] = {}
        self._values = {}
        if moment.frame is None:
            return found
        with local_variables(moment.frame) as variables:
            for name, value in list(variables.items()):
                if isinstance(value, dict) and len(value) <= MAX_ITEMS:
                    # Terms by name: ``{"mask": …, "edge": …}``.
                    for key, item in list(value.items()):
                        if isinstance(key, str) and is_term(item):
                            found.setdefault(item.grad_fn, key)
                            self._values[item.grad_fn] = item.detach().reshape(())
                elif is_term(value):
                    found[value.grad_fn] = name
                    self._values[value.grad_fn] = value.detach().reshape(())
        return found

    def _factors(
        self, factors: list[tuple[Any, float]], names: dict[Any, str], moment: Backward, row: dict[str, Any]
    ) -> None:
        """The factor of each named term in the loss; one that is never anything but zero is told."""
        seen: set[str] = set()
        self._negated([w for n, w in factors if graph.kind(n) in (*ENTROPY_LOSSES, *PAIR_LOSSES)], moment)
        for node, weight in factors:
            name = names.get(node)
            if name is not None and name not in seen:
                seen.add(name)
                row[f"weight/{name}"] = weight
                row[f"value/{name}"] = self._values.get(node)
            if weight == 0.0 and graph.kind(node) not in ("MulBackward0", "DivBackward0"):
                label = name or graph.kind(node).removesuffix("Backward0")
                self._zero_term(label, name, moment)
            elif weight is not None and weight != 0.0 and name is not None:
                self._counting.add(name)

    def _negated(self, weights: list[float], moment: Backward) -> None:
        """Is the error itself made large? Where two optimizers work against each other, that is the method."""
        self._against = self._against + 1 if weights and max(weights) < 0 else 0
        optimizers = list(self.recorder.optimizers)
        if self._against != AGAINST or len(optimizers) != 1:
            return
        if not any(group.get("maximize") for group in optimizers[0].param_groups):
            text = (
                f"the loss function stands in the loss with the factor {weights[0]:.3g}: its minimum is the worst fit"
            )
            self._tell("live-loss-negated", text, moment)

    def _zero_term(self, label: str, name: str | None, moment: Backward) -> None:
        """Note a term that counts nothing now, with the names beside which its factor may be written. A weight that is
        raised from zero during the run is a schedule: it is told late, or at the end."""
        if label in self._zeros:
            looks, facts = self._zeros[label]
        else:
            place = callers.place(moment.frame)
            line = callers.assigned(moment.frame, name) if moment.frame is not None and name is not None else None
            looks, facts = 0, {"path": place[0], "line": line or place[1]} if place is not None else {}
            facts |= {"module": name, "step": moment.step, "names": [*([name] if name else []), *FACTOR_NAMES]}
        self._zeros[label] = looks + 1, facts
        if looks + 1 >= ZERO_LOOKS:
            self._tell_zero(label, facts)

    def _tell_zero(self, label: str, facts: dict[str, Any]) -> None:
        if "live-loss-term-weight-zero" in self.recorder.told or label in self._counting:
            return
        rest = {key: value for key, value in facts.items() if key != "module"}
        text = f"the term {label} has the factor 0 in the loss"
        self.tell("live-loss-term-weight-zero", text, facts["module"], number=0.0, **rest)

    def close(self) -> None:
        """Tell of terms that counted nothing until the end."""
        for label, (looks, facts) in self._zeros.items():
            if looks >= LEAST_ZERO_LOOKS:
                self._tell_zero(label, facts)

    # loss functions

    def _cross_entropy(self, node: Any, moment: Backward) -> dict[str, Any]:
        below = graph.source(node)
        kind = graph.kind(below)
        scores, target = self.saved.of(node, "self"), self.saved.of(node, "target")
        if kind == "LogSoftmaxBackward0":
            first = graph.kind(graph.source(below))
            if first in ("SoftmaxBackward0", "SigmoidBackward0"):
                what = first.removesuffix("Backward0").lower()
                text = f"the cross-entropy takes the output of a {what} for logits, so a softmax is applied to it again"
                self._tell("live-softmax-before-cross-entropy", text, moment, node=node)
            elif scores is not None and self.saved.of(below, "dim") == 0 and len(graph.shape(below)) > 1:
                total = readings.probability_mass(scores)
                if total is not None and abs(total - 1.0) > 0.05:
                    text = (
                        "the likelihood loss takes log-probabilities that are normalised over the samples: those of one"
                        f" sample sum to {total:.3g}"
                    )
                    self._tell("live-likelihood-over-samples", text, moment, node=below)
        elif kind in ("SoftmaxBackward0", "SigmoidBackward0"):
            text = "the likelihood loss takes probabilities where it needs their logarithm"
            self._tell("live-nll-on-probabilities", text, moment, node=node)
        elif scores is not None and kind in LINEAR:
            total = readings.probability_mass(scores)
            if total is not None and abs(total - 1.0) > 0.05:
                text = f"the likelihood loss takes raw logits: their exponentials sum to {total:.3g} instead of 1"
                self._tell("live-nll-on-raw-logits", text, moment, node=node)
        if target is not None:
            self._class_weights(target, self.saved.of(node, "weight"), moment)
        if scores is None or target is None or kind != "LogSoftmaxBackward0":
            return {}
        return readings.classification(scores, target, self.saved.of(node, "ignore_index"))

    def _one_class(self, node: Any, moment: Backward) -> None:
        """A softmax over a dimension of size 1 is 1, whatever goes in."""
        sizes, dim = graph.shape(node), self.saved.of(node, "dim")
        if not sizes or not isinstance(dim, int):
            return
        dim = dim - (1 << 64) if dim >= 1 << 63 else dim
        if sizes[dim] == 1 and max(sizes) > 1:
            text = f"a softmax over dimension {dim} of {list(sizes)}, which has one element: its output is always 1"
            self._tell("live-softmax-over-one", text, moment, node=node)

    def _class_weights(self, target: Any, weight: Any, moment: Backward) -> None:
        """Do the class weights rise with the frequency of the class?"""
        if weight is None or weight.numel() < 2 or target.device.type != "cpu":
            return
        labels = target.reshape(-1)
        labels = labels[(labels >= 0) & (labels < weight.numel())]
        counts = torch.bincount(labels, minlength=weight.numel()).float()
        known = self._label_counts.get(weight.numel())
        counts = counts if known is None else counts + known
        self._label_counts[weight.numel()] = counts
        seen = counts > 0
        if float(counts.sum()) < 200 or int(seen.sum()) < 2 or float(counts[seen].max() / counts[seen].min()) < 2:
            return
        shares, weights = counts[seen].log(), weight.detach().float()[seen].clamp(min=1e-12).log()
        if float(weights.std()) < 0.1:
            return
        a, b = shares - shares.mean(), weights - weights.mean()
        if float(a @ b) / (float(a.norm() * b.norm()) or 1.0) > 0.7:
            text = "the class weights of the loss rise with the frequency of the class instead of falling"
            self._tell("live-class-weights-follow-frequency", text, moment)

    def _binary(self, node: Any, kind: str, moment: Backward) -> dict[str, Any]:
        below = graph.kind(graph.source(node))
        if kind == "BinaryCrossEntropyWithLogitsBackward0" and below in ("SigmoidBackward0", "SoftmaxBackward0"):
            what = below.removesuffix("Backward0").lower()
            text = f"BCEWithLogits takes the output of a {what}: the sigmoid is applied twice"
            self._tell("live-sigmoid-before-bce-with-logits", text, moment, node=node)
        self._broadcast(node, (), "the binary cross-entropy", moment)
        scores, target = self.saved.of(node, "self"), self.saved.of(node, "target")
        if scores is None or target is None:
            return {}
        return readings.binary(scores, target, logits=kind == "BinaryCrossEntropyWithLogitsBackward0")

    def _pair(self, node: Any, moment: Backward) -> dict[str, Any]:
        scores, target = self.saved.of(node, "self"), self.saved.of(node, "target")
        whole = tuple(scores.shape) if scores is not None else graph.shape(graph.child(node))
        self._broadcast(node, whole, "the regression loss", moment)
        if scores is not None and target is not None and scores.shape == target.shape and target.is_floating_point():
            self._measured(scores.detach() - target.detach(), moment)
            self._reach(node, target, moment)
        return readings.regression(scores, target) if scores is not None and target is not None else {}

    def _measured(self, difference: Any, moment: Backward) -> None:
        """Two terms of the same distance: each side is drawn to the other, held fixed in turn (a codebook, two heads).
        Such a loss rises while both move, which says nothing of the rate."""
        if "moving-target" in self.recorder.told or difference is None or difference.numel() < LEAST_MEASURED:
            return
        if difference.device.type != "cpu":
            return
        size = float(difference.detach().abs().sum())
        if any(size > 0.0 and abs(size - other) <= 1e-5 * size for other in self._distances):
            text = "two terms of the loss measure the same distance: the target of each is trained by the other"
            self.tell("moving-target", text, None, frame=moment.frame, step=moment.step)
        self._distances.append(size)

    def _reach(self, node: Any, target: Any, moment: Backward) -> None:
        """Targets that lie where the last activation never gets to."""
        ends = REACH.get(graph.kind(graph.source(node)))
        if ends is None or target.device.type != "cpu":
            return
        low, high = ends
        beyond = float(((target < low - MARGIN) | (target > high + MARGIN)).float().mean())
        line = moment.frame.f_lineno if moment.frame is not None else 0
        self._beyond[line] = self._beyond.get(line, 0) + 1 if beyond > BEYOND else -BEYOND_LOOKS
        if self._beyond[line] < BEYOND_LOOKS:
            return
        name = graph.kind(graph.source(node)).removesuffix("Backward0").lower()
        text = f"{beyond:.0%} of the targets lie outside of {low:g} to {high:g}, where the {name} before the loss ends"
        self._tell("live-targets-out-of-reach", text, moment, node=graph.source(node))

    def _broadcast(self, node: Any, whole: tuple[int, ...], what: str, moment: Backward) -> None:
        """A column against a row: (N, 1) and (N,) became (N, N).

        Two sides that are learned from are pairs on purpose (ranking losses, kernels): a target is no such side."""
        if graph.child(node, 0) is not None and graph.child(node, 1) is not None:
            return
        for index in (0, 1):
            part = graph.child(node, index)
            if part is None:
                continue
            if graph.kind(part) == "ExpandBackward0":
                whole, part = graph.shape(part), graph.child(part)
            small = graph.shape(part)
            if len(whole) >= 2 and whole[-1] == whole[-2] > 1 and small in (whole[:-1], (*whole[:-1], 1)):
                text = f"{what} spreads {list(small)} to {list(whole)}: each prediction meets every target"
                self._tell("live-loss-broadcast", text, moment, node=node)
                return

    def _tell(self, kind: str, text: str, moment: Backward, module: str | None = None, node: Any = None) -> None:
        """An event at the line that made the variable ``module``, or the variable nearest above ``node``."""
        if kind in self.recorder.told:
            return
        lines = next((p for p in self.recorder.probes if isinstance(p, Lines)), None)
        if node is not None and lines is not None:
            place = lines.of(node)
            if place is not None:
                lines.answered(kind)
                self.tell(kind, text, module, path=place[0], line=place[1], step=moment.step)
                return
        name = module or (self._nearest(node, moment) if node is not None else None)
        place = callers.place(moment.frame)
        line = callers.assigned(moment.frame, name) if moment.frame is not None and name is not None else None
        facts: dict[str, Any] = {"path": place[0], "line": line or place[1]} if place is not None else {}
        step = moment.step

        def anyhow() -> None:
            self.tell(kind, text, module, variable=name, step=step, **facts)

        if node is None or lines is None or not lines.ask(kind, anyhow):
            anyhow()

    def _nearest(self, node: Any, moment: Backward) -> str | None:
        """The variable of the calling frame that was made from ``node`` in the fewest operations."""
        best: tuple[int, str] | None = None
        for made, name in (self._names or {}).items():
            under = graph.nodes(made, 60)
            if node in under and (best is None or under.index(node) < best[0]):
                best = under.index(node), name
        return best[1] if best is not None else None


def is_term(value: Any) -> bool:
    """True for a scalar result that has a graph."""
    return isinstance(value, torch.Tensor) and value.numel() == 1 and value.grad_fn is not None
