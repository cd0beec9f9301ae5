"""Variational models: how the KL term stands beside the reconstruction."""

from __future__ import annotations

import math
from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Place
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.terms import (
    Divergence,
    Term,
    averaged,
    divergences,
    losses_of,
    reconstructions,
    squared_error,
    weighed_at,
)

HEAVY = 0.3
"""A weight of the KL below this is taken for one that balances the two reductions."""
TOO_MUCH = 30.0
"""Ratio of the weights. beta-VAE was studied up to 16 (ICLR 2017)."""


def _pairs(run: Rehearsing) -> Iterator[tuple[Place, list[Term], Divergence, Term]]:
    for event, found in losses_of(run):
        kl = divergences(found)
        recon = reconstructions(found, kl)
        if kl and recon and event.place is not None:
            yield event.place, found, kl[0], recon[0]


def mismatched_reductions(run: Rehearsing) -> Iterator[Answer]:
    """One of the two is averaged over all elements, the other summed over them."""
    for place, _, kl, recon in _pairs(run):
        one, other = averaged(kl.term), averaged(recon)
        if kl.term.node.op == "kl_divergence" and one == "":
            continue
        if not _per_sample(kl.term) or not _per_sample(recon):
            continue
        count = _features(recon)
        if other == "mean" and one in ("sum", "sum of each") and kl.weight * _batch(kl.term, one) >= HEAVY:
            if _makes_up(recon.weight, count):
                continue
            text = "the reconstruction is averaged over all its elements, and the KL term is summed"
            yield Answer(_where(recon), text, (_where(kl.term), place))
        elif other in ("sum", "sum of each") and one == "mean" and 0 < kl.weight <= 1.01 and _is_half(kl):
            text = "the KL term is averaged over all its elements, and the reconstruction is summed"
            yield Answer(_where(kl.term), text, (_where(recon), place))


def _per_sample(term: Term) -> bool:
    """True where nothing unknown stands in front but the number of samples."""
    return all(f.op in ("len", "size") for f in term.factors)


def _batch(term: Term, way: str) -> float:
    """How many samples a sum over everything runs over, where that is known."""
    dims = term.node.shape.dims
    known = dims[0] if way == "sum" and not term.node.shape.open and len(dims) > 1 else None
    return float(known) if known is not None else 1.0


def _is_half(kl: Divergence) -> bool:
    """The usual formula without a weight that might make up for the reduction."""
    return abs(kl.weight - 1.0) < 0.01


def _makes_up(weight: float, count: int | None) -> bool:
    """True where the weight of a mean is about the number of the elements, or too large to say."""
    if count is None:
        return weight > TOO_MUCH
    return weight >= 0.97 * count


def _features(recon: Term) -> int | None:
    """How many elements one sample of the reconstruction has."""
    node = recon.node
    pair = squared_error(node)
    for shaped in (node, *(pair or ()), *node.inputs[:2]):
        if isinstance(shaped, Node) and not shaped.shape.open and len(shaped.shape.dims) > 1:
            dims = shaped.shape.dims[1:]
        elif isinstance(shaped, Node) and shaped.shape.open and shaped.shape.dims:
            dims = shaped.shape.dims
        else:
            continue
        if all(isinstance(d, int) for d in dims) and dims:
            return math.prod(d for d in dims if d is not None)
    return None


def _where(term: Term) -> Place:
    """The innermost reduction of a term, or the term itself."""
    for node in (*reversed(term.reductions), term.node):
        if node.place is not None:
            return node.place
    raise ValueError


def heavy_divergence(run: Rehearsing) -> Iterator[Answer]:
    """The KL term counts many times as much as the reconstruction."""
    for place, _, kl, recon in _pairs(run):
        if recon.weight <= 0 or kl.weight <= 0 or not _per_sample(kl.term) or not _per_sample(recon):
            continue
        ways = averaged(kl.term), averaged(recon)
        same = ways[0] == ways[1] or {*ways} == {"sum", "sum of each"} or ways[1] == "mean"
        unit = 0.5 if recon.weight == 0.5 else 1.0
        if same and ways[0] and kl.weight / (recon.weight / unit) >= TOO_MUCH:
            text = f"the KL term counts {kl.weight * unit / recon.weight:g} times as much as the reconstruction"
            yield Answer(weighed_at(run, kl.term) or _where(kl.term), text, (place,))
