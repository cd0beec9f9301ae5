"""A branch of the network that learns for itself alone: its input is cut off from what the other losses train."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.pattern import pattern
from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Place, Value
from trainwreck.code.rehearsal.graph import ancestors, graph, opaque
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.roles import backwards
from trainwreck.code.rehearsal.questions.terms import PASSED

LOSSES = frozenset(
    """cross_entropy nll_loss binary_cross_entropy binary_cross_entropy_with_logits mse_loss l1_loss smooth_l1_loss
    huber_loss multi_margin_loss ctc_loss gaussian_nll_loss poisson_nll_loss kl_div""".split()
)
CUTS = frozenset(["detach", "detach_", "data"])
COMPUTED = frozenset(
    "linear conv1d conv2d conv3d relu gelu silu tanh leaky_relu layer_norm layernorm dropout flatten".split()
)
"""What a network gives: without a gradient it was computed while gradients were off."""
SUMS = frozenset("add sum mean stack cat mul div sub truediv neg float squeeze".split()) | PASSED
MEANT = pattern(
    r"prob(e|ing)|aux|online|monitor|detach|stop.?grad|no gradient|critic|baseline|value|calib|uncertain|adversar|"
    r"linear.?eval|local|greedy|readout|domain|nuisance|confid|discrim|teacher|target|frozen|block|"
    r"\bdur|length|pitch|energy|halt|iou|quality",
    re.IGNORECASE,
)
"""Words that say of a head that it is only to look: in its names, or in a comment or docstring beside it."""


def looks_only(run: Rehearsing) -> Iterator[Answer]:
    """One of several supervised losses whose gradient ends at a ``detach`` in front of its head, while the others train
    what lies behind it. Heads that are meant to look only (probes, critics) are passed over by their names."""
    if any(e.name == "grad" for e in run.tape):
        return
    told: set[int] = set()
    for event in backwards(run):
        if not event.turns or opaque(event.subject):
            continue
        losses = [n for n in _terms(event.subject) if _supervised(n)]
        if len(losses) < 2:
            continue
        reach = {id(n): {id(p) for p in graph(n) if p.op == "param" and p.trainable is not False} for n in losses}
        for loss in losses:
            for cut in _cuts(loss):
                behind = {id(p) for p in ancestors(cut) if p.op == "param" and p.trainable is not False}
                others = [o for o in losses if o is not loss and behind & reach[id(o)]]
                if not behind or behind & reach[id(loss)] or not others or not reach[id(loss)] or cut.place is None:
                    continue
                if (
                    id(cut.place[0]) in told
                    or _meant(run, cut.place)
                    or any(_same_data(loss, o) is False for o in others)
                ):
                    continue
                told.add(id(cut.place[0]))
                text = "the gradient of one loss ends here: what lies behind learns from the other losses only"
                proof = tuple(p for p in (loss.place, others[0].place) if p is not None)
                yield Answer(cut.place, text, proof)


def _terms(loss: Value) -> Iterator[Node]:
    """The losses that are added up."""
    for node in ancestors(loss, through=lambda n: n.op in SUMS):
        if node.op in LOSSES or (node.op in ("mean", "sum") and _squared(node)):
            yield node


def _squared(node: Node) -> bool:
    inner = node.inputs[0] if node.inputs else None
    return isinstance(inner, Node) and inner.op in ("pow", "square", "abs") and inner.grad


def _supervised(loss: Node) -> bool:
    """True if the loss compares what a network computes with data that no network had a part in."""
    if not loss.grad or loss.place is None:
        return False
    nodes = list(ancestors(loss))
    sides = [i for i in (loss.inputs[:2] if loss.op in LOSSES else _sides(loss)) if isinstance(i, Node)]
    plain = [s for s in sides if not any(n.op in ("param", "unknown", "opaque", "call") for n in ancestors(s))]
    return len(sides) == 2 and len(plain) == 1 and any(n.op == "batch" for n in nodes)


def _sides(node: Node) -> tuple[Value, ...]:
    """Of a mean of squares: what is subtracted."""
    for inner in ancestors(node):
        if inner.op == "sub":
            return inner.inputs[:2]
    return ()


def _cuts(loss: Node) -> Iterator[Node]:
    """Values on the way to the loss that are detached, and go through layers that learn."""
    for node in graph(loss):
        for item in node.inputs:
            if isinstance(item, Node) and item.op in CUTS and node.op not in ("sub", "mul", "div") and not item.grad:
                inner = item.inputs[0] if item.inputs else None
                if isinstance(inner, Node) and inner.grad and inner.op != "param":
                    yield item
            elif isinstance(item, Node) and item.op in COMPUTED and not item.grad:
                yield item


def _same_data(one: Node, other: Node) -> bool:
    """True if both losses look at one batch."""
    first = {id(n) for n in ancestors(one) if n.op == "batch"}
    return bool(first & {id(n) for n in ancestors(other) if n.op == "batch"}) or not first


def _meant(run: Rehearsing, place: Place) -> bool:
    """True if the names in the statement, or a comment beside it, say that the head only looks."""
    node, scope = place
    statement = run.project.statement(node, scope)
    lines = scope.module.text.splitlines()
    first, last = statement.lineno, statement.end_lineno or statement.lineno
    names = {n.id for n in ast.walk(statement) if isinstance(n, ast.Name)}
    names |= {n.attr for n in ast.walk(statement) if isinstance(n, ast.Attribute) and n.attr not in CUTS}
    said = [line.partition("#")[2] for line in lines[max(0, first - 3) : last]]
    said += [ast.get_docstring(scope.node) or "" if isinstance(scope.node, ast.FunctionDef) else ""]
    return bool(MEANT.search(" ".join([*names, *said, scope.name])))
