"""The names that a statement gives to what it computes."""

from __future__ import annotations

import ast

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Place


def assigned_names(run: Rehearsing, place: Place) -> str:
    """The names that the statement at ``place`` gives to what it computes; of ``a, b = f(x), f(y)`` the one."""
    statement = run.project.statement(*place)
    targets = getattr(statement, "targets", None) or [getattr(statement, "target", None)]
    one, given = targets[0], getattr(statement, "value", None)
    if isinstance(given, ast.Tuple) and isinstance(one, ast.Tuple):
        inside = [any(n is place[0] for n in ast.walk(v)) for v in given.elts]
        targets = [t for t, held in zip(one.elts, inside, strict=False) if held] or targets
    words = [n.id if isinstance(n, ast.Name) else n.attr for t in targets if t is not None for n in ast.walk(t)
             if isinstance(n, ast.Name | ast.Attribute)]  # fmt: skip
    return " ".join(words).lower()


__all__ = ["assigned_names"]
