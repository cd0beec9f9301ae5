"""Times that a denoiser is told: in training and in the sampler they lie in one interval, and they vary."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Event, Node, Place, Value
from trainwreck.code.rehearsal.graph import OPAQUE, ancestors, parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.denoising import NOISE, Denoiser, denoisers, mixture
from trainwreck.code.rehearsal.questions.levels import Unknown
from trainwreck.code.rehearsal.questions.noising import DRAWN
from trainwreck.code.rehearsal.questions.reverse import told_time
from trainwreck.code.rehearsal.questions.roles import Bounds, bounds, core, sum_in
from trainwreck.code.rehearsal.questions.sums import number_in, work_out
from trainwreck.code.rehearsal.questions.terms import fitted, losses_of

FILLED = frozenset(["full", "full_like", "new_full"])
APART = 3.0
"""Intervals of which one reaches so many times as far as the other are two scales."""


def other_interval(run: Rehearsing) -> Iterator[Answer]:
    """The sampler tells the network times that lie far outside of those which it was trained on."""
    for found in denoisers(run):
        learned = _span(_told(run, found.given))
        if learned is None:
            continue
        for event in _asked(run, found):
            used = _span(_told(run, event))
            if used is None or event.place is None or not max(used.high, learned.high) > 1:
                continue
            if not _counted(_filled(_told(run, event))):
                continue
            high, low = max(used.high, learned.high), min(used.high, learned.high)
            if high > APART * low and low > 0:
                text = f"times up to {used.high:g} are told here, and the network was trained up to {learned.high:g}"
                yield Answer(event.place, text, (found.given.place,) if found.given.place is not None else ())
                return


def always_the_same(run: Rehearsing) -> Iterator[Answer]:
    """In training the noise of one level alone is added, and the sampler passes through many."""
    for found in denoisers(run):
        told = _told(run, found.given)
        mixed = sum_in(found.given.args[0])
        if told is None or _number(told) is None or mixed is None or not isinstance(told, Node) or told.place is None:
            continue
        inside = ancestors(mixed, through=lambda n: n.op not in NOISE and n.op not in ("param", "batch"))
        if any(n.op in DRAWN for n in inside):
            continue
        if any(isinstance(t := _told(run, e), Node) and _number(t) is None and any(n.op == "counter" for n in ancestors(
            t)) for e in _asked(run, found)):  # fmt: skip
            text = "every sample is trained at this one level of noise, and the sampler passes through all of them"
            yield Answer(told.place, text, (found.given.place,) if found.given.place is not None else ())
            return


def not_heard(run: Rehearsing) -> Iterator[Answer]:
    """The network is told the time, and its answer does not depend on it."""
    for found in denoisers(run):
        told = _told(run, found.given)
        drawn = [n for n in ancestors(told, through=lambda n: n.op != "param") if n.op in DRAWN]
        state = {id(p) for a in found.given.args[:1] for p in parts(a)}
        behind = list(ancestors(found.output, through=_outside(state)))
        if not drawn or any(n.op in OPAQUE for n in behind) or found.given.place is None:
            continue
        heard = {id(n) for n in behind if id(n) not in state}
        if isinstance(told, Node) and id(told) not in heard and not {id(d) for d in drawn} & heard:
            text = "the network's answer does not depend on the time that it is told"
            yield Answer(_unread(run, found) or found.given.place, text, (found.given.place,))
            return


def _outside(state: set[int]) -> Callable[[Node], bool]:
    return lambda node: id(node) not in state


def _unread(run: Rehearsing, found: Denoiser) -> Place | None:
    """A function of a network that the time goes into and that reads it nowhere."""
    for walked in run.project.walked.values():
        for scope in walked.scopes:
            node = scope.node
            if not isinstance(node, ast.FunctionDef) or node.name != "forward":
                continue
            read = {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
            if any(a.arg not in read and not a.arg.startswith("_") for a in node.args.args[1:]) and node.body:
                first = node.body[1] if len(node.body) > 1 and isinstance(node.body[0], ast.Expr) else node.body[0]
                return first, scope
    return None


def shared(run: Rehearsing) -> Iterator[Answer]:
    """One draw of noise is added to all samples of the batch, or the sampler starts from nothing."""
    for found in denoisers(run):
        made = mixture(found.given)
        if made is None:
            continue
        data, noise = made
        rows = data.shape.dims[:1] not in ((1,), ()) and not data.shape.open
        if rows and not noise.shape.open and noise.place is not None and (
            noise.shape.dims[:1] == (1,) or len(noise.shape.dims) < len(data.shape.dims)
        ):  # fmt: skip
            yield Answer(noise.place, "all samples of a batch share one noise", (found.given.place or noise.place,))
            return
        told = _sampled_from(run, found)
        if told is not None and told.op in EMPTY and told.place is not None:
            yield Answer(
                told.place,
                "samples start from one and the same point here, not from noise",
                (noise.place or told.place,),
            )
            return


EMPTY = frozenset(["zeros", "zeros_like", "ones", "ones_like"])


def _sampled_from(run: Rehearsing, found: Denoiser) -> Node | None:
    """What a sampler's first state is."""
    for event in _asked(run, found):
        trained = next((e for e in run.tape if e.serial == found.given.serial), found.given)
        at = int(bool(trained.args) and trained.args[0] is not found.given.args[0])
        state = event.args[at] if len(event.args) > at else None
        if event.turns[-1].index == 0 and isinstance(state, Node):
            return state
    return None


