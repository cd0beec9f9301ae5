"""Dataclasses that do not change, defined without generating code.

``dataclass(frozen=True)`` compiles half a dozen functions for each class, 0.5 to 1 ms of every start. A look at one
script loads some 70 such classes, a tenth of its time; on ``Frozen`` they share the functions of this one. Where
instances are made by the hundred thousand (nodes, places), slots or a named tuple are still the better choice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, ClassVar, NoReturn, dataclass_transform


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
class Frozen:
    """Base of frozen dataclasses; ``fields``, ``replace`` and ``field`` of ``dataclasses`` work as on any other.

    Equal where the class and all compared fields are equal, hashable where they are, never changed after it was made.
    """

    _names: ClassVar[tuple[str, ...]] = ()
    _compared: ClassVar[tuple[str, ...]] = ()
    _defaults: ClassVar[Mapping[str, Any]] = {}
    _factories: ClassVar[Mapping[str, Callable[[], Any]]] = {}

    def __init_subclass__(cls) -> None:
        dataclass(init=False, repr=False, eq=False)(cls)
        known = fields(cls)  # type: ignore[arg-type]  # it has become a dataclass
        cls._names = tuple(f.name for f in known)
        cls._compared = tuple(f.name for f in known if f.compare)
        cls._defaults = {f.name: f.default for f in known if f.default is not MISSING}
        cls._factories = {f.name: f.default_factory for f in known if f.default_factory is not MISSING}

    def __init__(self, *values: Any, **named: Any) -> None:
        own, names = self.__dict__, self._names
        own.update(self._defaults)
        own.update(zip(names, values, strict=False))
        own.update(named)
        for name in self._factories:
            if name not in own:
                own[name] = self._factories[name]()
        if len(own) != len(names) or len(values) > len(names) or any(name in named for name in names[: len(values)]):
            raise TypeError(
                f"{type(self).__name__} takes {', '.join(names)}; given were {len(values)} values without a name and"
                f" {', '.join(sorted(named)) or 'none'} by name"
            )

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise AttributeError(f"{type(self).__name__} can't be changed: {name!r}")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"{type(self).__name__} can't be changed: {name!r}")

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(self.__dict__[name] == other.__dict__[name] for name in self._compared)

    def __hash__(self) -> int:
        return hash(tuple(self.__dict__[name] for name in self._compared))

    def __repr__(self) -> str:
        shown = (f.name for f in fields(self) if f.repr)  # type: ignore[arg-type]
        return f"{type(self).__name__}({', '.join(f'{name}={self.__dict__[name]!r}' for name in shown)})"
