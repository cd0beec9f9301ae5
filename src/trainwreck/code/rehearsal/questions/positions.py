"""Positions of tokens: made, held by the network, and left out."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.pattern import pattern
from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, is_module
from trainwreck.code.rehearsal.graph import ancestors, near
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.roles import STRUCTURE, trained
from trainwreck.code.rehearsal.questions.sampleaxis import ATTENTION

WAVES = frozenset(["sin", "cos"])
KEEPS = STRUCTURE | frozenset(
    "layer_norm rms_norm dropout linear relu gelu mul div chunk split unbind part getitem add either".split()
)
"""What a token goes through alone, without a look at where it stands."""
PLACED = pattern(
    r"(?<!trans)(?<!com)pos|rope|rotary|alibi|arange|linspace|sin\(|wpe|time|LSTM|GRU|RNN|Conv|freqs|relative|attn_bias|order|causal|tril|triu|"
    r"\bset\b|bag|node|graph|basket|card|column|feature|slot|entit|object|agent|field|invarian|unordered",
    re.IGNORECASE,
)
"""Words of places, and of what has none: sets, columns, nodes."""


def nowhere(run: Rehearsing) -> Iterator[Answer]:
    """Attention of the program's own over looked-up tokens that nothing but what they are went into.

    Silent where any word of the program speaks of places, or of things without an order."""
    if PLACED.search(_code(run)):
        return
    for node in trained(run):
        if node.op != "scaled_dot_product_attention" or len(node.inputs) < 2 or node.options.keys() - {"dropout_p"}:
            continue
        if len(node.inputs) - len(node.options) > len(SIDES):
            continue  # a mask may be one of what came before
        behind = [n for i in node.inputs[:2] for n in ancestors(i, through=_goes_on)]
        ends = [n for n in behind if not _goes_on(n) and n.op != "param"]
        tables = [n for n in ends if n.op == "embedding"]
        own = any(n.op == "param" and n.owner is None for n in behind)
        alone = len({id(n) for n in tables}) == 1 and all(_fixed(n) or n in tables for n in ends)
        if alone and not own and tables[0].place is not None:
            text = "tokens reach attention without any position: their order makes no difference"
            yield Answer(tables[0].place, text, (node.place,) if node.place is not None else ())
            return


SIDES = ("query", "key", "value")


def _goes_on(node: Node) -> bool:
    return (node.op in KEEPS or node.op == "scaled_dot_product_attention") and node.grad


def _fixed(node: Node) -> bool:
    """A size, or a number."""
    number = not node.grad and not node.shape.open and not node.shape.dims
    return number or node.op in ("attribute", "size", "len", "shape")


def _code(run: Rehearsing) -> str:
    """What is written in the program, without its words for readers."""
    if "code" not in run.memo:
        bare = (_bare(w.top.module.tree) for w in run.project.walked.values())
        run.memo["code"] = "\n".join(map(ast.unparse, bare))
    text: str = run.memo["code"]
    return text


def _bare(tree: ast.Module) -> ast.Module:
    first = tree.body[:1]
    spoken = bool(first) and isinstance(first[0], ast.Expr) and isinstance(first[0].value, ast.Constant)
    return ast.Module(tree.body[1:] if spoken else tree.body, [])


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