def other_kind(run: Rehearsing) -> Iterator[Answer]:
    """In training the noise is uniform, and the sampler starts from normal noise."""
    for event, found in losses_of(run):
        for term in found:
            pair = fitted(term.node)
            target = core(pair[1]) if pair is not None else []
            if len(target) != 1 or target[0].op not in ("rand", "rand_like") or target[0].turns != event.turns:
                continue
            mixed = [n for n in ancestors(pair[0] if pair else None) if n.op == "add" and any(
                m is target[0] for m in ancestors(n, through=lambda n: n.op in ("add", "mul", "sub")))]  # fmt: skip
            normal = [e for e in run.tape if e.name == "forward" and not e.state.get("grad") and e.turns and any(
                n.op in NOISE for a in e.args[:2] for n in core(a))]  # fmt: skip
            if mixed and normal and target[0].place is not None:
                text = "the network learns to tell uniform noise, and the sampler starts from normal noise"
                yield Answer(target[0].place, text, (event.place,) if event.place is not None else ())
                return


def noise_alone(run: Rehearsing) -> Iterator[Answer]:
    """The target is noise that was drawn for this step, and nothing of it is in what the network is given."""
    for event, found in losses_of(run):
        for term in found:
            pair = fitted(term.node)
            if pair is None or not event.turns or term.node.place is None:
                continue
            output, target = pair
            drawn = core(target)
            if len(drawn) != 1 or drawn[0].op not in NOISE or drawn[0].turns != event.turns:
                continue
            whole = list(ancestors(output))
            behind = {id(n) for n in whole}
            if any(n.op in OPAQUE for n in whole):
                continue
            made = [e for e in run.tape if e.name == "forward" and any(r is c for r in core(e.result) for c in core(
                output))]  # fmt: skip
            given = min(made, key=lambda e: len(e.stack)) if made else None
            if id(drawn[0]) in behind or given is None or given.place is None or not term.sure:
                continue
            if any(n.op in NOISE and n.turns == event.turns for a in given.args for n in ancestors(a)):
                continue  # another noise: told by its own question
            like = drawn[0].inputs[0] if drawn[0].op.endswith("_like") and drawn[0].inputs else None
            if not any(c is d for a in given.args[:2] for c in core(a) for d in core(like)):
                continue  # no noise that was meant for this input
            text = "the target is noise, and none of it is in what the network is given: there is nothing to tell it by"
            yield Answer(given.place, text, (term.node.place,))
            return


def _asked(run: Rehearsing, found: Denoiser) -> Iterator[Event]:
    """The calls of the network (or a copy) in a sampler."""
    for event in run.tape:
        mine = event.subject is found.module or getattr(event.subject, "copy_of", None) is found.module
        if event.name == "forward" and mine and event.turns and not event.state.get("grad") and event.args:
            yield event


def _told(run: Rehearsing, event: Event) -> Value:
    trained = next((e for e in run.tape if e.serial == event.serial), event)
    noisy = [isinstance(a, Node) and sum_in(a) is not None for a in trained.args[:2]]
    return told_time(trained, noisy == [False, True])


def _filled(value: Value) -> Value:
    """The number that a tensor is filled with."""
    if isinstance(value, Node) and value.op in FILLED and len(value.inputs) > 1:
        return _filled(value.inputs[1])
    if isinstance(value, Node) and value.op in ("expand", "repeat", "tensor", "to", "float", "long") and value.inputs:
        return _filled(value.inputs[0])
    return value


def _number(value: Value) -> float | None:
    try:
        return number_in(work_out(value, {}))
    except Unknown:
        return None


def _counted(value: Value, depth: int = 0) -> bool:
    """True for a count that is at most scaled and shifted by numbers: its ends are known exactly."""
    if not isinstance(value, Node) or depth > 8:
        return False
    if value.op in ("add", "sub", "mul", "div", "neg", "float", "int"):
        inner = [i for i in value.inputs if isinstance(i, Node)]
        return len(inner) == 1 and _counted(inner[0], depth + 1)
    return value.op == "counter"


def _span(value: Value) -> Bounds | None:
    if value is None or (isinstance(value, Node) and any(n.op in ("param", "batch") for n in ancestors(value))):
        return None
    found = bounds(_filled(value))
    return found if math.isfinite(found.low) and math.isfinite(found.high) and found.low < found.high else None


__all__ = ["always_the_same", "noise_alone", "not_heard", "other_interval", "other_kind", "shared"]
