"""Values that two loops of one list give, one after the other, and the rows and columns that they are then put into.

``[f(a, b) for a in (1, -1) for b in noise]`` has all ``b`` of the first ``a`` first: a matrix of it has a row for each
``a``. Put into rows of two, it pairs what does not belong together.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Items, Node
from trainwreck.code.rehearsal.graph import near
from trainwreck.code.rehearsal.questions import Answer

TABLE = 2
FEW = 12
GATHERS = frozenset(["tensor", "as_tensor", "array", "asarray", "stack", "from_numpy"])


def listed_across(run: Rehearsing) -> Iterator[Answer]:
    """The inner loop's values lie side by side, and the matrix takes those of the outer loop for neighbours."""
    told: set[int] = set()
    for node in run.nodes:
        sizes = _sizes(node)
        if sizes is None or node.place is None or id(node.place[0]) in told:
            continue
        listed = next((m for n in near(node.inputs[0], FEW) if (m := _listed(n)) is not None), None)
        if listed is None or listed.place is None:
            continue
        made = listed.place[0]
        assert isinstance(made, ast.ListComp)
        outer, inner = (_count(g.iter) for g in made.generators)
        rows, columns = sizes
        if outer is not None and inner is None:
            across = columns == outer and rows != outer
        elif inner is not None and outer is None:
            across = rows == inner and columns != inner
        else:
            across = outer != inner and (rows, columns) == (inner, outer)
        if across:
            told.add(id(node.place[0]))
            text = "the values of the last loop lie side by side in this list, and the rows of the matrix that it "
            text += "becomes are those of that loop: what stands in a row does not belong together"
            yield Answer((made.generators[0].iter, listed.place[1]), text, (node.place,))
            return


def _sizes(node: Node) -> tuple[int, int] | None:
    """The rows and columns of a matrix, as they are written."""
    if node.op not in ("view", "reshape") or len(node.inputs) < TABLE:
        return None
    sizes = node.inputs[1] if isinstance(node.inputs[1], tuple) else node.inputs[1:]
    if len(sizes) != TABLE or not all(isinstance(s, int) and not isinstance(s, bool) for s in sizes):
        return None
    return (sizes[0], sizes[1]) if 1 not in sizes else None


def _listed(node: Node) -> Items | None:
    """A list of numbers that two loops make, one within the other."""
    held = node.inputs[0] if node.op in GATHERS and node.inputs else None
    if not isinstance(held, Items) or held.place is None or not isinstance(held.place[0], ast.ListComp):
        return None
    generators = held.place[0].generators
    plain = len(generators) == TABLE and not any(g.ifs for g in generators)
    apart = plain and not _uses(generators[1].iter, generators[0].target)
    return held if apart and (node.shape.open or len(node.shape.dims) == 1) else None


def _uses(value: ast.expr, target: ast.expr) -> bool:
    names = {n.id for n in ast.walk(target) if isinstance(n, ast.Name)}
    return any(isinstance(n, ast.Name) and n.id in names for n in ast.walk(value))


def _count(value: ast.expr) -> int | None:
    """How many elements a written list has."""
    return len(value.elts) if isinstance(value, ast.Tuple | ast.List) and len(value.elts) > 1 else None


__all__ = ["listed_across"]
