"""Optimizers that move weights in another way than Adam does: signs (Lion), orthogonal matrices (Muon)."""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Event, Node, Obj, Value
from trainwreck.code.rehearsal.graph import ancestors
from trainwreck.code.rehearsal.holding import is_optimizer
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.counts import number
from trainwreck.code.rehearsal.questions.gradients import held, ids, steps
from trainwreck.code.rehearsal.questions.places import literal
from trainwreck.code.rehearsal.questions.roles import STRUCTURE, core, given, losses

LARGE = 1e-3
"""The usual rate of AdamW; Lion's is three to ten times smaller (Chen et al. 2023)."""
TABLES = frozenset(["Embedding", "EmbeddingBag"])
CLASSES = ("cross_entropy", "nll_loss")


def signs(run: Rehearsing) -> Iterator[Answer]:
    """A rate of AdamW for weights that an optimizer of the program moves by the sign of an average."""
    for event in run.tape:
        if event.name not in ("add_", "sub_") or not event.args or event.place is None:
            continue
        moved, rate = _weight(event.subject), _rate(run, event)
        optimizer = _holder(run, moved) if moved is not None else None
        if optimizer is None or rate is None or rate < LARGE or optimizer.place is None:
            continue
        where = literal(run, rate, ("lr", "learning_rate", "rate"), optimizer.place)
        text = f"a rate of {rate:g} for steps that are signs of size one: it is one for AdamW, three to ten times less"
        yield Answer(where, f"{text} is usual", (event.place,))
        return


def _weight(value: Value) -> Node | None:
    """The parameter that is changed in place, after other changes of it in the same line."""
    for _ in range(6):
        if not isinstance(value, Node) or value.op == "param":
            break
        value = value.inputs[0] if value.inputs and (value.options.get("inplace") or value.op in STRUCTURE) else None
    return value if isinstance(value, Node) else None


def _holder(run: Rehearsing, param: Node) -> Obj | None:
    """The optimizer of the program's own that steps this parameter."""
    for step in steps(run):
        if isinstance(step.subject, Obj) and step.subject.cls is not None and any(p is param for p in held(step)):
            return step.subject
    return None


def _rate(run: Rehearsing, event: Event) -> float | None:
    """The number in front of the sign of an average of gradients; None where something else is added."""
    moved, factor = event.args[0], number(run, event.options.get("alpha", event.get("alpha", 1, 1)))
    if isinstance(moved, Node) and moved.op == "mul" and len(moved.inputs) > 1:
        numbers = [number(run, i) for i in moved.inputs[:2]]
        other = next((n for n in numbers if n is not None), None)
        signed = next((i for i in moved.inputs[:2] if isinstance(i, Node) and number(run, i) is None), None)
        moved, factor = signed, other if factor == 1 else None
    for node in core(moved):
        inner = node.inputs[0] if node.op in ("sign", "sign_") and node.inputs else None
        if not isinstance(inner, Node) or inner.op not in ("add", "lerp") or factor is None:
            return None  # the sign of a single gradient is no average
        if not any(n.op == "grad" for n in ancestors(inner)):
            return None
        return abs(factor)
    return None


def unsuited(run: Rehearsing) -> Iterator[Answer]:
    """Muon moves a table of embeddings or the layer that gives the scores of the classes."""
    last = {id(p) for loss in losses(run, *CLASSES) for n in core(given(loss, "input", 0)) for p in _weights(n)}
    for optimizer in run.objects:
        if not is_optimizer(optimizer) or optimizer.place is None or not _muon(optimizer):
            continue
        params = run.optimized(optimizer)[0]
        tables = [p for p in params if isinstance(p.owner, Obj) and p.owner.name in TABLES]
        heads = [p for p in params if id(p) in last and id(p) not in ids(tables)]
        if tables or heads:
            what = " and ".join([*["an embedding"] * bool(tables), *["the layer of the classes' scores"] * bool(heads)])
            text = f"Muon moves {what} too: it is for hidden matrices, and these belong to AdamW"
            yield Answer(optimizer.place, text)


def _muon(optimizer: Obj) -> bool:
    name = optimizer.cls.name if optimizer.cls is not None else optimizer.name
    return "muon" in name.lower()


def _weights(node: Node) -> list[Node]:
    """The matrix of the layer that gave this value."""
    if node.op != "linear":
        return []
    return [i for i in node.inputs if isinstance(i, Node) and i.op == "param" and i.name.endswith("weight")]
