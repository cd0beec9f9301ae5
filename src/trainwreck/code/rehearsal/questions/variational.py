"""Variational models: how the KL term stands beside the reconstruction."""

from __future__ import annotations

import math
from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Place
from trainwreck.code.rehearsal.graph import ancestors
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.roles import bounds, core, unknown
from trainwreck.code.rehearsal.questions.terms import (
    Divergence,
    Term,
    averaged,
    divergences,
    losses_of,
    reconstructions,
    squared_error,
    variance_of,
    weighed_at,
)

HEAVY = 0.3
"""A weight of the KL below this is taken for one that balances the two reductions."""
TOO_MUCH = 30.0
"""Ratio of the weights. beta-VAE was studied up to 16 (ICLR 2017)."""
STUDIED = 16.0
"""The same, of a KL term beside the average of so many elements that it outweighs their sum by this in spite of a
weight that looks small."""


def _pairs(run: Rehearsing) -> Iterator[tuple[Place, list[Term], Divergence, Term]]:
    for event, found in losses_of(run):
        kl = divergences(found)
        recon = reconstructions(found, kl)
        if kl and recon and event.place is not None:
            yield event.place, found, kl[0], recon[0]


MOST = 4.0
"""A weight of the KL term above it was made for other terms (beta-VAE takes 4 and more)."""


def mismatched_reductions(run: Rehearsing) -> Iterator[Answer]:
    """One of the two is averaged over all elements, the other summed over them."""
    for place, _, kl, recon in _pairs(run):
        one, other = averaged(kl.term), averaged(recon)
        if kl.term.node.op == "kl_divergence" and one == "":
            continue
        if not _per_sample(kl.term, ramp=True) or not _per_sample(recon):
            continue
        count = _features(recon)
        whole = kl.weight * _ramp(kl.term) * _batch(kl.term, one)
        wide = _of_data(recon)
        heavy = whole >= HEAVY or (recon.weight > 0 and whole * wide / recon.weight >= STUDIED)
        if other == "mean" and one in ("sum", "sum of each") and heavy:
            if _makes_up(recon.weight, count):
                continue
            text = "the reconstruction is averaged over all its elements, and the KL term is summed"
            yield Answer(_where(recon), text, (_where(kl.term), place))
        elif other in ("sum", "sum of each") and one == "mean" and 0 < kl.weight <= 1.01 and _is_half(kl):
            text = "the KL term is averaged over all its elements, and the reconstruction is summed"
            yield Answer(_where(kl.term), text, (_where(recon), place))
        elif {one, other} == {"sum", "sum of each"} and _one_to_one(kl, recon):
            summed, apart = (kl.term, recon) if one == "sum" else (recon, kl.term)
            text = "this term is summed over the batch, and the one beside it is averaged over its samples"
            yield Answer(_where(summed), text, (_where(apart), place))


def _one_to_one(kl: Divergence, recon: Term) -> bool:
    """True where the two stand beside one another at about equal weight, and neither is divided by the batch."""
    divided = any(f.op in ("len", "size") for f in (*kl.term.factors, *recon.factors))
    return not divided and recon.weight == 1 and HEAVY <= kl.weight * _ramp(kl.term) <= MOST


def _per_sample(term: Term, *, ramp: bool = False) -> bool:
    """True where nothing unknown stands in front but the number of samples, or (``ramp``) what ends at some weight."""
    return all(f.op in ("len", "size") or (ramp and math.isfinite(bounds(f).high)) for f in term.factors)


def _ramp(term: Term) -> float:
    """What a ramp in front of a term goes up to (``min(1.0, step / 1000)``)."""
    return math.prod(bounds(f).high for f in term.factors if f.op not in ("len", "size"))


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


def _of_data(recon: Term) -> int:
    """How many numbers one sample of the data has, as far as that is known."""
    sides = squared_error(recon.node) or recon.node.inputs[:2]
    for side in (s for s in sides if isinstance(s, Node) and not s.grad and not s.shape.open and s.shape.dims[1:]):
        if all(isinstance(d, int) for d in side.shape.dims[1:]):
            return math.prod(d for d in side.shape.dims[1:] if d is not None)
    return 0


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
        apart = {*ways} == {"sum", "sum of each"}  # one of them may be divided by the number of samples
        both = zip((kl.term, recon), ways, strict=True)
        samples = [_samples(term) if apart and way == "sum" else 1.0 for term, way in both]
        same = ways[0] == ways[1] or apart or ways[1] == "mean"
        unit = 0.5 if recon.weight == 0.5 else 1.0
        if None in samples or not same or not ways[0]:
            continue
        times = kl.weight * (samples[0] or 1.0) * unit / (recon.weight * (samples[1] or 1.0))
        if times >= TOO_MUCH:
            text = f"the KL term counts {times:g} times as much as the reconstruction"
            yield Answer(weighed_at(run, kl.term) or _where(kl.term), text, (place,))


def _samples(term: Term) -> float | None:
    """How many samples a sum over everything runs over (one where it is not divided); None where it can't be told."""
    for node in (term.node, *term.node.inputs[:2]):
        if isinstance(node, Node) and not node.shape.open and len(node.shape.dims) > 1:
            return float(node.shape.dims[0]) if node.shape.dims[0] is not None else None
    return 1.0 if term.weight >= HEAVY else None


