"""What functions of numpy, torch, math and collections give for numbers, lists and small arrays (``words``)."""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Callable

import numpy as np

from trainwreck.code.rehearsal.trial.bench import Unknown
from trainwreck.code.rehearsal.trial.things import Apply, Luck, Named, Pair, Thing, array, elements, plain


def axis_of(args: list[Thing], named: Named) -> Thing:
    found = named.get("axis", named.get("dim", args[1] if len(args) > 1 else None))
    if found is not None and not isinstance(found, int | tuple):
        raise Unknown
    return found


def _reduce(name: str) -> Callable[[list[Thing], Named], Thing]:
    def made(args: list[Thing], named: Named) -> Thing:
        found = np.asarray(args[0])
        return getattr(found, name)(
            axis=axis_of(args, named), keepdims=bool(named.get("keepdim", named.get("keepdims")))
        )

    return made


def ends(name: str, torch: bool) -> Callable[[list[Thing], Named], Thing]:
    def made(args: list[Thing], named: Named) -> Thing:
        found = np.asarray(args[0])
        if len(args) > 1 and array(args[1]):
            return (np.maximum if name == "max" else np.minimum)(found, args[1])
        axis = axis_of(args, named)
        values = getattr(found, name)(axis=axis)
        return Pair((values, getattr(found, f"arg{name}")(axis=axis))) if torch and axis is not None else values

    return made


def _order(args: list[Thing], named: Named) -> Thing:
    found = np.asarray(args[0])
    down = bool(named.get("descending", args[2] if len(args) > 2 else False))
    axis = named.get("axis", named.get("dim", args[1] if len(args) > 1 else -1))
    return np.argsort(-found if down else found, axis=axis, kind="stable")


def sort(args: list[Thing], named: Named, torch: bool) -> Thing:
    found = np.asarray(args[0])
    if not torch:
        return np.sort(found, axis=axis_of(args, named) if "axis" in named else -1)
    order = _order(args, named)
    return Pair((np.take_along_axis(found, order, axis=-1), order))


def _topk(args: list[Thing], named: Named) -> Thing:
    found, count = np.asarray(args[0]), named.get("k", args[1] if len(args) > 1 else None)
    down = named.get("largest", args[3] if len(args) > 3 else True)
    order = np.argsort(-found if down else found, axis=-1, kind="stable")[..., :count]
    return Pair((np.take_along_axis(found, order, axis=-1), order))


def _consecutive(args: list[Thing], named: Named) -> Thing:
    found = np.asarray(args[0])
    if named or found.ndim != 1:
        raise Unknown
    return found[np.concatenate([[True], found[1:] != found[:-1]])] if found.size else found


def _groupby(args: list[Thing], named: Named, apply: Apply) -> Thing:
    key = named.get("key", args[1] if len(args) > 1 else None)
    found = itertools.groupby(elements(args[0]), key=None if key is None else lambda item: apply(key, [item]))
    return [(name, list(group)) for name, group in found]


def _same(args: list[Thing], named: Named) -> Thing:
    return np.array(args[0])


def _small(sizes: Thing) -> tuple[int, ...]:
    """The sizes of an array that may be made: ours have some dozen elements."""
    found = tuple(int(n) for n in (sizes if isinstance(sizes, tuple | list) else (sizes,)))
    if math.prod(max(1, abs(n)) for n in found) > MOST:
        raise Unknown
    return found


MOST = 100_000


def _made(fill: float) -> Callable[[list[Thing], Named], Thing]:
    def made(args: list[Thing], named: Named) -> Thing:
        given: Thing = args if not isinstance(args[0], tuple | list) else args[0]
        sizes: Thing = named.get("size", named.get("shape", given))
        return np.full(_small(sizes), fill)

    return made


def by_name(name: str) -> Callable[[list[Thing], Named], Thing]:
    made = getattr(np, name)

    def call(args: list[Thing], named: Named) -> Thing:
        counts = args if name == "arange" else args[2:] if name == "linspace" else ()
        if any(isinstance(n, int | float) and abs(n) > MOST for n in counts):
            raise Unknown
        if set(named) - {"axis", "minlength", "return_counts", "return_inverse", "dim"}:
            raise Unknown
        if name == "bincount":
            _small(named.get("minlength", 1))
            _small(int(np.max(args[0], initial=0)) + 1)
        with np.errstate(all="ignore"):
            return made(*args, **{("axis" if k == "dim" else k): v for k, v in named.items()})

    return call


def _between(args: list[Thing], named: Named) -> Thing:
    low = named.get("min", named.get("a_min", args[1] if len(args) > 1 else None))
    high = named.get("max", named.get("a_max", args[2] if len(args) > 2 else None))
    return np.clip(args[0], low, high)


