"""Layers one behind the other whose weights all start at one number: their units never become different."""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Event, Node
from trainwreck.code.rehearsal.graph import ancestors
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.roles import backwards, trained

FILLS = frozenset(["constant_", "fill_", "ones_"])
AFFINE = frozenset(["linear", "conv1d", "conv2d", "conv3d"])


def all_alike(run: Rehearsing) -> Iterator[Answer]:
    """The weights of a layer, and those of the next one, are filled with one number: so is the gradient of each row.

    One such layer alone is set apart by the weights behind it."""
    losses = backwards(run)
    if not losses:
        return
    start = min(e.serial for e in losses)
    filled: dict[int, tuple[Node, Event]] = {}
    for node in trained(run):
        if node.op not in AFFINE or len(node.inputs) < 2 or not isinstance(node.inputs[1], Node):
            continue
        event = _filled(node.inputs[1], start)
        if event is not None:
            filled[id(node)] = (node, event)
    for node, event in filled.values():
        before = next((n for n in ancestors(node.inputs[0]) if n.op in AFFINE), None)
        if before is not None and id(before) in filled and event.place is not None:
            text = "all weights of this layer and of the one before it start at one number: their units stay alike"
            yield Answer(event.place, text)
            return


def _filled(weight: Node, start: int) -> Event | None:
    """What fills the weights with one number, if nothing else writes into them before the training."""
    if weight.op != "param" or weight.trainable is False or weight.shape.open or len(weight.shape.dims) < 2:
        return None
    if weight.shape.dims[0] in (1, None):
        return None
    written = [e for e in weight.writes if e.serial < start and e.name != "requires_grad"]
    last = written[-1] if written else None
    return last if last is not None and (last.name in FILLS or _no_spread(last)) and not last.maybe else None


def _no_spread(event: Event) -> bool:
    """True for a normal distribution without a deviation: mean and deviation given the wrong way round."""
    args = [a for a in event.args if not isinstance(a, Node)]
    std = event.options.get("std", args[1] if len(args) > 1 else 1)
    return event.name in ("normal_", "trunc_normal_") and isinstance(std, int | float) and std == 0


__all__ = ["all_alike"]
