"""More of the bench's table: shapes, selections, distances and losses."""

from __future__ import annotations

from typing import Any

from trainwreck.code.rehearsal.domain import Items, Node
from trainwreck.code.rehearsal.trial.bench import Array, Bench, Unknown, argument, operation, positional


@operation("unsqueeze", "expand_dims")
def _unsqueeze(bench: Bench, node: Node) -> Array:
    return bench.np.expand_dims(bench.work(node.inputs[0]), bench.axis(node.options.get("dim", node.inputs[1])))


@operation("squeeze")
def _squeeze(bench: Bench, node: Node) -> Array:
    a = bench.work(node.inputs[0])
    axis = bench.axis(argument(node, "dim", 1))
    if isinstance(axis, int) and a.shape[axis] != 1:
        return a
    return a.squeeze(axis)


@operation("view", "reshape")
def _view(bench: Bench, node: Node) -> Array:
    given = positional(node)
    return bench.work(given[0]).reshape(bench.sizes(given[1:]))


@operation("flatten", "ravel")
def _flatten(bench: Bench, node: Node) -> Array:
    a = bench.work(node.inputs[0])
    start = bench.whole(argument(node, "start_dim", 1, 0)) % max(a.ndim, 1)
    end = bench.whole(argument(node, "end_dim", 2, -1)) % max(a.ndim, 1)
    return a.reshape(*a.shape[:start], -1, *a.shape[end + 1 :])


@operation("view_as", "reshape_as", "expand_as", "broadcast_to")
def _as_other(bench: Bench, node: Node) -> Array:
    a, other = bench.work(node.inputs[0]), node.inputs[1]
    if node.op in ("view_as", "reshape_as"):
        return a.reshape(bench.work(other).shape)
    shape = bench.work(other).shape if node.op == "expand_as" else bench.sizes((other,))
    return bench.np.broadcast_to(a, shape)


@operation("t", "T", "mT", "numpy_transpose", "adjoint")
def _turned(bench: Bench, node: Node) -> Array:
    a = bench.work(node.inputs[0])
    return bench.np.swapaxes(a, -1, -2) if a.ndim > 1 else a


@operation("transpose", "swapaxes", "swapdims")
def _swapped(bench: Bench, node: Node) -> Array:
    a = bench.work(node.inputs[0])
    if len(node.inputs) < 3:
        return a.transpose()
    return bench.np.swapaxes(a, bench.axis(node.inputs[1]), bench.axis(node.inputs[2]))


@operation("permute", "movedim")
def _permuted(bench: Bench, node: Node) -> Array:
    a = bench.work(node.inputs[0])
    if node.op == "movedim":
        return bench.np.moveaxis(a, bench.axis(node.inputs[1]), bench.axis(node.inputs[2]))
    return a.transpose(bench.sizes(positional(node)[1:]))


@operation("expand")
def _expand(bench: Bench, node: Node) -> Array:
    a = bench.work(node.inputs[0])
    wanted = bench.sizes(positional(node)[1:])
    rest = (1,) * (len(wanted) - a.ndim) + a.shape
    return bench.np.broadcast_to(a, tuple(r if w == -1 else w for w, r in zip(wanted, rest, strict=True)))


@operation("repeat", "tile")
def _repeat(bench: Bench, node: Node) -> Array:
    return bench.np.tile(bench.work(node.inputs[0]), bench.sizes(positional(node)[1:]))


@operation("repeat_interleave")
def _interleave(bench: Bench, node: Node) -> Array:
    axis = bench.axis(argument(node, "dim", 2))
    return bench.np.repeat(bench.work(node.inputs[0]), bench.whole(argument(node, "repeats", 1)), axis=axis)


@operation("flip", "fliplr", "flipud")
def _flip(bench: Bench, node: Node) -> Array:
    a = bench.work(node.inputs[0])
    axes = {"fliplr": (1,), "flipud": (0,)}.get(node.op) or bench.sizes(
        (node.options["dims"],) if "dims" in node.options else positional(node)[1:]
    )
    return bench.np.flip(a, axes)


@operation("cat", "concat", "concatenate", "stack", "hstack", "vstack")
def _joined(bench: Bench, node: Node) -> Array:
    given = positional(node)
    parts: Any = given[0]
    if isinstance(parts, Items):
        if parts.more:
            raise Unknown
        parts = parts.items
    if not isinstance(parts, list | tuple):
        raise Unknown
    arrays = [bench.work(p) for p in parts]
    np = bench.np
    if node.op in ("hstack", "vstack"):
        return np.hstack(arrays) if node.op == "hstack" else np.vstack(arrays)
    axis = bench.axis(node.options.get("axis", argument(node, "dim", 1, 0)))
    return np.stack(arrays, axis) if node.op == "stack" else np.concatenate(arrays, axis)


