"""Signs, evidence and places: what a witness saw, where, and how directly."""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import field, fields
from typing import Any, Literal

from trainwreck.core.fix import Fix
from trainwreck.core.frozen import Frozen

Severity = Literal["critical", "warning", "suggestion"]
SEVERITIES: tuple[Severity, ...] = ("suggestion", "warning", "critical")

EvidenceClass = Literal["direct", "circumstantial", "inferred"]
"""direct: the value or message itself, with its place. circumstantial: a pattern known to go with the cause.
inferred: a conclusion from something else (a resemblance, an absence)."""

WhereKind = Literal["code", "config", "log", "metric", "tensor", "environment", "instruction"]


class Where(Frozen):
    """A place. Lines and columns count from 1; steps keep the unit of their series; paths are relative and posix."""

    kind: WhereKind
    path: str | None = None
    line: int | None = None
    column: int | None = None
    step: float | None = None
    metric: str | None = None
    module: str | None = None
    rank: int | None = None
    key: str | None = None
    cell: int | None = None

    def to_json(self) -> dict[str, Any]:
        """All ten keys of the contract, absent ones as null."""
        return {f.name: jsonable(getattr(self, f.name)) for f in fields(self)}


class Evidence(Frozen):
    """One sighting of a sign. Says what is there, never why.

    ``value`` is the observed value: a number, a short text, or the named parts of a message as an object.
    ``end`` marks the last step or line of a sighting that stretches over a range. ``attempt`` is the run attempt
    (1-based) that it belongs to, None where that has no meaning. Of code: ``until`` is the line and the column where
    the text that is meant ends (the first column after it), ``fix`` how it can be corrected, ``severity`` how bad it
    is here where that is not what its id says (a removed argument crashes only with the releases that lack it).
    """

    sign: str
    cls: EvidenceClass
    text: str
    where: Where
    value: Any = None
    end: float | None = None
    attempt: int | None = None
    until: tuple[int, int] | None = None
    fix: Fix | None = None
    severity: Severity | None = None

    @property
    def id(self) -> str:
        """Stable hash of (sign, where, value), 12 hexadecimal digits."""
        payload = json.dumps([self.sign, self.where.to_json(), jsonable(self.value)], sort_keys=True, default=str)
        return hashlib.sha256(payload.encode("utf-8", "replace")).hexdigest()[:12]

    def to_json(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "sign": self.sign,
            "class": self.cls,
            "text": self.text,
            "value": jsonable(self.value),
            "where": self.where.to_json(),
        }


class Unreadable(Frozen):
    """Something that was asked for and could not be read: one sentence saying what, where and what to do."""

    path: str
    reason: str
    where: Where | None = field(default=None)


def jsonable(value: Any) -> Any:
    """``value`` as plain JSON; non-finite numbers become the strings "nan", "inf" and "-inf"."""
    if isinstance(value, float):
        if math.isnan(value):
            return "nan"
        if math.isinf(value):
            return "inf" if value > 0 else "-inf"
        return int(value) if value.is_integer() and abs(value) < 2**53 else value
    if isinstance(value, dict):
        return {str(key): jsonable(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [jsonable(item) for item in value]
    if value is None or isinstance(value, (str, int, bool)):
        return value
    return str(value)
