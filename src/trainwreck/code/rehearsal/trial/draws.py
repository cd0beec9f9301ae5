"""Random draws of the bench: the same numbers for the same seed and order."""

from __future__ import annotations

from trainwreck.code.rehearsal.domain import Node
from trainwreck.code.rehearsal.trial.bench import Array, Bench, Unknown, argument, operation, positional


@operation("bernoulli")
def _bernoulli(bench: Bench, node: Node) -> Array:
    chances = bench.work(node.inputs[0])
    return (bench.random.random(chances.shape) < chances).astype(float)


@operation("random")
def _random(bench: Bench, node: Node) -> Array:
    """``rng.random(size)`` of numpy: the generator itself is the first input of a method."""
    given = positional(node)
    sizes = node.options.get("size", given[-1] if given else None)
    if sizes is None or (isinstance(sizes, Node) and not sizes.shape.dims and sizes.op not in ("attribute", "size")):
        raise Unknown
    return bench.random.random(bench.sizes((sizes,)))


@operation("randn", "randn_like", "rand", "rand_like", "normal", "standard_normal")
def _drawn(bench: Bench, node: Node) -> Array:
    np = bench.np
    given = positional(node)
    if node.op.endswith("_like"):
        shape = bench.work(given[0]).shape
    elif node.op in ("randn", "rand"):
        shape = bench.sizes(given if "size" not in node.options else (node.options["size"],))
    else:
        raise Unknown
    if np.prod(shape) > 100_000:
        raise Unknown
    return bench.random.standard_normal(shape) if "randn" in node.op else bench.random.random(shape)


@operation("multinomial")
def _multinomial(bench: Bench, node: Node) -> Array:
    """For each row one of the places with a weight."""
    weights = bench.work(node.inputs[0])
    if bench.whole(argument(node, "num_samples", 1, 1)) != 1 or weights.ndim != 2:
        raise Unknown
    return (weights * (0.5 + bench.random.random(weights.shape))).argmax(-1)[:, None]