@operation("where")
def _where(bench: Bench, node: Node) -> Array:
    given = [bench.work(v) for v in node.inputs[:3]]
    if len(given) != 3:
        raise Unknown
    return bench.np.where(given[0].astype(bool), given[1], given[2])


@operation("masked_fill")
def _masked_fill(bench: Bench, node: Node) -> Array:
    a, mask, fill = (bench.work(v) for v in node.inputs[:3])
    return bench.np.where(mask.astype(bool), fill, a)


@operation("tril", "triu")
def _triangle(bench: Bench, node: Node) -> Array:
    a = bench.work(node.inputs[0])
    return getattr(bench.np, node.op)(a, bench.whole(argument(node, "diagonal", 1, node.options.get("k", 0))))


@operation("generate_square_subsequent_mask")
def _subsequent(bench: Bench, node: Node) -> Array:
    sizes = [v for v in positional(node) if isinstance(v, int | Node)]
    n = bench.whole(node.options.get("sz", sizes[-1] if sizes else None))
    return bench.np.triu(bench.np.full((n, n), -bench.np.inf), 1)


@operation("one_hot")
def _one_hot(bench: Bench, node: Node) -> Array:
    a = bench.work(node.inputs[0]).astype(int)
    count = bench.whole(argument(node, "num_classes", 1, int(a.max()) + 1))
    return bench.np.eye(count)[a]


@operation("embedding")
def _embedding(bench: Bench, node: Node) -> Array:
    rows, table = (node.inputs[0], node.inputs[1]) if len(node.inputs) > 1 else (None, None)
    return bench.work(table)[bench.work(rows).astype(int)]


@operation("gather", "take_along_dim", "take_along_axis")
def _gather(bench: Bench, node: Node) -> Array:
    a = bench.work(node.inputs[0])
    first, second = (1, 2) if node.op == "gather" else (2, 1)
    axis, index = argument(node, "dim", first), argument(node, "index", second)
    return bench.np.take_along_axis(a, bench.work(index).astype(int), bench.axis(axis))


@operation("index_select")
def _index_select(bench: Bench, node: Node) -> Array:
    a, index = bench.work(node.inputs[0]), bench.work(argument(node, "index", 2)).astype(int)
    return bench.np.take(a, index, axis=bench.axis(argument(node, "dim", 1)))


@operation("index_add", "scatter_add")
def _added_up(bench: Bench, node: Node) -> Array:
    """Values that are added up in the rows that their numbers say."""
    np = bench.np
    made = np.array(bench.work(node.inputs[0]), dtype=float)
    axis = bench.axis(argument(node, "dim", 1)) % made.ndim
    index = bench.work(argument(node, "index", 2)).astype(int)
    source = bench.work(argument(node, "source" if node.op == "index_add" else "src", 3))
    if node.op == "index_add":
        np.add.at(np.moveaxis(made, axis, 0), index, np.moveaxis(source, axis, 0) if source.ndim else source)
        return made
    places = np.indices(index.shape)
    places[axis] = index
    part = source[tuple(slice(0, n) for n in index.shape)] if source.ndim else source
    np.add.at(made, tuple(places), part)
    return made


@operation("add_at")
def _added_at(bench: Bench, node: Node) -> Array:
    """``numpy.add.at(x, index, values)``."""
    made = bench.np.array(bench.work(node.inputs[0]), dtype=float)
    bench.np.add.at(made, bench.index(node.inputs[1]), bench.work(node.inputs[2]))
    return made


@operation("diagonal", "diag")
def _diagonal(bench: Bench, node: Node) -> Array:
    a = bench.work(node.inputs[0])
    return bench.np.diag(a) if node.op == "diag" else bench.np.diagonal(a)


@operation("cdist", "pairwise_distance", "dist")
def _distances(bench: Bench, node: Node) -> Array:
    a, b = bench.work(node.inputs[0]), bench.work(node.inputs[1])
    np = bench.np
    if node.op == "cdist":
        return np.sqrt(((a[..., :, None, :] - b[..., None, :, :]) ** 2).sum(-1))
    return np.sqrt(((a - b) ** 2).sum(-1)) if node.op == "pairwise_distance" else np.sqrt(((a - b) ** 2).sum())


