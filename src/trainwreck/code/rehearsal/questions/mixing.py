"""Mixed samples: whether the labels are mixed like the inputs. And states that carry the graph of earlier steps."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Event, Node, Place, Value
from trainwreck.code.rehearsal.graph import ancestors, near, parts
from trainwreck.code.rehearsal.holding import is_optimizer
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.paths import key_of, meets
from trainwreck.code.rehearsal.questions.roles import STRUCTURE, backwards, core, losses
from trainwreck.code.rehearsal.questions.terms import REDUCED, Term, losses_of


def unmixed_labels(run: Rehearsing) -> Iterator[Answer]:
    """Inputs are mixed with others of the batch, and the labels are not, or with the shares turned round."""
    for event, found in losses_of(run):
        mix = next((m for n in ancestors(event.subject) if (m := _mix(n)) is not None), None)
        if mix is None:
            continue
        node, index, share = mix
        targets = [(t, _target(t)) for t in found]
        labelled = [(t, y) for t, y in targets if y is not None]
        if not labelled or node.place is None:
            continue
        moved = [(t, y) for t, y in labelled if _moved(y, index)]
        if not moved:
            text = "the inputs are mixed with others of the batch, and the labels are those of the first only"
            place: Place = _mixed_at(event, labelled[0][0], index) or node.place
            picked = any(n.op in PICKS and n is not index and n.inputs[-1] is index and n.place is not None
                         and not any(i is n for m in ancestors(node) for i in m.inputs) for n in run.nodes)  # fmt: skip
            if not picked and place[1] is not node.place[1] and node.stack:
                place = node.place  # the function that mixes gives no other labels
            yield Answer(place, text, (node.place,))
            return
        plain = [(t, y) for t, y in labelled if not _moved(y, index)]
        if len(moved) == 1 and len(plain) == 1:
            second = _mixed_at(event, moved[0][0], index)
            if any(_same_share(f, share) for f in moved[0][0].factors) and second is not None:
                yield Answer(second, "the shares of the two labels are turned round", (node.place,))
                return


def unmixed_inputs(run: Rehearsing) -> Iterator[Answer]:
    """The loss is a mixture of two losses by the batch's labels and by the same ones in another order, and what the
    model was given is not mixed with that order."""
    for event, found in losses_of(run):
        labelled = [(t, y) for t in found if t.factors and (y := _target(t)) is not None]
        for moved, labels in labelled:
            picks = (n.inputs[-1] for n in ancestors(labels) if n.op in ("getitem", "index_select"))
            order = next((i for i in picks if isinstance(i, Node) and _permuted(i)), None)
            if order is None:
                continue
            beside = [t for t, y in labelled if t is not moved and not any(n is order for n in ancestors(y))]
            parts_of_one = [t for t in beside if any(_rest_of(a, b) for a in t.factors for b in moved.factors)]
            outputs = [i for t in (moved, *parts_of_one) for i in _scores(t)]
            if len(parts_of_one) != 1 or not outputs or any(n is order for i in outputs for n in ancestors(i)):
                continue
            place = _mixed_at(event, moved, order)
            if place is not None:
                yield Answer(place, "the labels are mixed with others of the batch, and the inputs are not")
                return


def _scores(term: Term) -> list[Node]:
    """What the model says: all that a term hangs in the graph by, without the labels of a loss of the library."""
    inner = [n for n in term.node.inputs if isinstance(n, Node) and n.grad]
    return inner if term.node.op in REDUCED and inner else [term.node]


def _mixed_at(event: Event, term: Term, index: Node) -> Place | None:
    """Where two losses are put together: in the function whose ``backward`` is called, or where it was written."""
    scope = event.place[1] if event.place is not None else None
    for node in (*reversed(term.path), term.node):
        for place in (*node.stack, node.place):
            if place is not None and place[1] is scope:
                return place
    return term.node.place or index.place


def _share(value: Value) -> tuple[int, bool] | None:
    """Of ``lam`` and of ``1 - lam``: what it is, and whether it is the rest."""
    if isinstance(value, Node) and value.op == "sub" and value.inputs[0] == 1 and isinstance(value.inputs[-1], Node):
        return id(value.inputs[-1]), True
    return (id(value), False) if isinstance(value, Node) else None


def _same_share(one: Value, other: Value) -> bool:
    return one is other or (_share(one) is not None and _share(one) == _share(other))


def _rest_of(one: Value, other: Value) -> bool:
    """True for ``lam`` and ``1 - lam``, whichever is which."""
    return any(isinstance(v, Node) and v.op == "sub" and v.inputs[0] == 1 and v.inputs[-1] is w
               for v, w in ((one, other), (other, one)))  # fmt: skip


MIXERS = frozenset(["MixUp", "CutMix"])
"""Transforms of torchvision that give the labels of a batch as shares of the classes."""


def hardened(run: Rehearsing) -> Iterator[Answer]:
    """Labels that were mixed as shares of the classes, of which the loss is given the largest only."""
    for loss in losses(run, "cross_entropy", "nll_loss"):
        target = loss.inputs[1] if len(loss.inputs) > 1 else None
        while isinstance(target, Node) and target.op in STRUCTURE | {"long"} and target.inputs:
            target = target.inputs[0]
        if not isinstance(target, Node) or target.op != "argmax" or target.place is None or not target.inputs:
            continue
        shares = target.inputs[0]
        mixed = isinstance(shares, Node) and (_mix(shares) is not None or _of_mixer(shares))
        if mixed:
            yield Answer(target.place, "these labels were mixed, and only the larger share of each is kept here")
            return


def _of_mixer(node: Node) -> bool:
    made = node.inputs[0] if node.op == "part" and node.inputs else None
    maker = made.owner if isinstance(made, Node) and made.op == "call" and node.inputs[1:] == (1,) else None
    return maker is not None and maker.name in MIXERS


def _mix(node: Node) -> tuple[Node, Node, Value] | None:
    """``a * x + (1 - a) * x[index]``: the sum, the index and the share ``a`` of the first."""
    if node.op != "add" or len(node.inputs) < 2 or node.grad:
        return None
    sides = [i for i in node.inputs[:2] if isinstance(i, Node) and i.op == "mul" and len(i.inputs) > 1]
    if len(sides) != 2:
        return None
    for one, other in (sides, sides[::-1]):
        for number, picked in enumerate(other.inputs[:2]):
            if not isinstance(picked, Node) or picked.op not in PICKS or not picked.inputs:
                continue
            place = next((n for n, i in enumerate(one.inputs[:2]) if i is picked.inputs[0]), None)
            index = picked.inputs[-1] if picked.op in ("getitem", "index_select") else picked
            if place is None or not isinstance(index, Node) or not _permuted(index):
                continue
            a, b = one.inputs[1 - place], other.inputs[1 - number]
            if (isinstance(b, Node) and b.op == "sub" and b.inputs[-1] is a) or (
                isinstance(a, Node) and a.op == "sub" and a.inputs[-1] is b
            ):
                return node, index, a
    return None


def shares_exchanged(run: Rehearsing) -> Iterator[Answer]:
    """``a * x[i] + (1 - a) * x[j]`` beside ``(1 - a) * y[i] + a * y[j]``: each label gets the share of the other."""
    for event in backwards(run):
        for _, inside, outside in meets(event.subject):
            theirs = [(n, b) for v in outside for n in near(v, WALK) if (b := _blend(n)) is not None]
            mine = [(n, b) for v in inside for n in ancestors(v) if (b := _blend(n)) is not None] if theirs else []
            for label, (share, first, second) in theirs:
                for inputs, other in mine:
                    if other == (share, second, first) and first != second and label.place is not None:
                        text = "the shares of the two labels are turned round"
                        yield Answer(label.place, text, (inputs.place,) if inputs.place is not None else ())
                        return


def _blend(node: Node) -> tuple[int, object, object] | None:
    """Of ``a * x[i] + (1 - a) * x[j]``: the share (``id``) and the rows that get it, and those that get the rest."""
    sides = [i for i in node.inputs[:2] if isinstance(i, Node) and i.op == "mul" and len(i.inputs) > 1]
    if node.op != "add" or node.grad or len(sides) != 2:
        return None
    for one, other in (sides, sides[::-1]):
        for share, first in (one.inputs[:2], one.inputs[1::-1]):
            for rest, second in (other.inputs[:2], other.inputs[1::-1]):
                known = isinstance(share, Node) and isinstance(rest, Node) and rest.op == "sub" and rest.inputs[0] == 1
                if known and isinstance(rest, Node) and rest.inputs[-1] is share:
                    return id(share), _rows(first), _rows(second)
    return None


def _rows(value: Value) -> object:
    """By which numbers the rows of a side are picked; None where they stand as they are."""
    for _ in range(8):
        if not isinstance(value, Node) or not value.inputs:
            return None
        if value.op in ("getitem", "index_select") and isinstance(value.inputs[-1], Node):
            return key_of(value.inputs[-1])
        numbers = [isinstance(i, int | float) for i in value.inputs[:2]]
        if value.op in ("add", "mul", "div") and any(numbers) and len(numbers) == 2:  # smoothed labels
            value = value.inputs[numbers.index(False)] if not all(numbers) else None
            continue
        if value.op not in STRUCTURE | {"one_hot", "float", "batch"}:
            return None
        value = value.inputs[0]
    return None


PICKS = frozenset(["getitem", "index_select", "roll", "flip"])
WALK = 200
"""Values that lie between two turns of an inner loop."""


def _permuted(index: Node) -> bool:
    return any(n.op in ("randperm", "permutation", "roll", "flip") for n in ancestors(index))


def _moved(labels: Node, index: Node) -> bool:
    """True for labels that went by the same numbers, or were rolled or turned round as the inputs were."""
    alone = index.op in ("roll", "flip")
    return any(n is index or (alone and n.op == index.op) for n in ancestors(labels))


def _target(term: Term) -> Node | None:
    """The labels of a supervised loss, or those by which the shares of the classes are picked."""
    node = term.node
    for picked in reversed(term.path):
        if picked.op in ("gather", "take_along_dim") and isinstance(picked.inputs[-1], Node):
            return picked.inputs[-1] if not picked.inputs[-1].grad else None
    if node.op in REDUCED and len(node.inputs) > 1 and isinstance(node.inputs[1], Node):
        return node.inputs[1] if node.inputs[1].op != "param" else None
    return None


def carried(run: Rehearsing) -> Iterator[Answer]:
    """A backward goes on into the graph of a turn before, through a state that was kept and not detached."""
    done: list[Event] = []
    for event in run.tape:
        if event.name != "backward" or not event.turns:
            continue
        kept = event.options.get("retain_graph")
        for earlier in done:
            if earlier.place is None or event.place is None or earlier.place[0] is not event.place[0]:
                continue
            if (
                (kept is True and not _moved_between(run, earlier, event))
                or earlier.turns[-1].node is not event.turns[-1].node
                or earlier.turns[-1] is event.turns[-1]
            ):
                continue
            inside = {id(n): n for n in _hung(earlier.subject)}
            old = next((n for n in _hung(event.subject) if id(n) in inside and n.op not in ("param", "buffer")
                        and earlier.turns[-1] in n.turns), None)  # fmt: skip
            place = (_kept_in(run, old) or _begun_anew(old) or _made_at(old, event)) if old is not None else None
            if place is not None:
                text = "this carries the graph of the step before into the next one: it is never detached"
                yield Answer(place, text, (event.place,))
                return
        done.append(event)


def _moved_between(run: Rehearsing, earlier: Event, event: Event) -> bool:
    """True where weights were moved meanwhile: losses of several steps may also be one after another's, on purpose,
    until one step of the optimizer uses them all."""
    return any(e.name == "step" and is_optimizer(e.subject) and earlier.serial < e.serial < event.serial
               for e in run.tape)  # fmt: skip


def _hung(loss: Value) -> Iterator[Node]:
    return (n for n in ancestors(loss, through=lambda n: n.grad and n.op not in ("param", "detach")) if n.grad)


def _kept_in(run: Rehearsing, node: Node) -> Place | None:
    """Where an object of the program keeps the value in an attribute, inside one of its methods."""
    for event in run.tape:
        kept = event.name == "set" and len(event.args) > 1 and bool(event.turns)
        held = [m for n in parts(event.args[1]) for m in (n, *n.inputs)] if kept else []
        if any(m is node for m in held) and event.place is not None and event.place[1].owner is not None:
            return event.place
    return None


def _begun_anew(node: Node) -> Place | None:
    """The statement in a loop of its own that changes a state, where each turn asks for a gradient by the state alone
    (a Langevin step): there it should be cut off, and never is."""
    loop = node.turns[-1].node if node.turns else None
    if node.place is None or loop is None or not any(n is node.place[0] for n in ast.walk(loop)):
        return None
    behind = [n for n in near(node, WALK) if n.turns and n.turns[-1].node is loop]
    asked = any(n.op == "requires_grad_" for n in behind) and any(n.op == "grad" for n in behind)
    again = any(n is not node and n.place is not None and n.place[0] is node.place[0] for n in behind)
    return node.place if asked and again and node.stack else None


def _made_at(node: Node, event: Event) -> Place | None:
    """Where the carried value is made, as seen from the loop."""
    assert event.place is not None
    scope = event.turns[-1].scope
    for place in (*node.stack, node.place):
        if place is not None and place[1] is scope:
            return place
    return node.place


__all__ = ["carried", "core", "parts", "shares_exchanged", "unmixed_inputs", "unmixed_labels"]
