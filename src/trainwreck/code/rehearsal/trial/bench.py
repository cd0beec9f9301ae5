"""Works out a value of the graph with numpy: the caller puts small arrays in the place of what isn't known.

Nothing of the program runs: each node stands for an operation of the table, applied to arrays of ours. Random draws
are the same for the same bench. What the table does not know raises ``Unknown``, and a question says nothing then.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from trainwreck.code.rehearsal.domain import External, Items, Node, Obj, Value, candidates

Array = Any
"""A numpy array (numpy is loaded only where something is worked out)."""
MOST_STEPS = 4000
MOST_ELEMENTS = 400_000
"""Larger arrays are not made: a question needs a handful of rows."""
SAME = frozenset(
    """contiguous clone to float double half bfloat16 cuda cpu type type_as detach detach_ data requires_grad_
    retain_grad pin_memory as_tensor from_numpy numpy identity dropout numpy_T buffer alias copy astype long int
    set_default_dtype ascontiguousarray nan_to_num coalesce to_dense to_sparse to_sparse_coo to_sparse_csr""".split()
)
"""What leaves each number as it is (as far as a sign or an order is asked)."""
NUMBERS = frozenset("float double half bfloat16 long int type_as astype".split())
"""Those among them after which truths are numbers."""
KEPT_OPTIONS = frozenset(["inplace", "?", "out"])
"""Options of a node that are not among its inputs."""


Operation = Callable[["Bench", Node], Array]
TABLE: dict[str, Operation] = {}
"""What makes the array of a node, by the node's ``op``."""


def operation(*names: str) -> Callable[[Operation], Operation]:
    """Notes a function in the table."""

    def note(function: Operation) -> Operation:
        for name in names:
            TABLE[name] = function
        return function

    return note


class Unknown(Exception):
    """A value that can't be worked out."""


