"""Losses of counts and of symbols: is what they are given on the scale, and along the axis, that they ask for?"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Value
from trainwreck.code.rehearsal.graph import ancestors, near
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.roles import STRUCTURE, given, trained

RATES = frozenset(["softplus", "exp", "relu", "square", "sigmoid"])
"""What makes numbers that are never below zero: rates."""
LOGITS = frozenset(["linear", "conv1d", "conv2d"])
NORMALISES = frozenset(["log_softmax", "softmax"])
MAX_CHAIN = 12


def rates_as_logs(run: Rehearsing) -> Iterator[Answer]:
    """A Poisson loss that takes its input for logarithms is given rates, or one of rates raw outputs."""
    told: set[int] = set()
    for loss in trained(run):
        output = given(loss, "input", 0) if loss.op == "poisson_nll_loss" else None
        logs = loss.options.get("log_input", loss.owner.get("log_input", 0, True) if loss.owner is not None else True)
        last = _unshaped(output)
        if last is None or not isinstance(logs, bool) or loss.place is None or id(loss.place[0]) in told:
            continue
        place = loss.owner.place if loss.owner is not None and loss.owner.place is not None else loss.place
        told.add(id(loss.place[0]))
        proof = tuple(p for p in (last.place, loss.place) if p is not None)
        if logs and last.op in RATES:
            yield Answer(place, f"{last.op} gives rates, and this loss takes them for logarithms of rates", proof)
        elif not logs and last.op in LOGITS:
            yield Answer(place, "this loss takes raw outputs for rates: those may be below zero", proof)


def normalised_over_time(run: Rehearsing) -> Iterator[Answer]:
    """The softmax before a connectionist temporal classification runs along the frames or the samples."""
    for loss in trained(run):
        output = given(loss, "log_probs", 0) if loss.op == "ctc_loss" else None
        at, axis = output, 2
        for _ in range(MAX_CHAIN):
            if not isinstance(at, Node) or at.op in NORMALISES or not at.inputs:
                break
            if at.op in ("transpose", "swapaxes", "swapdims") and _numbers(at.inputs[1:3]):
                one, other = (i % 3 for i in at.inputs[1:3])
                axis = other if axis == one else one if axis == other else axis
            elif at.op == "permute":
                order = at.inputs[1] if isinstance(at.inputs[1], tuple) else at.inputs[1:]
                if len(order) != 3 or not _numbers(order):
                    break
                axis = order[axis] % 3
            elif at.op not in ("float", "contiguous", "clone", "to"):
                break
            at = at.inputs[0]
        if not isinstance(at, Node) or at.op not in NORMALISES or at.place is None:
            continue
        dim = at.options.get("dim", at.owner.get("dim", 0) if at.owner is not None else (*at.inputs, None, None)[1])
        if isinstance(dim, int) and dim % 3 != axis:
            text = "this softmax does not run along the symbols that the loss chooses among"
            yield Answer(at.place, text, (loss.place,) if loss.place is not None else ())
            return


def padded_frames(run: Rehearsing) -> Iterator[Answer]:
    """Every sequence of a padded batch is counted with all frames of the longest one."""
    for loss in trained(run):
        lengths = given(loss, "input_lengths", 2) if loss.op == "ctc_loss" else None
        if not isinstance(lengths, Node) or lengths.op not in ("full", "full_like", "new_full") or loss.place is None:
            continue
        padded = next((n for n in ancestors(loss.inputs[0]) if n.op in ("pad_sequence", "pad_packed_sequence")), None)
        filled = lengths.options.get("fill_value", (*lengths.inputs, None)[1])
        whole = isinstance(filled, Node) and any(n.op in ("size", "attribute", "len") for n in near(filled, 4))
        if padded is not None and padded.op == "pad_sequence" and whole and lengths.place is not None:
            text = "each row counts as long as the longest: what pads it is aligned with symbols too"
            yield Answer(lengths.place, text, tuple(p for p in (padded.place, loss.place) if p is not None))
            return


def _unshaped(value: Value) -> Node | None:
    """What computed a value, before it was only brought into another shape."""
    for _ in range(MAX_CHAIN):
        if not isinstance(value, Node):
            return None
        if value.op not in STRUCTURE | {"clamp", "clamp_min", "clip", "float"} or not value.inputs:
            return value
        value = value.inputs[0]
    return None


def _numbers(values: tuple[Value, ...]) -> bool:
    return bool(values) and all(isinstance(i, int) and not isinstance(i, bool) for i in values)


__all__ = ["normalised_over_time", "padded_frames", "rates_as_logs"]
