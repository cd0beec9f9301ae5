"""Reshapes that can not be meant: a dimension stands at another place, where only a permutation moves it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

LEAST = 3
"""Size of a dimension from which it is recognised at another place."""


def moves(before: Sequence[int], after: Sequence[int]) -> bool:
    """True if the reshape from ``before`` to ``after`` neither merges nor splits, but lets dimensions change places.

    ``(B, T, C)`` to ``(T, B, C)``, ``(B, C, H*W)`` to ``(B, H*W, C)``, ``(B, T, H*D)`` to ``(B, H, T, D)`` and back,
    ``(B, C, T)`` to ``(B*T, C)``.
    """
    return any(_swapped(a, b) for a, b in _groups(before, after))


def _groups(before: Sequence[int], after: Sequence[int]) -> Iterator[tuple[list[int], list[int]]]:
    """The smallest runs of dimensions of either side that hold the same number of elements."""
    if prod(before) != prod(after) or not prod(before):
        return
    one, other = [n for n in before if n != 1], [n for n in after if n != 1]
    i = j = 0
    while i < len(one) and j < len(other):
        a, b = [one[i]], [other[j]]
        while prod(a) != prod(b):
            if prod(a) < prod(b):
                i += 1
                a.append(one[i])
            else:
                j += 1
                b.append(other[j])
        i, j = i + 1, j + 1
        yield a, b


def _swapped(a: list[int], b: list[int]) -> bool:
    if a == b or max(*a, *b) < LEAST:
        return False
    if len(a) > 1 and sorted(a) == sorted(b):
        # Where one divides the other, neighbours may have been merged or split: (T, F) to (T/4, 4*F).
        return all(m % n and n % m for m, n in zip(a, b, strict=True) if m != n)
    return any(way(one, other) for way in (_heads, _channels, _map) for one, other in ((a, b), (b, a)))


def _channels(a: list[int], b: list[int]) -> bool:
    """``[B, C, T]`` or ``[B, C, H, W]`` as ``[B*T, C]``: the last dimension of a row holds neighbours, not channels."""
    if len(a) not in (3, 4) or len(b) != 2 or a[1] != b[1] or a[1] < LEAST:
        return False
    return a[-1] != a[1]


def _map(a: list[int], b: list[int]) -> bool:
    """``[C, H, W]`` as ``[H*W, C]``: a picture's points as tokens, or tokens as a picture."""
    return len(a) >= 3 and len(b) == 2 and a[0] == b[1] >= LEAST and b[0] != a[0] and b[1] not in a[1:]


def _heads(a: list[int], b: list[int]) -> bool:
    """``[N, H*D]`` as ``[H, N, D]``, or ``[B, N, H*D]`` as ``[B*H, N, D]``: positions and heads were not exchanged."""
    if len(a) == 2 and len(b) == 3:
        return a[0] == b[1] >= LEAST and b[0] * b[2] == a[1]
    if len(a) == 3 and len(b) == 3:
        return a[1] == b[1] >= LEAST and a[2] % b[2] == 0 and b[0] == a[0] * (a[2] // b[2]) and b[0] > a[0]
    return False
