"""Token models, read off the graph at sampled steps: which positions attention looks at, how targets follow inputs.

Input ids are what the embedding saved, targets what the loss saved, attention weights what the softmax saved.
"""

from __future__ import annotations

from typing import Any

import torch

from . import graph
from .objective import ENTROPY_LOSSES
from .probe import Backward, Probe

TABLE = "attention"
LEAST_LENGTH = 4
ALL = 0.99
"""Share of positions from which two sequences are called the same: a few may agree by chance or be special tokens."""
FUTURE = 1e-3
"""Attention weight on later positions, a mean over rows, that rounding does not explain."""
MAX_ATTENTION = 1 << 22
"""Elements of attention weights that are looked at; larger ones are cut to their first samples."""
MAX_SEQUENCES = 4
"""Sequences of ids that are told apart: a source and a target, and some to spare."""
LOOKS = 3
"""Sampled steps after which a model without embedding or attention is left alone."""


def _from_second_on(node: Any) -> bool:
    """True for ``scores[:, 1:]``: each position is asked for the token before it, which is no copy of its own."""
    if graph.kind(node) != "SliceBackward0":
        return False
    return getattr(node, "_saved_dim", None) == 1 and getattr(node, "_saved_start", None) == 1


class Attention(Probe):
    """Events for targets that equal inputs, attention to the future, to padding or to one place only."""

    name = "attention"
    rarely = frozenset(("backward",))

    def __init__(self, recorder: Any) -> None:
        super().__init__(recorder)
        self._empty = 0
        self.next_tokens = False
        """Whether the targets were the next tokens of the inputs."""

    def backward(self, moment: Backward) -> None:
        """Look at inputs, attention and targets of this loss."""
        root = moment.loss.grad_fn
        if not moment.sampled or root is None or self._empty >= LOOKS or moment.loss.device.type != "cpu":
            return
        saved = next(p.saved for p in self.recorder.probes if hasattr(p, "saved"))
        found = graph.nodes(root)
        looked_up = inputs(found, saved)
        weights = attentions(found, saved)
        if not looked_up and not weights:
            self._empty += 1
            return
        causal = False
        if looked_up:
            causal = self._targets(found, saved, looked_up[0][1], moment)
            self.next_tokens = self.next_tokens or causal
        for place, (node, matrix) in enumerate(weights):
            keys = [*looked_up] if len(looked_up) < 2 else looks_at(graph.product(node), looked_up)
            own = causal and any(n is looked_up[0][0] for n, _ in keys)
            self._weights(place, matrix, keys[0][1] if len(keys) == 1 else None, own, moment)
        if causal:
            self._fused(found, saved, looked_up, moment)

    def _targets(self, found: list[Any], saved: graph.SavedTensors, ids: Any, moment: Backward) -> bool:
        """True if the targets are the next tokens of the inputs."""
        node = next((n for n in found if graph.kind(n) in ENTROPY_LOSSES), None)
        target = saved.of(node, "target") if node is not None else None
        if target is None:
            return False
        rows, length = ids.shape
        if target.numel() == rows * length:
            target = target.reshape(rows, length)
            same, following = agree(target, ids), agree(target[:, :-1], ids[:, 1:])
            second = agree(target[:, :-2], ids[:, 2:]) if length > LEAST_LENGTH else 0.0
        elif target.numel() == rows * (length - 1):
            target = target.reshape(rows, length - 1)
            same, following, second = agree(target, ids[:, :-1]), agree(target, ids[:, 1:]), 0.0
        else:
            return False
        varied = bool((ids[:, 1:] != ids[:, :-1]).float().mean() > 0.2)
        looks_back = target.shape[1] < length and any(map(_from_second_on, found))
        if same >= ALL and varied and following < ALL and not looks_back:
            text = "the targets equal the inputs at every position: the model learns to copy its input"
            self._tell("live-targets-equal-inputs", text, moment)
        if second >= ALL and varied and following < ALL:
            text = "the targets are two positions ahead of the inputs: they were shifted twice"
            self._tell("live-targets-shifted-twice", text, moment)
        return following >= ALL and same < ALL

    def _weights(self, place: int, matrix: Any, ids: Any, causal: bool, moment: Backward) -> None:
        """One layer's attention weights, last two dimensions queries and keys."""
        queries, keys = matrix.shape[-2:]
        flat = matrix.reshape(-1, queries, keys)
        flat = flat[: max(1, MAX_ATTENTION // (queries * keys))].float()
        entropy = -(flat * flat.clamp(min=1e-12).log()).sum(-1).mean()
        self.recorder.row(
            TABLE, {"step": moment.step, f"entropy/{place}": entropy, f"top/{place}": flat.amax(-1).mean()}
        )
        if causal and queries == keys:
            future = float(torch.triu(flat, 1).sum(-1).mean())
            if future > FUTURE:
                text = (
                    f"attention layer {place} puts {future:.0%} of its weight on later positions, which hold the"
                    " answer: the targets are the next tokens"
                )
                self._tell("live-attention-sees-future", text, moment)
        if ids is not None and ids.shape[1] == keys:
            self._padding(place, flat, ids, moment)

    def _padding(self, place: int, flat: Any, ids: Any, moment: Backward) -> None:
        """Does attention of the rows that end in padding look at the padding?"""
        padded = trailing(ids)
        rows = padded.any(1)
        if padded is None or float(rows.float().mean()) < 0.2 or flat.shape[0] % ids.shape[0]:
            return
        heads = flat.shape[0] // ids.shape[0]
        mask = padded.repeat_interleave(heads, 0)
        chosen = mask.any(1) & ~mask.all(1)
        if not bool(chosen.any()):
            return
        flat, mask = flat[chosen], mask[chosen]
        on_padding = (flat * mask[:, None, :]).sum(-1)
        real = ~mask if flat.shape[1] == mask.shape[1] else torch.ones_like(on_padding, dtype=torch.bool)
        share = float((on_padding * real).sum() / real.sum().clamp(min=1))
        expected = float(mask.float().mean())
        if share > 0.98 and expected < 0.95:
            text = f"attention layer {place} looks at padding only ({share:.0%} of its weight): the mask is inverted"
            self._tell("live-attention-only-on-padding", text, moment)
        elif share > 0.5 * expected and expected > 0.1:
            text = f"attention layer {place} spends {share:.0%} of its weight on padding: it is not masked"
            self._tell("live-attention-on-padding", text, moment)

    def _fused(
        self, found: list[Any], saved: graph.SavedTensors, looked_up: list[tuple[Any, Any]], moment: Backward
    ) -> None:
        """Fused attention keeps no weights, but whether it was asked to be causal."""
        for node in found:
            kind = graph.kind(node)
            if not kind.startswith("ScaledDotProduct"):
                continue
            if saved.of(node, "is_causal") is False and saved.of(node, "attn_mask") is None:
                sizes = graph.shape(node)
                query, key = saved.of(node, "query"), saved.of(node, "key")
                if len(looked_up) > 1 and not any(n is looked_up[0][0] for n, _ in looks_at(node, looked_up)):
                    continue
                if len(sizes) == 4 and query is not None and query.shape[-2] == key.shape[-2] > 1:
                    text = "fused attention runs without a causal mask while the targets are the next tokens"
                    self._tell("live-attention-sees-future", text, moment)
                    return

    def _tell(self, kind: str, text: str, moment: Backward) -> None:
        self.tell(kind, text, frame=moment.frame, step=moment.step)


def inputs(found: list[Any], saved: graph.SavedTensors) -> list[tuple[Any, Any]]:
    """Embeddings with the ids (rows, positions) that they looked up, of ids that differ between rows.

    The nearest to the loss first: the sequence that is predicted, before the one that it is predicted from.
    """
    held: list[tuple[Any, Any]] = []
    for node in found:
        if graph.kind(node) != "EmbeddingBackward0":
            continue
        ids = saved.of(node, "indices")
        if ids is None or ids.dim() != 2 or ids.shape[1] < LEAST_LENGTH:
            continue
        if (ids.shape[0] == 1 or not bool((ids == ids[:1]).all())) and not any(same(ids, i) for _, i in held):
            held.append((node, ids))
    return held[:MAX_SEQUENCES]


def same(one: Any, other: Any) -> bool:
    """Whether two sequences of ids are one (read by two embeddings)."""
    return one.shape == other.shape and bool(torch.equal(one, other))


def looks_at(product: Any, looked_up: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """Those sequences of which the keys of an attention are made, its product being queries times keys; all of them
    where that isn't seen."""
    key = graph.child(product, 1) if product is not None else None
    return graph.reached(key, looked_up) if key is not None else looked_up


def attentions(found: list[Any], saved: graph.SavedTensors) -> list[tuple[Any, Any]]:
    """Every softmax over keys of at least two dimensions beside the batch with its result, the first layer first."""
    results = []
    for node in found:
        if graph.kind(node) == "SoftmaxBackward0":
            result = saved.of(node, "result")
            if result is not None and result.dim() >= 3 and result.shape[-1] >= LEAST_LENGTH:
                results.append((node, result.detach()))
    return results[::-1][:16]


def agree(one: Any, other: Any) -> float:
    """Share of equal places among those that hold a token (negative ones are ignored labels)."""
    valid = one >= 0
    count = float(valid.float().sum())
    return float(((one == other) & valid).float().sum()) / count if count else 0.0


def trailing(ids: Any) -> Any:
    """Where each row repeats the most frequent last id to its end, at least twice: padding, True there."""
    last = ids[:, -1]
    values, counts = last.unique(return_counts=True)
    pad = values[counts.argmax()]
    reversed_same = (ids.flip(1) == pad).long().cumprod(1).flip(1).bool()
    long_enough = reversed_same.sum(1) >= 2
    return reversed_same & long_enough[:, None]
