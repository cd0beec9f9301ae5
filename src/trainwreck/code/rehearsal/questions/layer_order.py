"""Layers and choices with an axis for the samples of their own: do they get the samples along it?"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Obj, Place, Value
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.axes import along
from trainwreck.code.rehearsal.questions.carried import carried_samples
from trainwreck.code.rehearsal.questions.factors import arguments
from trainwreck.code.rehearsal.questions.roles import RAW, trained, users
from trainwreck.code.rehearsal.questions.sampleaxis import ATTENTION, KEEPS, RECURRENT, SWAPS, nearest, sample_axis


def other_order(run: Rehearsing) -> Iterator[Answer]:
    """A recurrent layer, an attention, a packing or a CTC loss that takes samples for times, or times for samples."""
    told: set[int] = set()
    for node in trained(run):
        first = node.inputs[0] if node.inputs else None
        if node.place is None or not isinstance(first, Node) or first.shape.open or len(first.shape.dims) != 3:
            continue
        wanted = expected_samples(node)
        axis = sample_axis(run, first) if wanted is not None else None
        axis = carried_samples(node) if axis is None and wanted is not None else axis
        if axis not in (0, 1) or axis == wanted:
            continue
        place = _place(run, node, first)
        if id(place[0]) in told:
            continue
        told.add(id(place[0]))
        expected = "they are expected along axis 0" if axis else "the time is expected there"
        yield Answer(place, f"the samples lie along axis {axis} here, and {expected}", (node.place,))


def expected_samples(node: Node) -> int | None:
    """The axis on which a layer expects the samples."""
    owner = node.owner
    if node.op == "ctc_loss":
        return 1
    if node.op == "pack_padded_sequence":
        first = node.options.get("batch_first", node.inputs[2] if len(node.inputs) > 2 + len(node.options) else False)
        return None if not isinstance(first, bool) else 0 if first else 1
    if owner is None or not owner.kind.startswith("torch.nn."):
        return None
    layer: Value = owner
    if node.op in ("transformerencoder", "transformerdecoder"):
        layer = owner.get("encoder_layer", 0, owner.get("decoder_layer", 0))
    elif node.op not in RECURRENT and node.op not in ATTENTION:
        return None
    position = {"MultiheadAttention": 8, "TransformerEncoderLayer": 6, "TransformerDecoderLayer": 6, "Transformer": 10}
    if not isinstance(layer, Obj):
        return None
    asked = layer.get("batch_first", position.get(layer.name, 4), False)
    return None if not isinstance(asked, bool) else 0 if asked else 1


def _place(run: Rehearsing, node: Node, first: Node) -> Place:
    """The swap that made it so; where the outputs are swapped back, the call; else where the layer is made."""
    assert node.place is not None
    at: Value = first
    for _ in range(8):
        if not isinstance(at, Node):
            break
        moved = at.op in SWAPS or at.op == "permute"
        if moved and at.place is not None and sample_axis(run, at) != sample_axis(run, at.inputs[0]):
            if node.op == "ctc_loss":
                break
            return at.place
        at = at.inputs[0] if at.inputs and at.op in KEEPS | {"part"} else None
    if node.op == "ctc_loss":
        inside = next(
            (p for p in reversed((*first.stack, first.place)) if p is not None and p[1] is node.place[1]), None
        )
        return inside or node.place
    after = users(run).get(id(node), ())
    if any(u.op in SWAPS and set(arguments(u)) == {0, 1} for u in after):
        return node.place
    owner = node.owner
    layer = owner.get("encoder_layer", 0, owner.get("decoder_layer", 0)) if owner is not None else None
    made = layer if isinstance(layer, Obj) else owner
    return made.place if made is not None and made.place is not None else node.place


def one_sample_taken(run: Rehearsing) -> Iterator[Answer]:
    """``out[-1]`` of a recurrent layer whose samples lie along that axis: one sample stands for all."""
    told: set[int] = set()
    for node in trained(run):
        first = node.inputs[0] if node.inputs else None
        if node.op != "getitem" or not isinstance(first, Node) or first.op not in RECURRENT | ATTENTION:
            continue
        index = node.inputs[1]
        items = index if isinstance(index, tuple) else (index,)
        axis = sample_axis(run, first)
        if axis is None or axis >= len(items) or node.place is None or id(node.place[0]) in told:
            continue
        if isinstance(items[axis], int) and not isinstance(items[axis], bool):
            told.add(id(node.place[0]))
            yield Answer(node.place, "this takes one sample of the batch, not one step of each sequence")


def picked_over_samples(run: Rehearsing) -> Iterator[Answer]:
    """The best class is looked for among the samples, and then looked up among the classes."""
    table = users(run)
    for node in run.nodes:
        first = node.inputs[0] if node.inputs else None
        if node.op not in ("argmax", "argmin", "max", "min") or node.place is None or not isinstance(first, Node):
            continue
        if first.shape.open or len(first.shape.dims) != 2 or not any(n.op in RAW for n in nearest(first)):
            continue
        dim = along(node)
        if not isinstance(dim, int) or sample_axis(run, first) != dim % 2:
            continue
        at = [node]
        for _ in range(3):
            at = [u for n in at for u in table.get(id(n), ()) if u.op in (*FOLLOWS, "gather", "take_along_dim")]
            looked = next((u for u in at if u.op not in FOLLOWS), None)
            other = looked.options.get("dim", (*looked.inputs[1:2], None)[0]) if looked is not None else None
            if looked is not None and isinstance(other, int) and other % 2 != dim % 2 and looked.place is not None:
                yield Answer(node.place, "the best one is looked for among the samples of the batch", (looked.place,))
                return


FOLLOWS = frozenset(["unsqueeze", "part", "long", "view", "reshape", "getitem"])


__all__ = ["expected_samples", "one_sample_taken", "other_order", "picked_over_samples"]
