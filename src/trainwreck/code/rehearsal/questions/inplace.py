"""Is a value changed in place that its own backward still needs?"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node
from trainwreck.code.rehearsal.graph import graph
from trainwreck.code.rehearsal.questions import Answer

SAVES_RESULT = frozenset(
    """sigmoid tanh exp softmax log_softmax sqrt rsqrt relu relu_ elu selu softplus_ reciprocal expm1 norm cumprod
    logsumexp std""".split()
)
"""Operations whose backward reads their result (torch's derivatives.yaml: ``result`` in the formula)."""


def overwritten(run: Rehearsing) -> Iterator[Answer]:
    """A change in place of such a result, in the graph of a loss: backward stops there with an error."""
    told: set[int] = set()
    for event in run.tape:
        if event.name != "backward":
            continue
        for node in graph(event.subject):
            written = node.options.get("inplace") or node.op == "setitem"
            if not written or not node.grad or not node.inputs or node.place is None:
                continue
            before = node.inputs[0]
            if not isinstance(before, Node) or not before.grad or id(node.place[0]) in told:
                continue
            if before.op not in SAVES_RESULT or before.options.get("inplace"):
                continue
            told.add(id(node.place[0]))
            text = f"this changes the result of {before.op} in place, which its backward needs unchanged"
            yield Answer(node.place, text, tuple(p for p in (before.place, event.place) if p is not None))
