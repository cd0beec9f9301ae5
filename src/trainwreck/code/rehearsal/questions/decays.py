"""Parameter groups with and without weight decay: are they the right way round?"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.pattern import pattern
from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Event, Items, Node, Obj, Place, Table
from trainwreck.code.rehearsal.holding import is_optimizer
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.counts import number
from trainwreck.code.rehearsal.questions.gradients import steps

FEW = 2
GAIN = pattern(r"(^|\.)norm\d?\.weight$")
"""The gains of the norms in torch's own transformer layers."""
TABLES = frozenset(["Embedding", "EmbeddingBag"])
"""Layers whose weights many recipes spare from decay."""


def swapped(run: Rehearsing) -> Iterator[Answer]:
    """Decay for gains and biases alone, and none for the weights of layers."""
    moving = {id(e.subject) for e in steps(run)}
    for optimizer in (o for o in run.objects if is_optimizer(o) and id(o) in moving):
        groups = [g for g in run.groups(optimizer).items if isinstance(g, Table)]
        known = [(g, number(run, g.entries.get("weight_decay", optimizer.get("weight_decay")))) for g in groups]
        decayed = [g for g, decay in known if decay]
        spared = [g for g, decay in known if decay == 0]
        if len(groups) != len(decayed) + len(spared) or not decayed or not spared:
            continue
        pulled = [p for g in decayed for p in _held(g)]
        kept = [p for g in spared for p in _held(g)]
        both = {id(p) for p in pulled} & {id(p) for p in kept}  # what sorts these isn't known
        pulled, kept = ([p for p in side if id(p) not in both] for side in (pulled, kept))
        small = [p for p in pulled if _flat(p)]
        layers = [p for p in pulled if not _flat(p) and (p.shape.open or _of_layer(p))]
        if len(small) < FEW or layers or not any(_weights(p) for p in kept):
            continue
        place = _sorted_at(run, pulled) or _listed(decayed) or optimizer.place
        if place is not None:
            text = "weight decay goes to gains and biases alone, and the weights of the layers have none: it is swapped"
            proof = (optimizer.place,) if optimizer.place is not None and optimizer.place is not place else ()
            yield Answer(place, text, proof, severity="warning")


def sorted_in_vain(run: Rehearsing) -> Iterator[Answer]:
    """Gains and biases are sorted out, and decay like the rest: their group has the same decay, or nothing in it."""
    moving = {id(e.subject) for e in steps(run)}
    for optimizer in (o for o in run.objects if is_optimizer(o) and id(o) in moving):
        found = run.groups(optimizer)
        groups = [g for g in found.items if isinstance(g, Table)]
        if len(groups) != 2 or found.more or len(groups) != len(found.items) or optimizer.place is None:
            continue
        decays = [number(run, g.entries.get("weight_decay", optimizer.get("weight_decay"))) for g in groups]
        lists = [g.entries.get("params") for g in groups]
        if None in decays or any(not isinstance(i, Items) or i.more for i in lists):
            continue
        (one, two), (first, second) = groups, decays
        for group, other, decay, rest in ((one, two, first, second), (two, one, second, first)):
            mine, others = _held(group), _held(other)
            flat = [p for p in others if _flat(p)]
            if not mine and decay == 0 and rest and len(flat) >= FEW and any(_weights(p) for p in others):
                text = "nothing falls into the group without weight decay: gains and biases decay with the weights"
                yield Answer(_listed([group]) or optimizer.place, text, (optimizer.place,), severity="warning")
                return
            rates = [{k: v for k, v in g.entries.items() if k != "params" and not isinstance(v, Node)}
                     for g in (group, other)]  # fmt: skip
            alike = bool(decay) and "weight_decay" in group.entries and rates[0] == rates[1]
            sorted_out = len(mine) >= FEW and len(flat) == 0 and all(_flat(p) for p in mine)
            if alike and sorted_out and any(_weights(p) for p in others):
                text = "gains and biases have a group of their own here, and decay in it like the weights"
                yield Answer(optimizer.place, text, severity="warning")
                return


def _held(group: Table) -> list[Node]:
    params = group.entries.get("params")
    return [p for p in params.items if isinstance(p, Node) and p.op == "param"] if isinstance(params, Items) else []


def _listed(groups: list[Table]) -> Place | None:
    """Where the list of a group is made."""
    lists = [g.entries.get("params") for g in groups]
    return next((held.place for held in lists if isinstance(held, Items) and held.place is not None), None)


def _flat(param: Node) -> bool:
    if param.shape.open and param.name.endswith("bias"):
        return True
    if param.shape.open and _of_layer(param) and GAIN.search(param.name):
        return True
    return not param.shape.open and len(param.shape.dims) < 2


def _of_layer(param: Node) -> bool:
    """True for what is no parameter of the program's own, such as a table of positions or a class token."""
    owner = param.owner
    return isinstance(owner, Obj) and owner.cls is None and owner.kind.startswith("torch.nn.")


def _weights(param: Node) -> bool:
    of_table = isinstance(param.owner, Obj) and param.owner.name in TABLES
    return not of_table and not param.shape.open and len(param.shape.dims) > 1


def _sorted_at(run: Rehearsing, pulled: list[Node]) -> Place | None:
    """Where the parameters were put into the list of those that decay."""
    put: list[Event] = [e for e in run.tape if e.name == "append" and any(a is p for a in e.args for p in pulled)]
    return put[0].place if put else None
