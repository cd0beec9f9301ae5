"""Where the length of a schedule's run is given its value, as seen from the formula that divides by it."""

from __future__ import annotations

import ast

from trainwreck.code.rehearsal.domain import Place
from trainwreck.code.scopes import Scope


def length_given(formula: Place) -> Place | None:
    """The one assignment of the one name that the formula divides by: ``total = len(loader)``, where the formula has
    ``k / total``. None where the value is a product (epochs times batches): then the formula is as likely wrong."""
    node, scope = formula
    below = [n.right for n in ast.walk(node) if isinstance(n, ast.BinOp) and isinstance(n.op, ast.Div | ast.FloorDiv)]
    function = node if isinstance(node, ast.Lambda) else None
    own = {a.arg for a in function.args.args} if function is not None else set(scope.params)
    found: list[Place] = []
    in_calls = {id(i) for side in below for c in ast.walk(side) if isinstance(c, ast.Call) for i in ast.walk(c)}
    named = {n.id for side in below for n in ast.walk(side) if isinstance(n, ast.Name) and id(n) not in in_calls}
    for name in named - own:
        holder: Scope | None = scope
        while holder is not None and name not in holder.bindings:
            holder = holder.parent
        bound = holder.bindings[name] if holder is not None else []
        if (
            (holder is scope and function is None)
            or len(bound) != 1
            or bound[0].kind != "assign"
            or bound[0].value is None
        ):
            continue
        value = bound[0].value
        if isinstance(value, ast.Constant | ast.Tuple):
            continue  # a warm-up's length, most often
        if not any(isinstance(n, ast.Mult) for n in ast.walk(value)):
            found.append((bound[0].node, bound[0].scope))
    return found[0] if len(found) == 1 else None


def formula_of(place: Place) -> Place:
    """The last statement in which something is divided: that is where a step becomes a share of the run."""
    node, scope = place
    body = getattr(node, "body", None)
    if not isinstance(body, list):
        return place
    statements = [n for s in body for n in ast.walk(s) if isinstance(n, ast.Assign | ast.Return | ast.AugAssign)]
    dividing = [s for s in statements if any(isinstance(n, ast.Div | ast.FloorDiv) for n in ast.walk(s))]
    return (max(dividing, key=lambda n: n.lineno), scope) if dividing else place


__all__ = ["formula_of", "length_given"]
