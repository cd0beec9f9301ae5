"""Named tuples, defined without generating code.

``typing.NamedTuple`` compiles a function for each class, some 0.2 ms of every start, and a look at one script loads
more than a hundred of them. The classes of ``Row`` share the functions of this one.
"""

from __future__ import annotations

from collections.abc import Mapping
from operator import itemgetter
from typing import Any, ClassVar, Self, dataclass_transform


@dataclass_transform(frozen_default=True)
class Row(tuple[Any, ...]):
    """A tuple whose places have names: ``class Pair(Row): left: int; right: int = 0``. It unpacks, compares and hashes
    as a tuple does."""

    __slots__ = ()
    _names: ClassVar[tuple[str, ...]] = ()
    _defaults: ClassVar[Mapping[str, Any]] = {}

    def __init_subclass__(cls) -> None:
        cls._names = tuple(cls.__annotations__)
        cls._defaults = {name: cls.__dict__[name] for name in cls._names if name in cls.__dict__}
        for place, name in enumerate(cls._names):
            setattr(cls, name, property(itemgetter(place)))

    def __new__(cls, *values: Any, **named: Any) -> Self:
        names = cls._names
        if len(values) != len(names) or named:
            rest = names[len(values) :]
            given = {**cls._defaults, **named}
            if len(values) > len(names) or not set(named) <= set(rest) or any(name not in given for name in rest):
                raise TypeError(f"{cls.__name__} takes {', '.join(names)}")
            values = (*values, *(given[name] for name in rest))
        return tuple.__new__(cls, values)

    def _replace(self, **named: Any) -> Self:
        """The same with other values at some places."""
        return type(self)(**{**dict(zip(self._names, self, strict=True)), **named})

    def __getnewargs__(self) -> tuple[Any, ...]:
        return tuple(self)

    def __repr__(self) -> str:
        shown = (f"{name}={value!r}" for name, value in zip(self._names, self, strict=True))
        return f"{type(self).__name__}({', '.join(shown)})"
