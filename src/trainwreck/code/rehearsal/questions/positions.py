"""Positions of tokens: made, held by the network, and left out."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.pattern import pattern
from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Obj, Value, is_module
from trainwreck.code.rehearsal.graph import ancestors, near
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.layer_order import expected_samples
from trainwreck.code.rehearsal.questions.roles import RAW, STRUCTURE, trained
from trainwreck.code.rehearsal.questions.sampleaxis import ATTENTION

WAVES = frozenset(["sin", "cos"])
KEEPS = STRUCTURE | frozenset(
    "layer_norm rms_norm dropout linear relu gelu mul div chunk split unbind part getitem add either".split()
)
"""What a token goes through alone, without a look at where it stands."""
PLACED = pattern(
    r"(?<!trans)(?<!com)pos|rope|rotary|alibi|arange|linspace|sin\(|wpe|time|LSTM|GRU|(?<!utils\.)RNN|Conv|freqs|relative|attn_bias|order|causal|tril|triu|"
    r"\bset\b|bag|node|graph|basket|card|column|feature|slot|entit|object|agent|field|invarian|unordered",
    re.IGNORECASE,
)
"""Words of places, and of what has none: sets, columns, nodes."""

CALLED = pattern(r"(pos(ition(s|al)?)?|wpe|pe)(_?(emb\w*|enc\w*|embedding|encoding))?$")


def nowhere(run: Rehearsing) -> Iterator[Answer]:
    """Attention of the program's own over looked-up tokens that nothing but what they are went into.

    Silent where any word of the program speaks of places, or of things without an order."""
    if PLACED.search(_code(run)):
        return
    for node in trained(run):
        sides = _sides(node)
        behind = [n for i in sides for n in ancestors(i, through=_goes_on)]
        ends = [n for n in behind if not _goes_on(n) and n.op != "param"]
        tables = [n for n in ends if n.op == "embedding"]
        own = any(n.op == "param" and n.owner is None for n in behind)
        alone = len({id(n) for n in tables}) == (len(sides) if node.op == "transformer" else 1)
        alone = alone and all(_fixed(n) or n in tables for n in ends)
        if alone and not own and tables[0].place is not None:
            text = "tokens reach attention without any position: their order makes no difference"
            yield Answer(tables[0].place, text, (node.place,) if node.place is not None else ())
            return


SIDES = ("query", "key", "value")
MASKS = frozenset(
    ["tgt_mask", "src_key_padding_mask", "tgt_key_padding_mask", "memory_key_padding_mask", "tgt_is_causal"]
)
"""What torch's layers may be handed that tells nothing of places, but which tokens come before."""


MADE_WITH = frozenset(["batch_first", "norm_first", "dropout", "activation", "device", "dtype", "bias"])


def _sides(node: Node) -> list[Value]:
    """The tokens that an attention mixes; nothing where something else may tell it their places."""
    if node.op == "transformer" and not node.options.keys() - MASKS - MADE_WITH:
        named = list(node.options.values())
        data = [i for i in node.inputs if not (isinstance(i, Node) and i.op == "param")]
        data = [i for i in data if not any(i is n for n in named)]
        return data if len(data) == 2 else []
    if node.op != "scaled_dot_product_attention" or len(node.inputs) < 2 or node.options.keys() - {"dropout_p"}:
        return []
    # a mask may be one of what came before
    return list(node.inputs[:2]) if len(node.inputs) - len(node.options) <= len(SIDES) else []


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
    """A module that holds a table of waves, or an embedding called one of positions, is made and never run, and
    attention gets embeddings without positions."""
    ran = {id(e.subject) for e in run.tape if e.name == "forward"}
    tables = [o for o in run.objects if is_module(o) and o.cls is not None and id(o) not in ran and any(
        isinstance(v, Node) and v.op == "buffer" and any(n.op in WAVES for n in near(v, 30))
        for v in o.attributes.values())]  # fmt: skip
    held = [t for t in tables if any(v is t for o in run.objects if id(o) in ran for v in o.attributes.values())]
    held += _unread(run, ran)
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


def _unread(run: Rehearsing, ran: set[int]) -> list[Obj]:
    """Embeddings called ones of positions, in modules that ran, whose weights nothing was worked out with."""
    named = [v for o in run.objects if id(o) in ran for name, v in o.attributes.items()
             if isinstance(v, Obj) and v.name == "Embedding" and id(v) not in ran and CALLED.match(name)]  # fmt: skip
    weights = {id(p): v for v in named for p in run.own_parameters(v).values()}
    used = {id(i) for n in run.nodes if n.op not in ("param", "state") for i in n.inputs if id(i) in weights}
    return [v for key, v in weights.items() if key not in used]


def by_sample(run: Rehearsing) -> Iterator[Answer]:
    """A table of positions is laid along the samples: all tokens of one get the same position."""
    for node in trained(run):
        samples = expected_samples(node)
        first = node.inputs[0] if node.inputs else None
        if samples not in (0, 1) or not isinstance(first, Node):
            continue
        for inner in ancestors(first, through=lambda n: n.op in KEEPS and n.grad):
            sides = [i for i in inner.inputs[:2] if isinstance(i, Node)] if inner.op == "add" else []
            for table in sides if len(sides) == 2 else ():
                dims = table.shape.dims
                laid = not table.shape.open and len(dims) == 3 and dims[1 - samples] == 1 and dims[samples] != 1
                told = any(n.op in RAW for n in ancestors(table))  # a layer makes it of each sample's own time
                if laid and not told and _waves(table) and table.place is not None:
                    text = "the table of positions lies along the samples here: all tokens of one get the same position"
                    yield Answer(table.place, text, (node.place,) if node.place is not None else ())
                    return


def _waves(table: Node) -> bool:
    """True for sines and cosines that no data went into."""
    behind = list(ancestors(table, through=lambda n: n.op not in ("size", "attribute", "len")))
    return any(n.op in WAVES for n in behind) and not any(n.op in ("batch", "embedding", "element") for n in behind)
