"""Noise that is drawn evenly from 0 to 1 on one side of a diffusion model and normally on the other."""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Event, Node, Value, is_module
from trainwreck.code.rehearsal.graph import ancestors, parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.denoising import denoisers, mixed_in
from trainwreck.code.rehearsal.questions.drawn_noise import NOISE
from trainwreck.code.rehearsal.questions.roles import STRUCTURE, core
from trainwreck.code.rehearsal.questions.terms import fitted, losses_of
from trainwreck.code.rehearsal.questions.walking import walks

EVEN = frozenset(["rand", "rand_like", "random"])


def even_noise(run: Rehearsing) -> Iterator[Answer]:
    """The noise that is added in training and that is to be told is drawn evenly; the sampler begins with a normal
    draw of the same kind."""
    forwards = [e for e in run.tape if e.name == "forward" and is_module(e.subject) and e.args]
    starts = [e for e in forwards if not e.state.get("grad") and e.turns and _normal(e)]
    pairs = [fitted(t.node) for _, found in losses_of(run) for t in found] if starts else []
    for output, target in (p for p in pairs if p is not None):
        made = {id(n) for n in core(output)}
        for noise in ancestors(target, through=_told):
            if noise.op not in EVEN or noise.place is None or not noise.turns or not _as_wide(noise, output):
                continue  # a time is drawn evenly too
            given = [e for e in forwards if _makes(e, made) and mixed_in(e.args[0], noise)]
            if any(n.op in NOISE and n.turns for e in given for n in ancestors(e.args[0])):
                continue  # that is the noise, and these are data
            later = [s for s in starts for g in given if s.subject is g.subject or _copy(s, g)]
            if later:
                text = (
                    "the noise that is added and told is drawn evenly from 0 to 1; the sampler starts at a normal draw"
                )
                yield Answer(noise.place, text, tuple(e.place for e in later[:1] if e.place is not None))
                return


def _as_wide(noise: Node, output: Node) -> bool:
    one, other = noise.shape, output.shape
    return not one.open and len(one.dims) > 1 and one.dims[-1:] == other.dims[-1:] and one.dims[-1] != 1


def _makes(event: Event, made: set[int]) -> bool:
    return any(id(n) in made for p in parts(event.result) for n in (p, *core(p)))


def _told(node: Node) -> bool:
    """What a target makes of noise by scaling it and taking data off."""
    return node.op in ("mul", "sub", "neg") or (node.op in STRUCTURE and node.op not in ("getitem", "index_select"))


def _copy(one: Event, other: Event) -> bool:
    return getattr(one.subject, "copy_of", None) is other.subject


def _normal(event: Event) -> bool:
    return any(n.op in NOISE for n in _state(event.args[0]))


def _state(value: Value) -> list[Node]:
    return [n for p in parts(value) for n in core(p)]


def even_start(run: Rehearsing) -> Iterator[Answer]:
    """The network learned to take normal noise away, and the sampler starts at numbers drawn evenly from 0 to 1."""
    for found in denoisers(run):
        for events in walks(run, found):
            first = events[0]
            start = next((n for n in _state(first.args[0]) if n.op in EVEN), None) if first.args else None
            if start is not None and start.place is not None and not any(n.op in NOISE for n in _state(first.args[0])):
                text = "the sampler starts at numbers drawn evenly from 0 to 1; the training ends at normal noise"
                yield Answer(start.place, text, tuple(n.place for n in found.noises[:1] if n.place is not None))
                return
