"""How a token model uses positions, found by changing tokens and running it again (``mixing``, in a copy)."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils import _pytree

LEAST_LENGTH = 4
CLOSE = 1e-4
"""Share of the largest output up to which two are the same: other batches of numbers are summed in other orders."""
ATTENTION = ("_softmax", "_scaled_dot_product_flash_attention_for_cpu", "_scaled_dot_product_attention_math")


def look(module: Any, leaves: list[Any], spec: Any, output: Any, base: Any) -> list[dict[str, Any]]:
    """``later-tokens``: results at a position depend on later tokens, which is a fault where those are the targets.
    ``positions-exchangeable``: attention that can't tell positions apart."""
    tokens = [i for i, t in enumerate(leaves) if isinstance(t, torch.Tensor) and t.dtype == torch.long and t.dim() == 2]
    others = [t for t in leaves if isinstance(t, torch.Tensor)]
    if len(tokens) != 1 or len(others) != 1 or output is None or output.dim() != 3:
        return []
    ids = leaves[tokens[0]]
    rows, length = ids.shape
    if length < LEAST_LENGTH or rows < 2 or tuple(output.shape[:2]) != (rows, length):
        return []
    half = length // 2

    def result(changed: Any) -> Any:
        torch.manual_seed(0)
        given = [changed if i == tokens[0] else leaf for i, leaf in enumerate(leaves)]
        arguments, options = _pytree.tree_unflatten(given, spec)
        found = module(*arguments, **options)
        return next(t for t in _pytree.tree_leaves(found) if isinstance(t, torch.Tensor) and t.is_floating_point())

    if not close(output, result(ids)):
        return []  # a state that goes from one call to the next
    other = ids.clone()
    other[:, half:] = ids.roll(1, 0)[:, half:]
    found = []
    if not torch.equal(other, ids) and not close(output[:, :half], result(other)[:, :half]):
        found.append({"kind": "later-tokens", "module": id(module)})
    if any(op.name in ATTENTION for op in base.ops):
        swapped = ids.clone()
        swapped[:, [0, 1]] = ids[:, [1, 0]]
        differs = ids[:, 0] != ids[:, 1]
        if float(differs.float().mean()) > 0.5 and close(output[:, 2:], result(swapped)[:, 2:]):
            found.append({"kind": "positions-exchangeable", "module": id(module)})
    return found


def close(one: Any, other: Any) -> bool:
    """Whether two results are the same up to rounding."""
    if one.shape != other.shape:
        return False
    return bool(((one - other).abs() <= CLOSE * torch.maximum(one.abs().amax(), other.abs().amax())).all())
