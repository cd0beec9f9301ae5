"""What methods are called on, by the names that the library's table of methods has for it."""

from __future__ import annotations

from trainwreck.code.rehearsal.domain import (
    Bound,
    Class,
    External,
    Function,
    Items,
    Method,
    Node,
    Obj,
    Table,
    Value,
    is_module,
)  # fmt: skip
from trainwreck.code.rehearsal.holding import is_optimizer, is_scheduler


def kinds(value: Value) -> list[str]:
    """The kinds of receiver that ``METHODS`` knows ``value`` by, most special first."""
    match value:
        case Obj():
            found = [value.kind]
            if is_module(value):
                found.append("module")
            if is_optimizer(value):
                found.append("optimizer")
            if is_scheduler(value):
                found.append("scheduler")
            if value.kind.endswith("GradScaler"):
                found.append("scaler")
            if value.kind.startswith("sklearn."):
                found.append("estimator")
            return found
        case Node():
            return ["tensor"]
        case Items() | tuple():
            return ["list"] if isinstance(value, Items) else []
        case Table():
            return ["dict"]
        case str():
            return ["str"]
        case External() | Class() | Function() | Bound() | Method():
            return []
    return []
