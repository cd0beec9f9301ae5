"""Noise that a generator is given in training: is it fresh for each sample, and for each step?"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.pattern import pattern
from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Event, Function, Node, Obj
from trainwreck.code.rehearsal.graph import ancestors, near, parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.adversarial import NOISE, against, games
from trainwreck.code.rehearsal.questions.paths import feeding
from trainwreck.code.rehearsal.questions.roles import RAW, STRUCTURE, core, trained

SPREADS = frozenset(["expand", "repeat", "expand_as", "tile", "broadcast_to", "repeat_interleave"])
PICKS = frozenset(["getitem", "element", "batch", "index_select", "gather", "permute_rows", "setitem", "add", "lerp"])


def shared_noise(run: Rehearsing) -> Iterator[Answer]:
    """One noise vector for all samples of a batch, or the same noise at every step."""
    told: set[int] = set()
    for game in games(run):
        for side in game.sides:
            for node in ancestors(side.value) if against(run, side.maker, side.judge) else ():
                found = _noise(run, game.event, node)
                if found is not None and found.place is not None and id(found.place[0]) not in told:
                    told.add(id(found.place[0]))
                    again = not found.shape.open and found.op in NOISE and not _shares(found, game.event)
                    text = "the same noise is used at every step" if again else "all samples of a batch share one noise"
                    yield Answer(found.place, text, (game.event.place,) if game.event.place is not None else ())
                    return


LATENT = pattern(r"^(z|zs|z\d|noise|latents?|eps|seed_vec)$", re.IGNORECASE)


def no_noise(run: Rehearsing) -> Iterator[Answer]:
    """What a generator is given as its noise is a constant: all that it can make is one and the same thing."""
    told: set[int] = set()
    for event in run.tape:
        if event.name != "forward" or not isinstance(event.subject, Obj) or event.subject.cls is None:
            continue
        names = [
            a.arg for f in [event.subject.cls.find("forward")] if isinstance(f, Function) for a in f.node.args.args[1:]
        ]
        for name, value in zip(names, event.args, strict=False):
            fixed = isinstance(value, Node) and value.op in ("zeros", "ones", "zeros_like", "ones_like")
            if not fixed or not LATENT.search(name) or value.place is None or id(value.place[0]) in told:
                continue
            used = any(id(p) in feeding(run) for p in parts(event.result))
            rows = value.shape.open or value.shape.dims[:1] not in ((1,), ())
            if used and rows and event.turns:
                told.add(id(value.place[0]))
                yield Answer(value.place, "the noise is a constant here: every sample is made from the same vector")
                return


def _shares(node: Node, event: Event) -> bool:
    loops = {id(t.node) for t in event.turns}
    return not loops or any(id(t.node) in loops for t in node.turns) or _yielded(node)


def _yielded(node: Node) -> bool:
    """True for what a generator makes in its loop: as fresh as what it yields."""
    return any(isinstance(inner, ast.Yield | ast.YieldFrom) for t in node.turns for inner in ast.walk(t.node))


def _noise(run: Rehearsing, event: Event, layer: Node) -> Node | None:
    """The noise that goes directly into a layer of the maker and is not fresh for each sample and step."""
    if not any(isinstance(i, Node) and i.op == "param" for i in layer.inputs) or not _shares(layer, event):
        return None
    if event.turns and not any(t is event.turns[-1] for t in layer.turns):
        return None  # an earlier turn, which gathered what this one learns from: a state may begin with noise
    for item in layer.inputs:
        at, spread = item, False
        for _ in range(12):
            if not isinstance(at, Node):
                break
            if at.op in NOISE:
                alone = spread and (at.shape.open is False and (not at.shape.dims or at.shape.dims[0] == 1 or
                                                               len(at.shape.dims) == 1))  # fmt: skip
                if alone or not _shares(at, event) or _reseeded(at, event):
                    return at
                break
            spread = spread or at.op in SPREADS
            if (at.op in STRUCTURE and at.op not in PICKS and at.inputs) or at.op == "buffer" or _first_rows(at):
                if not at.inputs:
                    break
                at = at.inputs[0]
            elif at.op in ("cat", "concat") and at.inputs:
                parts_ = [p for p in parts(at.inputs[0]) if p.op in NOISE | SPREADS]
                at = parts_[0] if parts_ else None
            else:
                break
    return None


def one_draw_for_all(run: Rehearsing) -> Iterator[Answer]:
    """``mean + spread * noise`` with one draw for all samples of the batch: mean and spread are said of each sample."""
    for node in trained(run):
        if node.op != "add" or not node.grad or node.place is None:
            continue
        for scaled in (i for i in node.inputs[:2] if isinstance(i, Node) and i.op == "mul" and i.grad):
            noise = next((i for i in scaled.inputs if isinstance(i, Node) and i.op in NOISE and not i.grad), None)
            spread = next((i for i in scaled.inputs if isinstance(i, Node) and i.grad), None)
            if noise is None or spread is None or noise.shape.open or not _of_samples(spread):
                continue
            known = len(spread.shape.dims) if not spread.shape.open else 2
            alone = len(noise.shape.dims) < known or noise.shape.dims[:1] == (1,)
            if alone and noise.shape.dims and noise.place is not None:
                text = "one draw of noise serves all samples of the batch: their mean and spread are their own"
                yield Answer(noise.place, text, (node.place,))
                return


def _of_samples(spread: Node) -> bool:
    """True for what a layer says of each sample of a batch, not for weights."""
    rows = spread.shape.dims[:1]
    plain = spread.shape.open or (len(spread.shape.dims) > 1 and rows != (1,))
    return plain and any(n.op in RAW for n in near(spread, 12))


def _first_rows(node: Node) -> bool:
    """True for the same rows again and again: ``z[:n]``."""
    index = node.inputs[1] if node.op == "getitem" and len(node.inputs) > 1 else None
    first = index[0] if isinstance(index, tuple) and index else index
    return isinstance(first, Obj) and first.kind == "builtins.slice" and first.args[0] in (None, 0)


def _reseeded(noise: Node, event: Event) -> bool:
    """True where the generator is set to the same seed again in every turn."""
    given = noise.options.get("generator")
    if isinstance(given, Node) and given.op == "manual_seed" and isinstance(given.inputs[-1], int):
        return bool(event.turns) and any(t in given.turns for t in event.turns)
    return False


def other_condition(run: Rehearsing) -> Iterator[Answer]:
    """What was made for one condition is judged with another, which belongs to the real samples."""
    known: dict[int, Event] = {}
    for event in run.tape:
        if event.name == "forward" and isinstance(event.subject, Obj) and len(event.args) > 1:
            for part in parts(event.result):
                known[id(part)] = event
    for event in run.tape:
        plain = event.name == "forward" and isinstance(event.subject, Obj) and len(event.args) == 2
        sample, condition = event.args[:2] if plain else (None, None)
        maker = next((known[id(c)] for c in core(sample) if id(c) in known), None)
        if maker is None or maker.subject is event.subject or not isinstance(condition, Node) or event.place is None:
            continue
        given = [a for a in maker.args if isinstance(a, Node)]
        if any(a is condition for a in given) or len(given) < 2:
            continue
        drawn = [a for a in given if any(n.op in RANDOM_LABELS for n in core(a))]
        beside = [e for e in run.tape if e.name == "forward" and e.subject is event.subject and e.turns == event.turns
                  and len(e.args) == 2 and e.args[1] is condition and e is not event]  # fmt: skip
        real = [
            e
            for e in beside
            if not any(id(c) in known and known[id(c)].subject is maker.subject for c in core(e.args[0]))
        ]
        if drawn and real:
            text = "these samples were made for other conditions than the ones that they are judged with"
            yield Answer(event.place, text, tuple(p for p in (maker.place,) if p is not None))
            return


RANDOM_LABELS = frozenset(["randint", "integers", "choice", "multinomial", "randperm"])
