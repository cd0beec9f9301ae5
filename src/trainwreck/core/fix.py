"""How to correct something: in words, and as edits of whole lines where that is possible."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trainwreck.core.frozen import Frozen


class Edit(Frozen):
    """Replace the lines ``line``..``end_line`` of ``path`` by ``text`` (empty: remove them).

    In a notebook ``cell`` counts the code cells from 1, and the lines are those of the cell.
    """

    path: str
    line: int
    end_line: int
    text: str
    cell: int | None = None

    def to_json(self) -> dict[str, Any]:
        return {"path": self.path, "line": self.line, "end_line": self.end_line, "text": self.text}


class Fix(Frozen):
    """``safe``: the edits cannot change what is trained, so ``--fix`` applies them unasked."""

    text: str
    edits: Sequence[Edit] = ()
    safe: bool = False

    def to_json(self) -> dict[str, Any]:
        return {"text": self.text, "edits": [e.to_json() for e in self.edits], "safe": self.safe}
