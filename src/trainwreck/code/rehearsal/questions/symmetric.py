"""Is a square matrix its own transpose (the graph of an undirected network), or surely not (each row divided)?"""

from __future__ import annotations

from trainwreck.code.rehearsal.domain import Node, Value
from trainwreck.code.rehearsal.graph import ancestors, carries
from trainwreck.code.rehearsal.questions.roles import STRUCTURE, unknown
from trainwreck.code.rehearsal.trial.bench import Bench, Unknown

SPARSE = frozenset(["coalesce", "to_sparse", "to_sparse_coo", "to_sparse_csr", "to_dense", "is_coalesced"])
TURNS = frozenset(["t", "T", "mT", "H", "transpose", "permute", "swapaxes", "swapdims", "movedim"])


def surely_not(value: Value) -> bool:
    """True for a matrix that is not symmetric, as far as the program says how it is made; also a learned one."""
    at = value
    for _ in range(20):
        if not isinstance(at, Node):
            return False
        if at.op == "param" or at.grad:
            return True
        if at.op == "sparse_coo_tensor" and len(at.inputs) > 1:
            return _one_ended(at.inputs[0], at.inputs[1])
        if at.op not in SPARSE and (at.op not in STRUCTURE or at.op in TURNS):
            break
        if not at.inputs:
            return False
        at = at.inputs[0]
    return isinstance(at, Node) and _worked_out(at)


def _one_ended(places: Value, weights: Value) -> bool:
    """True where the weight of an edge is that of one of its ends (one over the number of its edges), or both ends
    are drawn at random."""
    if not isinstance(places, Node):
        return False
    if places.op == "randint":
        return True
    ends: set[object] = set()
    whole = False
    behind = [n for n in ancestors(weights, lambda n: n is not places and carries(n)) if n is not places]
    for node in (n for n in behind if carries(n)):
        if node.op in ("getitem", "part") and len(node.inputs) == 2 and node.inputs[0] is places:
            ends.add(node.inputs[1] if isinstance(node.inputs[1], int) else None)
        elif any(i is places for i in node.inputs):
            whole = True
    return not whole and len(ends) == 1 and ends <= {0, 1} and not any(unknown(n) for n in behind)


def _worked_out(matrix: Node) -> bool:
    """True where a trial with other numbers for what is drawn gives a matrix that isn't symmetric."""
    import numpy as np

    try:
        found = Bench(seed=3).work(matrix)
    except (Unknown, RecursionError):
        return False
    square = found.ndim == 2 and found.shape[0] == found.shape[1] > 1
    return bool(square and not np.allclose(found, found.T, rtol=1e-3))
