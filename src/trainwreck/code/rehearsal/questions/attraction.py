"""Embeddings that a network and its follower (a momentum copy) make: of which views, pulled which way, and by whom."""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Event, Function, Node, Obj, Place, is_module
from trainwreck.code.rehearsal.graph import ancestors, parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.canonical import canon
from trainwreck.code.rehearsal.questions.freezing import updates
from trainwreck.code.rehearsal.questions.gradients import held, ids, steps
from trainwreck.code.rehearsal.questions.roles import STRUCTURE, backwards
from trainwreck.code.rehearsal.questions.terms import Term, losses_of, parameters_behind, squared_error
from trainwreck.code.rehearsal.questions.views import LOUD, data_inputs, embeddings
from trainwreck.core.row import Row

MOVES = frozenset(["requires_grad", "requires_grad_", "forward"])
"""What is done with a parameter and leaves its values."""


class Meeting(Row):
    """Two embeddings that are compared: of the network that learns, and of its follower."""

    node: Node
    live: Node
    still: Node


def _compared(node: Node) -> tuple[Node, Node] | None:
    """The two sides of a similarity or a distance of embeddings."""
    if node.op == "cosine_similarity" and len(node.inputs) > 1:
        one, other = node.inputs[:2]
    elif node.op == "sum" and node.inputs and isinstance(node.inputs[0], Node) and node.inputs[0].op == "mul":
        one, other = (*node.inputs[0].inputs, None, None)[:2]
        if not all(
            isinstance(s, Node) and any(n.op == "normalize" for n in ancestors(s, through=_shaped))
            for s in (one, other)
        ):
            return None
    else:
        pair = squared_error(node)
        one, other = pair if pair is not None else (None, None)
    return (one, other) if isinstance(one, Node) and isinstance(other, Node) else None


def _shaped(node: Node) -> bool:
    return node.op in STRUCTURE


def _leaders(value: Node) -> set[int]:
    """The parameters that those behind a value are copies of."""
    behind = parameters_behind(value).values()
    return {id(p) for q in behind for i in q.inputs for p in parts(i) if p.op == "param"}


def meetings(run: Rehearsing, event: Event) -> Iterator[Meeting]:
    trained = {id(p) for s in steps(run) for p in held(s)}
    for node in ancestors(event.subject, through=lambda n: n.op != "param"):
        sides = _compared(node)
        if sides is None:
            continue
        for live, still in (sides, sides[::-1]):
            mine, other = parameters_behind(live).keys(), parameters_behind(still)
            follows = _leaders(still) & mine & trained
            if follows and not other.keys() & mine and all(p.trainable is not True or p.writes for p in other.values()):
                yield Meeting(node, live, still)


def _moving(still: Node) -> bool:
    """True where the follower's weights are written in a loop."""
    return any(w.turns and w.name not in MOVES for p in parameters_behind(still).values() for w in p.writes)


def same_view(run: Rehearsing) -> Iterator[Answer]:
    """Network and follower are given one and the same view: there is nothing to become indifferent to."""
    for event, found in losses_of(run):
        met = list(meetings(run, event))
        if not met or not all(_moving(m.still) for m in met) or _supervised(found):
            continue
        told = False
        for one in met:
            left, right = embeddings(one.live), embeddings(one.still)
            if len(left) != 1 or len(right) != 1:
                continue
            if any(n.op in LOUD for s in (left[0], right[0]) for n in ancestors(s)):
                break  # each pass through a dropout is a view of its own
            mine, other = data_inputs(left[0]), data_inputs(right[0])
            alike = len(mine) == len(other) == 1 and (mine[0] is other[0] or canon(mine[0]) == canon(other[0]))
            if not alike:
                break
            told = True
        else:
            if not told:
                continue
            text = "network and follower are given the same view: the loss compares what they make of one tensor"
            place = _handed(run, met[0], event) or met[0].node.place
            if place is not None:
                yield Answer(place, text, tuple(p for p in (met[0].node.place,) if p is not None and p is not place))
                return


def _handed(run: Rehearsing, met: Meeting, event: Event) -> Place | None:
    """The call that hands one tensor over twice, where it stands outside of the function that compares."""
    layers = [n for n in ancestors(met.live, through=lambda n: n.op != "param") if n.stack]
    scope = event.place[1] if event.place is not None else None
    for layer in layers[:1]:
        for place in layer.stack:
            args = getattr(place[0], "args", [])
            names = [getattr(a, "id", None) for a in args]
            if place[1] is scope and len(names) == 2 and names[0] is not None and names[0] == names[1]:
                return place
    return None


