"""One call of a function on a tensor, as the shape reading sees it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from trainwreck.code.calls import Call, written
from trainwreck.code.shapes.domain import UNKNOWN, Clash, Shape, Value
from trainwreck.code.shapes.layers import Report


@dataclass
class Asked:
    """One call of a function: its name, the tensor it works on, the other arguments."""

    name: str
    shape: Shape
    args: Sequence[Value]
    options: Mapping[str, Value]
    call: Call
    report: Report

    def get(self, name: str, place: int, default: Value = UNKNOWN) -> Value:
        if name in self.options:
            return self.options[name]
        return self.args[place] if place < len(self.args) else default

    def clash(self, kind: str, text: str) -> None:
        by = (self.shape.by,) if self.shape.by is not None else ()
        origin = f" (from {written(by[0].node)[:50]}, line {by[0].line})" if by else ""
        self.report(Clash(kind, self.call, text + origin, by))
