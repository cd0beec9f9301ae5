"""Does one number of the input tell the target? Read from the graph of a loss: its target, what a first layer saved.

An honest feature carries noise of its own; one that is the target itself, scaled or coded, fits it to the last digit in
every batch. Only plain supervised losses are asked (one data term, one number to predict), with several other features.
"""

from __future__ import annotations

from typing import Any

import torch

from . import graph
from .arguments import place_of
from .probe import Backward, Probe

LOSSES = frozenset(
    f"{name}Backward0" for name in ("MseLoss", "L1Loss", "SmoothL1Loss", "HuberLoss", "NllLoss", "BinaryCrossEntropy")
) | {"BinaryCrossEntropyWithLogitsBackward0"}
FIRST = {"AddmmBackward0": (1, "mat1"), "MmBackward0": (0, "self")}
"""Products of inputs with weights: the edge of the inputs, and the name under which they are saved."""
LOOKS = 4
"""Batches in a row in which the same column must tell the target."""
MAX_LOOKS = 12
ROWS, COLUMNS, VALUES = 16, 3, 8
"""At least: samples of a batch, features, and different targets where they are numbers."""
MAX_ROWS = 4096
EXACT, HALF = 1e-4, 8e-3
"""Largest error of the fit in deviations of the target: rounding of float32 (after a subtraction of two digits), and of
bfloat16 (8 bits)."""


class Leaks(Probe):
    """Event ``live-input-tells-target``."""

    name = "leaks"
    rarely = frozenset(("backward",))

    def __init__(self, recorder: Any) -> None:
        super().__init__(recorder)
        self.saved = graph.SavedTensors()
        self._looks = 0
        self._suspects: set[int] | None = None
        """Columns that told the target in every batch so far."""
        self._agreed = 0

    def attach(self) -> None:
        """Know when saved tensors must not be touched."""
        self.saved.attach()

    def backward(self, moment: Backward) -> None:
        """Compare the target of this loss with the columns of the inputs."""
        root = moment.loss.grad_fn
        if not moment.sampled or root is None or self._looks >= MAX_LOOKS or moment.loss.device.type != "cpu":
            return
        self._looks += 1
        pair = self._pair(root)
        if pair is None:
            self._looks = MAX_LOOKS  # another kind of training
            return
        columns = telling(*pair)
        self._suspects = columns if self._suspects is None else self._suspects & columns
        self._agreed += 1
        if not self._suspects or 2 * len(self._suspects) > pair[0].shape[1]:
            self._looks = MAX_LOOKS
        elif self._agreed >= LOOKS:
            column = min(self._suspects)
            text = (
                f"column {column} of the inputs ({pair[0].shape[1]} columns) tells the target to the last digit in all"
                f" {self._agreed} batches that were looked at: it is the target itself, scaled or coded"
            )
            self.tell("live-input-tells-target", text, step=moment.step, value=column, **place_of(moment))
            self._looks = MAX_LOOKS

    def _pair(self, root: Any) -> tuple[torch.Tensor, torch.Tensor] | None:
        """The inputs (rows by columns) and the target (one number a row) of a loss that has one data term."""
        losses: list[Any] = []
        inputs: list[torch.Tensor] = []
        for node in graph.nodes(root):
            kind = graph.kind(node)
            if kind in LOSSES:
                losses.append(node)
            elif kind in FIRST and graph.child(node, FIRST[kind][0]) is None:
                held = self.saved.of(node, FIRST[kind][1])
                if isinstance(held, torch.Tensor) and held.dim() == 2 and not held.requires_grad:
                    inputs.append(held)
        if len(losses) != 1 or len(inputs) != 1:
            return None
        rows, target = inputs[0].detach(), self.saved.of(losses[0], "target")
        if not isinstance(target, torch.Tensor) or target.numel() != rows.shape[0] or target.requires_grad:
            return None
        fits = ROWS <= rows.shape[0] <= MAX_ROWS and rows.shape[1] >= COLUMNS and rows.is_floating_point()
        return (rows, target.detach().flatten()) if fits else None


def telling(rows: torch.Tensor, target: torch.Tensor) -> set[int]:
    """Columns of ``rows`` (n, d) of which ``target`` (n) is an affine function, or with one value for each class."""
    tolerance = EXACT if rows.dtype in (torch.float32, torch.float64) else HALF
    values, classes = target.unique(return_inverse=True)
    if not target.is_floating_point() or len(values) <= 2:
        return _coded(rows, classes, len(values))
    if len(values) < VALUES:
        return set()
    x, y = rows.double(), target.double()
    x, y = x - x.mean(0), y - y.mean()
    power = x.square().sum(0)
    slope = (x * y[:, None]).sum(0) / power.clamp(min=1e-30)
    error = (y[:, None] - slope * x).abs().amax(0) / y.square().mean().sqrt()
    return {int(n) for n in ((error < tolerance) & (power > 0)).nonzero()}


def _coded(rows: torch.Tensor, classes: torch.Tensor, count: int) -> set[int]:
    """Columns that are constant within each class, and differ between any two."""
    if not 2 <= count <= VALUES or int(torch.bincount(classes, minlength=count).min()) < 2:
        return set()
    found = set()
    parts = [rows[classes == n] for n in range(count)]
    constant = torch.stack([(part == part[:1]).all(0) for part in parts]).all(0)
    for column in constant.nonzero().flatten().tolist():
        if len({float(part[0, column]) for part in parts}) == count:
            found.add(column)
    return found
