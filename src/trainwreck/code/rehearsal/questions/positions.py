"""Positions of tokens: made, held by the network, and left out."""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, is_module
from trainwreck.code.rehearsal.graph import ancestors, near
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.roles import trained
from trainwreck.code.rehearsal.questions.sampleaxis import ATTENTION

WAVES = frozenset(["sin", "cos"])


def left_out(run: Rehearsing) -> Iterator[Answer]:
    """A module that holds a table of waves is made and never run, and attention gets embeddings without positions."""
    ran = {id(e.subject) for e in run.tape if e.name == "forward"}
    tables = [o for o in run.objects if is_module(o) and o.cls is not None and id(o) not in ran and any(
        isinstance(v, Node) and v.op == "buffer" and any(n.op in WAVES for n in near(v, 30))
        for v in o.attributes.values())]  # fmt: skip
    held = [t for t in tables if any(v is t for o in run.objects if id(o) in ran for v in o.attributes.values())]
    if not held:
        return
    for node in trained(run):
        if node.op not in ATTENTION and node.op not in ("scaled_dot_product_attention", "softmax"):
            continue
        behind = list(ancestors(node))
        tokens = next((n for n in behind if n.op == "embedding" and n.place is not None), None)
        if tokens is None or any(n.op in WAVES or n.op == "arange" for n in behind if n.grad or n.op != "param"):
            continue
        if tokens.place is not None:
            text = "the table of positions is made and never added: attention can't tell the order of the tokens"
            yield Answer(tokens.place, text, tuple(p for p in (held[0].place, node.place) if p is not None))
            return