def _full(args: list[Thing], named: Named) -> Thing:
    return np.full(_small(args[0]), named.get("fill_value", args[1] if len(args) > 1 else None))


def _full_like(args: list[Thing], named: Named) -> Thing:
    return np.full(np.shape(args[0]), named.get("fill_value", args[1] if len(args) > 1 else None))


def _unbind(args: list[Thing], named: Named) -> Thing:
    return list(np.moveaxis(np.asarray(args[0]), axis_of(args, named) or 0, 0))


def _chunk(args: list[Thing], named: Named) -> Thing:
    axis = named.get("dim", named.get("axis", args[2] if len(args) > 2 else 0))
    if not isinstance(axis, int):
        raise Unknown
    return list(np.array_split(np.asarray(args[0]), args[1], axis=axis))


def _split(args: list[Thing], named: Named) -> Thing:
    """Of torch: pieces of one length."""
    found, length = np.asarray(args[0]), args[1]
    axis = named.get("dim", args[2] if len(args) > 2 else 0)
    if not isinstance(length, int) or not isinstance(axis, int):
        raise Unknown
    return list(np.split(found, range(length, found.shape[axis], length), axis=axis))


def _softmax(args: list[Thing], named: Named) -> Thing:
    found = np.exp(args[0] - np.max(args[0]))
    return found / found.sum(axis=axis_of(args, named), keepdims=True)


LIBRARY: dict[str, Callable[[list[Thing], Named], Thing]] = {
    **{n: _reduce(n) for n in ("sum", "mean", "prod", "any", "all", "argmax", "argmin")},
    **{n: by_name(n) for n in
       """log log2 log10 log1p exp sqrt abs sign maximum minimum where cumsum cumprod arange concatenate stack vstack
       hstack unique bincount diff flip outer dot square nonzero flatnonzero isin intersect1d union1d searchsorted
       trapezoid linspace floor ceil zeros_like ones_like isnan isfinite median logical_and logical_or logical_not
       power ravel column_stack count_nonzero""".split() if hasattr(np, n)},
    **{n: _same for n in "array asarray tensor as_tensor from_numpy copy FloatTensor LongTensor".split()},
    "cat": by_name("concatenate"), "concat": by_name("concatenate"), "argsort": _order, "topk": _topk,
    "clamp": _between, "clip": _between, "full": _full, "full_like": _full_like, "unbind": _unbind, "chunk": _chunk,
    "sigmoid": lambda args, named: 1 / (1 + np.exp(-args[0])), "relu": lambda args, named: np.maximum(args[0], 0),
    "softmax": _softmax, "matmul": lambda args, named: np.matmul(*args), "mm": lambda args, named: np.matmul(*args),
    "split": _split, "tanh": lambda args, named: np.tanh(args[0]),
    "unique_consecutive": _consecutive, "zeros": _made(0.0), "ones": _made(1.0), "empty": _made(0.0),
}  # fmt: skip
MATH = frozenset("log log2 log10 exp sqrt floor ceil isclose isnan log1p pow fabs".split())
GENERATORS = frozenset(["numpy.random.default_rng", "numpy.random.RandomState", "random.Random", "torch.Generator"])
SEEDS = frozenset(["random.seed", "numpy.random.seed", "torch.manual_seed"])
ALONE = frozenset(["numpy", "torch"])


def library(dotted: str, args: list[Thing], named: Named, apply: Apply) -> Thing:
    """What a function of a library gives."""
    package, name = dotted.partition(".")[0], dotted.rpartition(".")[2]
    if package == "math" and name in MATH and not named:
        return getattr(math, name)(*map(plain, args))
    if dotted == "itertools.groupby":
        return _groupby(args, named, apply)
    if dotted == "collections.Counter":
        return Counter(elements(args[0])) if args else Counter()
    if dotted == "collections.defaultdict":
        kinds = {id(k): k for k in (list, int, set, float, dict)}
        return defaultdict(kinds[id(args[0])])
    if dotted in GENERATORS:
        return Luck(args[0] if args else 0)
    if dotted in ("torch.randperm", "numpy.random.permutation"):
        return Luck().permutation(args[0])
    if dotted in ("random.shuffle", "numpy.random.shuffle"):
        return Luck().shuffle(args[0])
    if dotted in SEEDS:
        return None
    if package in ALONE and name in ("max", "min", "amax", "amin"):
        return ends(name[-3:], package == "torch" and not name.startswith("a"))(args, named)
    if package in ALONE and name == "sort":
        return sort(args, named, package == "torch")
    if package in ALONE and name in LIBRARY and dotted.count(".") == 1:
        named.pop("dtype", None)
        named.pop("device", None)
        return LIBRARY[name](args, named)
    raise Unknown


__all__ = ["LIBRARY", "axis_of", "by_name", "ends", "library", "sort"]
