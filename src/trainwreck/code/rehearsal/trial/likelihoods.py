"""The trial's operations: logarithms of densities of distributions that a program makes."""

from __future__ import annotations

import math

from trainwreck.code.rehearsal.domain import Node
from trainwreck.code.rehearsal.trial.bench import Array, Bench, Unknown, operation


@operation("lgamma")
def _lgamma(bench: Bench, node: Node) -> Array:
    return bench.np.vectorize(math.lgamma, otypes=[float])(bench.work(node.inputs[0]))


@operation("log_prob")
def _log_prob(bench: Bench, node: Node) -> Array:
    """Of a value under a distribution of one number with a place and a scale."""
    made, np = node.owner, bench.np
    if made is None or made.name not in ("Normal", "Laplace", "Cauchy", "LogNormal") or not node.inputs:
        raise Unknown
    value, loc, scale = (bench.work(v) for v in (node.inputs[0], made.attributes["loc"], made.attributes["scale"]))
    stretch = np.log(scale)
    if made.name == "LogNormal":
        value = np.log(value)
        stretch = stretch + value
    far = (value - loc) / scale
    if made.name == "Laplace":
        return -np.abs(far) - stretch - math.log(2)
    if made.name == "Cauchy":
        return -np.log1p(far**2) - stretch - math.log(math.pi)
    return -0.5 * far**2 - stretch - 0.5 * math.log(2 * math.pi)