class Bench:
    """Arrays by node. ``leaf(node)`` gives the array of a node that nothing is known of, or None."""

    def __init__(
        self,
        known: Mapping[int, Array] | None = None,
        leaf: Callable[[Node], Array | None] | None = None,
        seed: int = 0,
    ) -> None:
        import numpy as np

        for name in ("operations", "arrangements", "draws", "likelihoods"):
            import_module(f"trainwreck.code.rehearsal.trial.{name}")
        self.np: Any = np
        self.known: dict[int, Array] = dict(known or {})
        self.kept: list[Node] = []
        """Nodes whose ids are keys: they must live as long as the bench."""
        self.leaf = leaf
        self.random = np.random.default_rng(seed)
        self.turned: Mapping[int, bool] = {}
        """Operations (by ``id``) that are turned round: a difference, a sign, a comparison."""
        self.steps = 0
        self.depth = 0

    def set(self, node: Node, array: Array) -> None:
        self.known[id(node)] = self.np.asarray(array)
        self.kept.append(node)

    # ------------------------------------------------------------------ values
    def work(self, value: Value) -> Array:
        """The array (or number) that ``value`` is. Raises ``Unknown``."""
        if value is None or isinstance(value, str):
            raise Unknown
        if isinstance(value, bool | int | float):
            return self.np.asarray(value)
        if isinstance(value, tuple | Items):
            if isinstance(value, Items) and value.more:
                raise Unknown
            parts = list(value) if isinstance(value, tuple) else value.items
            try:
                return self.np.asarray([self.work(p) for p in parts])
            except ValueError:
                raise Unknown from None
        if not isinstance(value, Node):
            raise Unknown
        if id(value) in self.known:
            return self.known[id(value)]
        self.steps += 1
        if self.steps > MOST_STEPS or self.depth > 200:
            raise Unknown
        self.depth += 1
        try:
            with self.np.errstate(all="ignore"):
                found = self._worked(value)
        except (ValueError, IndexError, TypeError, ArithmeticError, KeyError, MemoryError):
            raise Unknown from None
        finally:
            self.depth -= 1
        if getattr(found, "size", 0) > MOST_ELEMENTS:
            raise Unknown
        self.known[id(value)] = found
        self.kept.append(value)
        return found

    def _worked(self, node: Node) -> Array:
        if node.op == "either":
            return self._same([c for c in candidates(node) if c is not None])
        if node.op in SAME and node.inputs and isinstance(node.inputs[0], Node):
            found = self.work(node.inputs[0])
            if any(is_bool(v) for v in (*node.inputs[1:], *node.options.values())):
                return found.astype(bool)
            counted = node.op in NUMBERS or any(_is_number_type(v) for v in (*node.inputs[1:], *node.options.values()))
            return found.astype(float) if counted and found.dtype == bool else found
        made = TABLE.get(node.op)
        if made is not None and not (node.owner is not None and node.op in ("step", "sample")):
            try:
                return self._turn(node, made(self, node)) if id(node) in self.turned else made(self, node)
            except (Unknown, ValueError, IndexError, TypeError, KeyError):
                found = self.leaf(node) if self.leaf is not None else None
                if found is None:
                    raise Unknown from None
                return self.np.asarray(found)
        found = self.leaf(node) if self.leaf is not None else None
        if found is None:
            raise Unknown
        return self.np.asarray(found)

    def _turn(self, node: Node, found: Array) -> Array:
        if node.op == "add":
            return self.work(node.inputs[0]) - self.work(node.inputs[1])
        return ~found if found.dtype == bool else -found

    def _same(self, found: list[Value]) -> Array:
        """The array of several branches, where they agree."""
        arrays = [self.work(v) for v in found]
        if not arrays or any(
            a.shape != arrays[0].shape or not self.np.allclose(a, arrays[0], equal_nan=True) for a in arrays
        ):
            raise Unknown
        return arrays[0]

    # ------------------------------------------------------------------ arguments
    def number(self, value: Value) -> float:
        found = self.work(value)
        if found.size != 1:
            raise Unknown
        return float(found.reshape(-1)[0])

    def whole(self, value: Value) -> int:
        found = self.number(value)
        if found != int(found):
            raise Unknown
        return int(found)

    def axis(self, value: Value) -> int | tuple[int, ...] | None:
        if value is None:
            return None
        if isinstance(value, tuple | Items):
            return tuple(self.whole(v) for v in (value if isinstance(value, tuple) else value.items))
        return self.whole(value)

    def sizes(self, values: tuple[Value, ...]) -> tuple[int, ...]:
        """Numbers of a size, given one by one or as one tuple."""
        if len(values) == 1 and not isinstance(values[0], int):
            one = values[0]
            if isinstance(one, tuple | Items):
                return tuple(self.whole(v) for v in (one if isinstance(one, tuple) else one.items))
            found = self.work(one)
            return tuple(int(n) for n in found.reshape(-1))
        return tuple(self.whole(v) for v in values)

    def index(self, value: Value) -> Any:
        """An index as numpy takes it."""
        if value is None or value is Ellipsis or isinstance(value, int):
            return value
        if isinstance(value, Obj) and value.kind == "builtins.slice":
            return slice(*(None if v is None else self.whole(v) for v in value.args))
        if isinstance(value, tuple):
            return tuple(self.index(v) for v in value)
        found = self.work(value)
        return found.astype(bool) if found.dtype == bool else found.astype(int)


def positional(node: Node) -> tuple[Value, ...]:
    """The inputs that have a place: options stand behind them."""
    if node.owner is not None and node.owner.cls is None and node.full:
        return node.inputs
    named = sum(name not in KEPT_OPTIONS for name in node.options)
    return node.inputs[: max(0, len(node.inputs) - named)]


def argument(node: Node, name: str, position: int, default: Value = None) -> Value:
    """An argument by its name or its place (0 is the tensor itself)."""
    if name in node.options:
        return node.options[name]
    given = positional(node)
    return given[position] if position < len(given) else default


def is_bool(value: Value) -> bool:
    """True for ``torch.bool`` and the like."""
    return (isinstance(value, External) and value.name.startswith("bool")) or value is bool


def _is_number_type(value: Value) -> bool:
    """True for ``torch.float32`` and the like, and for the dtype of another tensor."""
    if isinstance(value, Node):
        return value.op == "attribute" and value.name == "dtype"
    return isinstance(value, External) and value.name.startswith(("float", "bfloat", "half", "double", "int", "long"))
