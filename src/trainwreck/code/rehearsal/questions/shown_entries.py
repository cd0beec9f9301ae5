"""Networks that fill in gaps: is what they are asked for put out of the row that they are shown?"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Value
from trainwreck.code.rehearsal.graph import graph, near, parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.paths import RANDOM, key_of
from trainwreck.code.rehearsal.questions.roles import backwards

JOINS = frozenset(["cat", "concatenate", "concat", "hstack"])
KEEPS = frozenset("pow square abs sum mean getitem view reshape float".split())
TESTS = frozenset(["lt", "gt", "le", "ge", "bernoulli"])
FEW = 10
MAX_CHAIN = 6


def hidden_is_shown(run: Rehearsing) -> Iterator[Answer]:
    """The loss is about entries that a random mask chose, the network is told the mask, and the whole row beside it."""
    for event in backwards(run):
        inside = list(graph(event.subject))
        for node in inside:
            weight, truth = _asked(node)
            draws = {id(n) for n in near(weight, FEW) if n.op in RANDOM} if weight is not None else set()
            if truth is None or not draws or weight is None or not any(n.op in TESTS for n in near(weight, FEW)):
                continue
            for layer in inside:
                first = layer.inputs[0] if layer.op == "linear" and layer.inputs else None
                if not isinstance(first, Node) or first.grad or first.op not in JOINS or first.place is None:
                    continue
                items = list(parts(first.inputs[:1]))
                told = any(id(n) in draws for i in items for n in near(i, FEW) if key_of(i) != key_of(truth))
                if told and any(i is truth or key_of(i) == key_of(truth) for i in items):
                    text = "the row is shown as it is, with the entries that a mask chose to be told"
                    yield Answer(first.place, text, tuple(p for p in (node.place, weight.place) if p is not None))
                    return


def _asked(node: Node) -> tuple[Node | None, Node | None]:
    """Of ``error * mask``: the mask, and the data that the outputs are compared with."""
    if node.op != "mul" or len(node.inputs) < 2 or not node.grad:
        return None, None
    for error, weight in (node.inputs[:2], node.inputs[1::-1]):
        if not isinstance(error, Node) or not isinstance(weight, Node) or not error.grad or weight.grad:
            continue
        at: Value = error
        for _ in range(MAX_CHAIN):
            if not isinstance(at, Node) or not at.inputs:
                break
            if at.op in ("sub", "mse_loss", "l1_loss", "smooth_l1_loss") and len(at.inputs) > 1:
                truth = next((i for i in at.inputs[:2] if isinstance(i, Node) and not i.grad), None)
                return (weight, truth) if truth is not None else (None, None)
            if at.op not in KEEPS:
                break
            at = at.inputs[0]
    return None, None


__all__ = ["hidden_is_shown"]
