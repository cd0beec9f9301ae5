"""Collect points into series while reading, in bounded memory."""

from __future__ import annotations

import math
import re
from array import array
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from trainwreck.core.run import Series, StepUnit
from trainwreck.runs.roles import role_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MAX_POINTS = 100_000
"""A longer series is thinned: of every four neighbours the smallest, the largest and the first non-finite one stay. No
spike is lost, and a metrics file of any size fits into memory."""

_NUMBER = re.compile(r"[-+]?(?:\d[\d,]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
_WORDS = {"nan": math.nan, "inf": math.inf, "infinity": math.inf, "-inf": -math.inf, "-infinity": -math.inf,
          "+inf": math.inf, "-nan": math.nan, "+nan": math.nan}  # fmt: skip
_UNITS = {"k": 1e3, "K": 1e3, "M": 1e6, "B": 1e9}
_WRAPPED = re.compile(r"(?:tensor|np\.float\d+|np\.int\d+|numpy\.float\d+|array|float)\(\s*\[?\s*([^,\])]+)")


class Column:
    """One growing series: steps, values and the line (or row) of each point. Thinned evenly once it is long."""

    __slots__ = ("_block", "_done", "lines", "steps", "values")

    def __init__(self) -> None:
        self.steps = array("d")
        self.values = array("d")
        self.lines = array("q")
        self._block = 0  # points as written that a kept pair stands for; 0 while all are kept
        self._done = 0  # length of the part that has been thinned

    @property
    def thinned(self) -> bool:
        return self._block > 0

    def append(self, step: float, value: float, line: int) -> None:
        self.steps.append(step)
        self.values.append(value)
        self.lines.append(line)
        if len(self.values) - self._done > MAX_POINTS // 2 and (self._block or len(self.values) > MAX_POINTS):
            self._bound()

    def extend(self, steps: array[float], values: array[float], lines: array[int]) -> None:
        self.steps.extend(steps)
        self.values.extend(values)
        self.lines.extend(lines)
        if len(self.values) > MAX_POINTS or self._block:
            self._bound()

    def drop(self, unwanted: set[int]) -> None:
        """Remove the points with these indices."""
        for name in ("steps", "values", "lines"):
            old = getattr(self, name)
            setattr(self, name, array(old.typecode, [x for i, x in enumerate(old) if i not in unwanted]))

    def _bound(self) -> None:
        if self._block and len(self.values) - self._done >= self._block:
            self._thin(self._done, self._block)
        while len(self.values) > MAX_POINTS:
            self._thin(0, 4)
            self._block = max(4, 2 * self._block)
        self._done = len(self.values)

    def _thin(self, start: int, block: int) -> None:
        """From index ``start`` on keep of every ``block`` points the extremes and the first non-finite one."""
        import numpy as np

        keep = np.concatenate([np.arange(start), start + _extremes(self.values[start:], block)])
        for name in ("steps", "values", "lines"):
            old = getattr(self, name)
            new = array(old.typecode)
            new.frombytes(np.frombuffer(old, dtype=np.dtype(old.typecode))[keep].tobytes())
            setattr(self, name, new)


class SeriesBuilder:
    """Grows the series of one run attempt, in the order of the file."""

    def __init__(self, path: str, unit: StepUnit = "step", numbered: bool = True) -> None:
        """``numbered``: the ``line`` of a point is a line of the file, not merely its rank."""
        self._path = path
        self._unit: StepUnit = unit
        self._numbered = numbered
        self.columns: dict[str, Column] = {}

    def add(self, name: str, step: float, value: float, line: int = 0) -> None:
        """One point. ``line`` is its line in the file, 0 if unknown."""
        column = self.columns.get(name)
        if column is None:
            column = self.columns[name] = Column()
        column.append(step, value, line)

    def extend(self, name: str, steps: array[float], values: array[float], lines: array[int]) -> None:
        """Many points of one name."""
        self.columns.setdefault(name, Column()).extend(steps, values, lines)

    def __bool__(self) -> bool:
        return bool(self.columns)

    @property
    def thinned(self) -> bool:
        return any(column.thinned for column in self.columns.values())

    def series(self, roles: Mapping[str, str | None] | None = None) -> dict[str, Series]:
        """The series by name. ``roles`` overrides the common table where a format knows better."""
        given = roles or {}
        return {
            name: Series(
                name=name,
                role=given[name] if name in given else role_of(name),
                unit=self._unit,
                steps=column.steps,
                values=column.values,
                path=self._path,
                lines=column.lines if self._numbered and any(column.lines) else None,
            )
            for name, column in self.columns.items()
            if len(column.values)
        }


def number(value: Any) -> float | None:
    """``value`` as a float if it stands for one, None otherwise.

    Read are ``1,234``, ``'2.1e-05'``, ``nan``, ``-inf``, ``Infinity``, ``12.3%`` (as 0.123), ``1.2k``,
    ``tensor(2.3, device='cuda:0')``, ``np.float64(2.0)`` and one-element lists.
    """
    if value is None or isinstance(value, bool):
        return None
    if isinstance(value, (int, float)):
        try:
            return float(value)
        except OverflowError:
            return math.inf if value > 0 else -math.inf
    if isinstance(value, list) and len(value) == 1:
        return number(value[0])
    if not isinstance(value, str) or len(value) > 80:
        return None
    text = value.strip()
    if "(" in text:
        wrapped = _WRAPPED.match(text)
        text = wrapped.group(1).strip() if wrapped else text
    word = _WORDS.get(text.lower())
    if word is not None:
        return word
    factor = 1.0
    if text.endswith("%"):
        text, factor = text[:-1].rstrip(), 0.01
    elif text[-1:] in _UNITS:
        text, factor = text[:-1], _UNITS[text[-1]]
    if _NUMBER.fullmatch(text):
        return float(text.replace(",", "")) * factor
    return None


def _extremes(values: array[float], block: int) -> NDArray[np.int64]:
    """Indices of the smallest, the largest and the first non-finite value of every ``block`` neighbours, in order."""
    import numpy as np

    data = np.frombuffer(values, dtype=np.float64)
    whole = len(data) // block * block
    blocks = data[:whole].reshape(-1, block)
    keep = np.zeros(len(data), dtype=bool)
    keep[whole:] = True
    base = np.arange(0, whole, block)
    finite = np.isfinite(blocks)
    if finite.all():
        keep[base + blocks.argmin(axis=1)] = True
        keep[base + blocks.argmax(axis=1)] = True
    else:
        keep[base + np.where(finite, blocks, np.inf).argmin(axis=1)] = True
        keep[base + np.where(finite, blocks, -np.inf).argmax(axis=1)] = True
        broken = (~finite).argmax(axis=1)
        keep[(base + broken)[~finite.all(axis=1)]] = True
    return np.flatnonzero(keep)
