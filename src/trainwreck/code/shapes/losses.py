"""Losses of torch: shapes of prediction and target that they refuse, or that broadcast in silence."""

from __future__ import annotations

from collections.abc import Mapping

from trainwreck.code.calls import Call
from trainwreck.code.shapes.domain import ANY, Clash, Shape, Value
from trainwreck.code.shapes.layers import Report

ELEMENTWISE = frozenset(
    ["mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "MSELoss", "L1Loss", "SmoothL1Loss", "HuberLoss"]
)
BINARY = frozenset(["binary_cross_entropy", "binary_cross_entropy_with_logits", "BCELoss", "BCEWithLogitsLoss"])
CLASSES = frozenset(["cross_entropy", "nll_loss", "CrossEntropyLoss", "NLLLoss"])
LOSSES = ELEMENTWISE | BINARY | CLASSES


def checked(name: str, args: list[Value], options: Mapping[str, Value], call: Call, report: Report) -> Value:
    """The shape of a loss (nothing is known of ``reduction="none"``); what does not fit is reported."""
    target = args[1] if len(args) > 1 else options.get("target")
    given = args[0] if args else options.get("input")
    if isinstance(given, Shape) and isinstance(target, Shape) and not given.open and not target.open:
        problem = _problem(name, given, target)
        if problem is not None:
            kind, text = problem
            by = tuple(s.by for s in (given, target) if s.by is not None)
            report(Clash(kind, call, text, by))
    return Shape((), False) if "reduction" not in options else ANY


def _problem(name: str, given: Shape, target: Shape) -> tuple[str, str] | None:
    one, other = given.dims, target.dims
    shown = f"prediction {given} and target {target}"
    if name in CLASSES:
        if (
            len(one) >= 3
            and len(other) == len(one) - 1
            and None not in other
            and one[:-1] == other
            and one[1] != one[-1]
        ):
            return "classes-last", f"{shown}: the classes stand on the last axis, and are expected on axis 1"
        if len(one) >= 2 and len(other) == len(one) - 1:
            rest = [(a, b) for a, b in zip(one[2:], other[1:], strict=True) if None not in (a, b) and a != b]
            if rest:
                return "loss", f"{shown}: the classes must be on axis 1, and the other axes be those of the target"
        elif len(one) >= 2 and len(other) != len(one) and len(other) >= 1:
            return "loss", f"{shown}: the target must have one axis less than the prediction"
        return None
    if len(one) == len(other):
        wrong = [(a, b) for a, b in zip(one, other, strict=True) if None not in (a, b) and a != b]
        if wrong and name in BINARY:
            return "loss", f"{shown} must be equal"
        if wrong and all(1 in pair for pair in wrong):
            return "loss-broadcast", f"{shown} are broadcast against each other"
        return ("loss", f"{shown} can't be combined") if wrong else None
    short, long = sorted((one, other), key=len)
    if name in BINARY:
        return "loss", f"{shown} must be equal"
    if len(short) == 1 and len(long) == 2 and long[1] == 1:
        return "loss-broadcast", f"{shown} are broadcast to every pair of samples"
    return None