def _supervised(found: list[Term]) -> bool:
    """True where a term has nothing to do with a follower: labels are learned as well, or the data themselves."""
    if any(t.node.op in ("cross_entropy", "nll_loss") and not _queue(t.node) for t in found):
        return True
    pairs = [pair for t in found if (pair := squared_error(t.node)) is not None]
    return any(not parameters_behind(side) for pair in pairs for side in pair)


def _queue(node: Node) -> bool:
    """True for the choice of the positive among negatives: the right class has the same number for all."""
    target = node.inputs[1] if len(node.inputs) > 1 else None
    return isinstance(target, Node) and target.op in ("zeros", "zeros_like", "new_zeros")


def itself(run: Rehearsing) -> Iterator[Answer]:
    """An embedding is compared with itself, cut from the graph: as similar as can be from the start."""
    for event in backwards(run):
        for node in ancestors(event.subject, through=lambda n: n.grad):
            sides = _compared(node) if node.op != "param" else None
            if sides is None or sides[0].grad == sides[1].grad or node.place is None:
                continue
            live, still = sides if sides[0].grad else sides[::-1]
            left, right = embeddings(live), embeddings(still)
            if len(left) == len(right) == 1 and left[0] is right[0] and left[0].grad and left[0].op != "param":
                cut = next((n for n in ancestors(still) if n.op in ("detach", "detach_", "data")), None)
                if cut is not None and cut.place is not None:
                    text = "both sides of this comparison are one embedding: it is as close to itself as can be"
                    yield Answer(cut.place, text, (node.place,))
                    return


def pushed_apart(run: Rehearsing) -> Iterator[Answer]:
    """All that the loss does is to make network and follower answer differently to views of the same sample."""
    for event, found in losses_of(run):
        met = {id(m.node) for m in meetings(run, event)}
        kept = [t for t in found if t.node.grad]
        wrong = [t for t in kept if id(t.node) in met and t.node.op in ("cosine_similarity", "sum") and t.sign > 0]
        if kept and len(wrong) == len(kept) and not any(t.factors for t in kept) and wrong[0].node.place is not None:
            text = "the similarity of the two views is minimised here: it has to be taken off the loss"
            yield Answer(wrong[0].node.place, text, (event.place,) if event.place is not None else ())
            return


def both_stopped(run: Rehearsing) -> Iterator[Answer]:
    """A comparison of which neither side has a gradient: this half of the loss teaches nothing."""
    for event in backwards(run):
        for met in meetings(run, event):
            if met.node.grad or met.live.grad or met.node.place is None:
                continue
            cut = next((n for n in ancestors(met.live, through=_shaped) if n.op in ("detach", "detach_", "data")), None)
            if cut is not None and cut.place is not None:
                text = "the side that is to learn is cut from the graph here, and the other side has no gradient either"
                yield Answer(cut.place, text, (event.place,) if event.place is not None else ())
                return


def follower_stays(run: Rehearsing) -> Iterator[Answer]:
    """The program has what moves the follower after its leader, and it has no effect or is never called."""
    for event in backwards(run):
        for met in meetings(run, event):
            if _moving(met.still) or not event.turns:
                continue
            mine, leaders = parameters_behind(met.still), _leaders(met.still)
            for node in run.nodes:
                mixes = node.op in ("lerp", "add", "mul") and node.turns and not node.options.get("inplace")
                if not mixes or node.place is None:
                    continue
                both = [p for i in node.inputs for p in parts(i) if p.op == "param"]
                if any(id(p) in mine for p in both) and any(id(p) in leaders for p in both):
                    text = "this computes a mixture of follower and network, and leaves both as they were"
                    yield Answer(node.place, text, (met.node.place,) if met.node.place is not None else ())
                    return
            place = _ready(run, met, event)
            if place is not None:
                text = "nothing calls what moves the follower after the network: it keeps its first weights"
                yield Answer(place, text, (met.node.place,) if met.node.place is not None else ())
                return


def _ready(run: Rehearsing, met: Meeting, event: Event) -> Place | None:
    """After the last step of the turn, where a method stands ready that updates copies and nothing runs."""
    params = set(parameters_behind(met.still))
    last = [s for s in steps(run) if s.turns == event.turns and s.serial > event.serial]
    for holder in run.objects:
        inside = [v for v in holder.attributes.values() if isinstance(v, Obj) and is_module(v)]
        if holder.cls is None or not any(ids(run.parameters(m)[0]) & params for m in inside):
            continue
        methods = [f for c in holder.cls.mro() for f in c.names.values() if isinstance(f, Function)]
        if last and any(updates(f) and id(f.node) not in run.executed for f in methods):
            return last[-1].place
    return None


__all__ = ["both_stopped", "follower_stays", "itself", "pushed_apart", "same_view"]