def one_sign_wrong(run: Rehearsing) -> Iterator[Answer]:
    """A Gaussian KL term with the wrong sign before the square of the mean, the logarithm or the variance.

    ``exp(v) - v + mean**2`` is what grows with the distance from the prior; with any one sign turned round it has no
    lower bound, or pulls the variance to zero. All three turned round are another matter (``signs.flipped``)."""
    for event, found in losses_of(run):
        for term in found:
            spread = variance_of(term.node)
            beside = [t for t in found if t is not term and _alike(t, term)]
            square = next((t for t in beside if _square_of_output(t.node) and variance_of(t.node) is None), None)
            if spread is None or square is None or not term.sure:
                continue
            logs = [t for t in beside if _log_of(t.node, spread)]
            if len(logs) != 1 or abs(square.weight) != abs(term.weight):
                continue
            signs = term.sign, -logs[0].sign, square.sign
            turned = [t for t, s in zip((term, logs[0], square), signs, strict=True) if s < 0]
            if len(turned) not in (1, 2) or event.place is None:
                continue
            wrong = turned[0] if len(turned) == 1 else square if square.sign < 0 else logs[0]
            what = {id(term): "the variance", id(logs[0]): "the logarithm of the variance"}
            text = f"{what.get(id(wrong), 'the square of the mean')} enters the KL term with the wrong sign"
            yield Answer(_signed_at(wrong) or event.place, f"{text}: it has no lower bound", (event.place,))
            return


def logarithm_missing(run: Rehearsing) -> Iterator[Answer]:
    """``exp(v) + mean ** 2`` without ``- v``: what is to hold the variance near that of the prior pulls it to zero."""
    for event, found in losses_of(run):
        for term in found:
            spread = variance_of(term.node)
            beside = [t for t in found if t is not term and _alike(t, term)]
            square = next((t for t in beside if _square_of_output(t.node) and variance_of(t.node) is None), None)
            if spread is None or square is None or not term.sure or term.sign != 1 or square.sign != 1:
                continue
            mine = {id(n) for n in _spread_of(spread)}
            others = [n for t in found if t is not term for n in ancestors(t.node, through=lambda n: n.grad)]
            logs = any(n.op == "log" for t in beside for n in ancestors(t.node))
            if logs or any(id(n) in mine for t in beside for n in core(t.node)):
                continue
            drawn = any(n.op == "mul" and _noisy(n) and mine & {id(a) for a in ancestors(n)} for n in others)
            if drawn and abs(square.weight) == abs(term.weight) and event.place is not None:
                text = "the logarithm of the variance is no part of this: the closer to 0 it is, the less it costs"
                yield Answer(_signed_at(term) or event.place, text, (event.place,))
                return


def _spread_of(spread: Node) -> list[Node]:
    """What the variance is made of: the output in ``exp``, or the deviation itself."""
    inner = spread.inputs[0] if spread.inputs else None
    return core(inner) if spread.op in ("exp", "pow", "square", "mul") and isinstance(inner, Node) else core(spread)


def _noisy(product: Node) -> bool:
    return any(isinstance(i, Node) and i.op in ("randn_like", "randn", "normal") for i in product.inputs)


def _alike(one: Term, other: Term) -> bool:
    """Summands of one formula: within the same averages and factors, in the same case."""
    return (
        one.sure == other.sure
        and [id(r) for r in one.reductions] == [id(r) for r in other.reductions]
        and [id(f) for f in one.factors] == [id(f) for f in other.factors]
    )


def _square_of_output(node: Node) -> bool:
    """The square of what a layer gives, compared with nothing."""
    first = node.inputs[0] if node.inputs else None
    same = node.op == "mul" and len(node.inputs) == 2 and node.inputs[1] is first
    square = same or node.op == "square" or (node.op == "pow" and node.inputs[1:2] in ((2,), (2.0,)))
    if not square or not isinstance(first, Node) or not first.grad:
        return False
    return not any(unknown(n) or n.op == "sub" for n in core(first))


def _log_of(node: Node, spread: Node) -> bool:
    """``v`` beside ``exp(v)``, or ``log(s)`` beside ``s ** 2``."""
    inner: Node | None = node
    if node.op == "log" and node.inputs and isinstance(node.inputs[0], Node):
        inner = node.inputs[0]
        if variance_of(inner) is not None:
            inner = variance_of(inner)
    mine = {id(n) for n in core(spread)}
    if spread.op == "exp" and spread.inputs:
        mine |= {id(n) for n in core(spread.inputs[0])}
    if spread.op == "mul":
        mine |= {id(n) for i in spread.inputs for n in core(i)}
    return (
        inner is not None
        and inner.grad
        and inner.op not in ("pow", "square", "exp")
        and bool(mine & {id(n) for n in core(inner)})
    )


def _signed_at(term: Term) -> Place | None:
    """The last sum, difference or minus that a term goes through."""
    ways = [n for n in term.path if n.op in ("add", "sub", "neg") and n.place is not None]
    return ways[-1].place if ways else term.node.place