@operation("pdist")
def _all_pairs(bench: Bench, node: Node) -> Array:
    a = bench.work(node.inputs[0])
    one, other = bench.np.triu_indices(len(a), 1)
    return bench.np.sqrt(((a[one] - a[other]) ** 2).sum(-1))


@operation("cosine_similarity")
def _cosine(bench: Bench, node: Node) -> Array:
    a, b = bench.work(node.inputs[0]), bench.work(node.inputs[1])
    np = bench.np
    axis = bench.axis(argument(node, "dim", 2, 1))
    size = np.sqrt((a * a).sum(axis)) * np.sqrt((b * b).sum(axis))
    return (a * b).sum(axis) / np.maximum(size, 1e-8)


@operation("outer")
def _outer(bench: Bench, node: Node) -> Array:
    return bench.np.outer(bench.work(node.inputs[0]), bench.work(node.inputs[1]))


@operation("einsum")
def _einsum(bench: Bench, node: Node) -> Array:
    given = positional(node)
    if not isinstance(given[0], str):
        raise Unknown
    return bench.np.einsum(given[0].replace(" ", ""), *(bench.work(v) for v in given[1:]))


@operation("linear")
def _linear(bench: Bench, node: Node) -> Array:
    found = bench.work(node.inputs[0]) @ bench.work(node.inputs[1]).T
    return found + bench.work(node.inputs[2]) if len(node.inputs) > 2 and node.inputs[2] is not None else found


@operation("lerp")
def _lerp(bench: Bench, node: Node) -> Array:
    a, b, weight = (bench.work(v) for v in node.inputs[:3])
    return a + (b - a) * weight


def _reduction(bench: Bench, node: Node, each: Array) -> Array:
    way = node.options.get("reduction", "mean")
    if way == "none":
        return each
    return each.sum() if way == "sum" else each.mean()


@operation("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss")
def _errors(bench: Bench, node: Node) -> Array:
    np = bench.np
    gap = np.abs(bench.work(node.inputs[0]) - bench.work(node.inputs[1]))
    if node.op == "mse_loss":
        gap = gap**2
    elif node.op != "l1_loss":
        gap = np.where(gap < 1, 0.5 * gap**2, gap - 0.5)
    return _reduction(bench, node, gap)


@operation("kl_div")
def _kl_div(bench: Bench, node: Node) -> Array:
    np = bench.np
    log_q, p = bench.work(node.inputs[0]), bench.work(node.inputs[1])
    log_p = p if node.options.get("log_target") is True else np.log(np.maximum(p, 1e-30))
    each = np.exp(log_p) * (log_p - log_q)
    if node.options.get("reduction") == "batchmean":
        return each.sum() / each.shape[0]
    return _reduction(bench, node, each)


@operation("cross_entropy", "nll_loss")
def _cross_entropy(bench: Bench, node: Node) -> Array:
    np = bench.np
    a, target = bench.work(node.inputs[0]), bench.work(node.inputs[1])
    if node.op == "cross_entropy":
        a = a - a.max(axis=1 if a.ndim > 1 else 0, keepdims=True)
        a = a - np.log(np.exp(a).sum(axis=1 if a.ndim > 1 else 0, keepdims=True))
    if target.ndim == a.ndim:
        return _reduction(bench, node, -(a * target).sum(1))
    if a.ndim != 2:
        raise Unknown
    counted = target != node.options.get("ignore_index", -100)
    each = -np.take_along_axis(a, np.where(counted, target, 0).astype(int)[:, None], 1)[:, 0] * counted
    way = node.options.get("reduction", "mean")
    return each if way == "none" else each.sum() / (max(counted.sum(), 1) if way == "mean" else 1)


@operation("binary_cross_entropy", "binary_cross_entropy_with_logits")
def _binary(bench: Bench, node: Node) -> Array:
    np = bench.np
    a, target = bench.work(node.inputs[0]), bench.work(node.inputs[1])
    if node.op.endswith("logits"):
        each = np.logaddexp(0, a) - target * a
    else:
        each = -(target * np.log(np.maximum(a, 1e-30)) + (1 - target) * np.log(np.maximum(1 - a, 1e-30)))
    return _reduction(bench, node, each)


@operation("cov")
def _cov(bench: Bench, node: Node) -> Array:
    return bench.np.cov(bench.work(node.inputs[0]))


@operation("fill_diagonal")
def _fill_diagonal(bench: Bench, node: Node) -> Array:
    made = bench.np.array(bench.work(node.inputs[0]))
    bench.np.fill_diagonal(made, bench.work(node.inputs[1]))
    return made
