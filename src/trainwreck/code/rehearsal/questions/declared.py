"""Layers that are given another width than they were declared for, as far as the shapes of the data are known."""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.roles import made_at, trained

LAST = {"linear": ("Linear", "in_features"), "lstm": ("LSTM", "input_size"), "gru": ("GRU", "input_size"),
        "rnn": ("RNN", "input_size")}  # fmt: skip
"""Layers that sum over the last axis: the class, and the option that says how wide it is."""
SECOND = {"conv1d": ("Conv1d", 3), "conv2d": ("Conv2d", 4)}
"""Layers that sum over the channels: the class, and how many axes a batch has."""


def other_width(run: Rehearsing) -> Iterator[Answer]:
    """The first forward fails. Asked only where every size on the way is known."""
    told: set[int] = set()
    for node in sorted(trained(run), key=lambda n: n.serial):
        found = _widths(node)
        if found is None or found[0] == found[1] or node.maybe or node.owner is None or _channels_last(node):
            continue
        place = made_at(run, node)
        place = node.owner.place or place
        if place is not None and id(place[0]) not in told:
            told.add(id(place[0]))
            text = f"this layer is declared for {found[0]} features and is given {found[1]}"
            yield Answer(place, text, (node.place,) if node.place is not None else ())
            return


def channels_last(run: Rehearsing) -> Iterator[Answer]:
    """Images whose channels lie behind their rows and columns, given to a convolution that looks for them in front."""
    for node in sorted(trained(run), key=lambda n: n.serial):
        found = _widths(node)
        if found is None or found[0] == found[1] or node.maybe or not _channels_last(node):
            continue
        at = node.inputs[0]
        while at.op in ("batch", "element", "part") and at.inputs and isinstance(at.inputs[0], Node):
            at = at.inputs[0]
        place = at.place or node.place
        if place is not None:
            text = f"shape {node.inputs[0].shape}: the channels lie last, and the convolution takes axis 1 for them"
            yield Answer(place, text, (node.place,) if node.place is not None else ())
            return


def _channels_last(node: Node) -> bool:
    found = _widths(node)
    sizes = node.inputs[0].shape.dims if node.inputs and isinstance(node.inputs[0], Node) else ()
    return found is not None and node.op == "conv2d" and len(sizes) == SECOND["conv2d"][1] and sizes[-1] == found[0]


def _widths(node: Node) -> tuple[int, int] | None:
    """(declared, given)."""
    owner, first = node.owner, node.inputs[0] if node.inputs else None
    if owner is None or not isinstance(first, Node) or first.shape.open or not owner.kind.startswith("torch.nn."):
        return None
    sizes = first.shape.dims
    if node.op in LAST and owner.name == LAST[node.op][0] and len(sizes) >= 2:
        declared, given = owner.get(LAST[node.op][1], 0), sizes[-1]
    elif node.op in SECOND and owner.name == SECOND[node.op][0] and len(sizes) == SECOND[node.op][1]:
        declared, given = owner.get("in_channels", 0), sizes[1]
    else:
        return None
    if not isinstance(declared, int) or isinstance(declared, bool) or not isinstance(given, int):
        return None
    return declared, given


__all__ = ["channels_last", "other_width"]
