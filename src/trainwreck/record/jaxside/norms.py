"""Norms of a pytree by path, as one array that nobody has read yet."""

from __future__ import annotations

import importlib
from typing import Any

MAX_GROUPS = 24
"""Parts of a pytree whose norms are kept apart; deeper ones are summed into these."""


class Groups:
    """The floating leaves of one pytree structure by path: ``names``, and norms in the same order."""

    def __init__(self, tree: Any) -> None:
        self._jax: Any = importlib.import_module("jax")
        util = self._jax.tree_util
        pairs, self.structure = util.tree_flatten_with_path(tree)
        floating = self._jax.numpy.floating
        issub = self._jax.numpy.issubdtype
        kept = [
            (i, [_key(k) for k in path])
            for i, (path, leaf) in enumerate(pairs)
            if hasattr(leaf, "dtype") and issub(leaf.dtype, floating)
        ]
        self.members = _grouped(kept)
        self.names = list(self.members)
        self._norms = self._jax.jit(self._compute)
        self._differences = self._jax.jit(lambda a, b: self._compute([x - y for x, y in zip(a, b, strict=True)]))

    def fits(self, tree: Any) -> bool:
        """True if ``tree`` has the structure that these groups were made for."""
        return bool(self._jax.tree_util.tree_structure(tree) == self.structure)

    def norms(self, tree: Any) -> Any:
        """Norm of each group: a vector on the device. The computation is dispatched, not waited for."""
        return self._norms(self._jax.tree_util.tree_leaves(tree))

    def differences(self, new: Any, old: Any) -> Any:
        """Norm of ``new - old`` for each group."""
        leaves = self._jax.tree_util.tree_leaves
        return self._differences(leaves(new), leaves(old))

    def _compute(self, leaves: list[Any]) -> Any:
        jnp = self._jax.numpy
        sums = [
            sum(jnp.sum(jnp.square(leaves[i].astype(jnp.float32))) for i in members)
            for members in self.members.values()
        ]
        return jnp.sqrt(jnp.stack(sums)) if sums else jnp.zeros((0,), jnp.float32)


def _key(entry: Any) -> str:
    """One step of a pytree path as plain text: the key, the attribute or the index."""
    for name in ("key", "name", "idx"):
        if hasattr(entry, name):
            return str(getattr(entry, name))
    return str(entry)


def _grouped(kept: list[tuple[int, list[str]]]) -> dict[str, list[int]]:
    """Leaf numbers by path, at the greatest depth that gives at most ``MAX_GROUPS`` groups."""
    for depth in range(8, 0, -1):
        groups: dict[str, list[int]] = {}
        for index, path in kept:
            groups.setdefault(".".join(path[: max(1, min(depth, len(path) - 1))]) or "all", []).append(index)
        if len(groups) <= MAX_GROUPS:
            return groups
    return {"all": [index for index, _ in kept]}
