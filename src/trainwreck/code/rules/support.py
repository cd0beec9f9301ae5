"""Small things that several rules share."""

from __future__ import annotations

import ast

from trainwreck.code.project import Project
from trainwreck.code.scopes import Scope
from trainwreck.code.values import Proof


class Line(ast.AST):
    """A place of which only the line is known."""

    def __init__(self, line: int) -> None:
        super().__init__()
        self.lineno, self.col_offset = line, 0


def at_line(project: Project, proof: Proof) -> tuple[ast.AST, Scope] | None:
    """The end of a proof (where a number is written) as a place."""
    if not proof:
        return None
    path, line, _ = proof[-1]
    return (Line(line), project.walked[path].top) if path in project.walked else None
