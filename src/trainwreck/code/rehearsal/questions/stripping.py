"""Sequences that a loop of the program's own generates: are they judged without the prompt that they begin with?"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Obj, Value
from trainwreck.code.rehearsal.graph import ancestors, near, parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.roles import JOINS

CHOSEN = frozenset(["argmax", "multinomial", "sample", "topk"])
PASSES = frozenset(["tolist", "cpu", "long", "detach", "clone", "numpy"])
FEW = 8
"""Values between a token that was chosen and the scores that it was chosen by."""


def prompt_judged(run: Rehearsing) -> Iterator[Answer]:
    """A generated sequence is compared from its first token on, the prompt's, with an answer that has no prompt."""
    for node in run.nodes:
        if node.op not in ("eq", "equal") or node.grad or len(node.inputs) < 2:
            continue
        for side, other in (node.inputs[:2], node.inputs[1::-1]):
            grown = _from_the_start(side)
            prompt = _prompt(grown) if grown is not None else None
            if grown is None or prompt is None or not isinstance(other, Node) or _from_the_start(other):
                continue
            if any(n is prompt for n in ancestors(other)) or any(n.op in CHOSEN for n in ancestors(other)):
                continue
            place = side.place if isinstance(side, Node) and side.op == "getitem" else node.place
            if place is not None:
                text = "what is generated begins with the prompt, and it is compared with the answer from its start on"
                yield Answer(place, text, tuple(p for p in (grown.place, node.place) if p is not None))
                return


def _from_the_start(value: Value) -> Node | None:
    """A sequence that grows by one chosen token after the other, where it is read from its first one on."""
    for _ in range(FEW):
        if not isinstance(value, Node) or not value.inputs:
            return None
        if value.op == "getitem" and len(value.inputs) > 1:
            index = value.inputs[1] if isinstance(value.inputs[1], tuple) else (value.inputs[1],)
            cuts = [i for i in index if isinstance(i, Obj) and i.kind == "builtins.slice"]
            if len(index) < 2 or len(cuts) != len(index) or any(c.args[0] not in (None, 0) for c in cuts):
                return None
        elif value.op in JOINS:
            return value if grows(value) else None
        elif value.op not in PASSES:
            return None
        value = value.inputs[0]
    return None


def grows(join: Node) -> bool:
    """True for a sequence and one token behind it that was chosen, in a loop."""
    items = list(parts(join.inputs[0]))
    return len(items) == 2 and bool(join.turns) and any(n.op in CHOSEN for n in near(items[1], FEW))


def _prompt(grown: Node) -> Node | None:
    """What it was before the first token was chosen; None for a lone token to begin with, or what isn't data."""
    at: Node = grown
    for _ in range(FEW):
        first = next(iter(parts(at.inputs[0])), None)
        if first is None:
            return None
        if first.op == "either":
            first = next((n for n in parts(first.inputs) if not (n.op in JOINS and grows(n))), first)
        if first.op in JOINS and grows(first):
            at = first
            continue
        alone = not first.shape.open and first.shape.dims[-1:] == (1,)
        made = any(n.op == "param" for n in ancestors(first))
        return None if alone or made or first.op in ("zeros", "full", "ones") else first
    return None


__all__ = ["grows", "prompt_judged"]
