"""Outputs of a network as they should be and as they shouldn't, to work out which way a term of an objective pulls."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from trainwreck.code.rehearsal.domain import Node
from trainwreck.code.rehearsal.trial.bench import Array, Unknown

ROWS, WIDTH, CLASSES = 12, 8, 3
MOST_ROWS, MOST_WIDTH = 300, 600
Pair = tuple[dict[int, Array], dict[int, Array]]
"""Arrays by ``id`` of outputs and labels: first as they should be, then as they shouldn't."""
Scene = Callable[[list[Node], list[Node], int], Iterator[Pair]]
"""For outputs, labels and the number of a draw."""


def leaf(node: Node) -> Array | None:
    import numpy as np

    if node.op == "param" and not node.shape.open and not node.shape.dims:
        return np.asarray(1.0)
    return np.random.default_rng(3).permutation(_rows(node)) if node.op in ("randperm",) else None


def _rows(node: Node) -> int:
    rows = node.shape.dims[0] if node.shape.dims else None
    if rows is not None and rows > MOST_ROWS:
        raise Unknown
    return ROWS if rows is None else rows


def sizes(node: Node) -> tuple[int, int]:
    """Rows and width of an output, small where they are not known. Raises ``Unknown``."""
    dims = node.shape.dims
    if node.shape.open and dims:
        return ROWS, dims[-1] if dims[-1] is not None else WIDTH
    if node.shape.open:
        return ROWS, WIDTH
    if len(dims) != 2:
        raise Unknown
    width = dims[1] if dims[1] is not None else WIDTH
    if width > MOST_WIDTH or width < 2:
        raise Unknown
    return _rows(node), width


def _label(node: Node, rows: int) -> Array:
    import numpy as np

    classes = np.arange(rows) % CLASSES
    if node.shape.open or len(node.shape.dims) == 1:
        return classes
    if len(node.shape.dims) == 2 and node.shape.dims[1] == 1:
        return classes[:, None]
    raise Unknown


def classes(outputs: list[Node], labels: list[Node], draw: int) -> Iterator[Pair]:
    """Tight classes beside loose ones, and classes that lie far apart beside near ones; all of length one."""
    import numpy as np

    random = np.random.default_rng(draw)
    found = {sizes(n) for n in outputs}
    if len(found) != 1:
        raise Unknown
    rows, width = found.pop()
    if rows < 2 * CLASSES:
        raise Unknown
    known = {id(n): _label(n, rows) for n in labels}
    classes = np.arange(rows) % CLASSES
    far = random.standard_normal((CLASSES, width))
    far -= far.mean(0)
    near = random.standard_normal(width) * 3 + 0.3 * far
    noise = {id(n): random.standard_normal((rows, width)) for n in outputs}

    def points(centres: Array, spread: float) -> dict[int, Array]:
        made = {key: centres[classes] + spread * each for key, each in noise.items()}
        return {key: one / np.linalg.norm(one, axis=-1, keepdims=True) for key, one in made.items()}

    yield {**points(far, 0.05), **known}, {**points(far, 0.6), **known}
    yield {**points(far, 0.02), **known}, {**points(near, 0.02), **known}


def views(outputs: list[Node], labels: list[Node], draw: int) -> Iterator[Pair]:
    import numpy as np

    random = np.random.default_rng(draw)
    one, other = outputs
    if sizes(one) != sizes(other):
        raise Unknown
    first = random.standard_normal(sizes(one))
    first /= np.linalg.norm(first, axis=-1, keepdims=True)
    second = first + 0.05 * random.standard_normal(first.shape)
    yield {id(one): first, id(other): second}, {id(one): first, id(other): np.roll(second, 1, axis=0)}


def agreement(outputs: list[Node], labels: list[Node], draw: int) -> Iterator[Pair]:
    import numpy as np

    random = np.random.default_rng(draw)
    one, other = outputs
    if sizes(one) != sizes(other):
        raise Unknown
    first = random.standard_normal(sizes(one))
    second = 0.7 * first + random.standard_normal(first.shape) + 0.5
    yield {id(one): first, id(other): first}, {id(one): first, id(other): second}


def sets(outputs: list[Node], labels: list[Node], draw: int) -> Iterator[Pair]:
    """Two samples of one distribution, and of two that lie apart."""
    import numpy as np

    random = np.random.default_rng(draw)
    one, other = outputs
    if sizes(one) != sizes(other):
        raise Unknown
    first, second = random.standard_normal(sizes(one)), random.standard_normal(sizes(one))
    size = np.sqrt(first.shape[1])
    yield {id(one): first / size, id(other): second / size}, {id(one): first / size, id(other): second / size + 1.5}


def choices(outputs: list[Node], labels: list[Node], draw: int) -> Iterator[Pair]:
    """Sure and different choices beside sure ones that are all the same, and beside unsure ones."""
    import numpy as np

    random = np.random.default_rng(draw)
    key = id(outputs[0])
    rows, width = sizes(outputs[0])
    sure = 6.0 * np.eye(width)[np.arange(rows) % width] - 3.0
    noise = 0.1 * random.standard_normal((rows, width))
    yield {key: sure + noise}, {key: np.broadcast_to(sure[:1], sure.shape) + noise}
    yield {key: sure + noise}, {key: noise}
