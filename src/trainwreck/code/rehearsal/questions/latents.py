"""Is a network sampled from the same noise that it was trained on?"""

from __future__ import annotations

import math
from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Event, Node, Obj, Place, Value, is_module
from trainwreck.code.rehearsal.graph import parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.paths import feeding
from trainwreck.code.rehearsal.questions.roles import STRUCTURE
from trainwreck.code.rehearsal.questions.terms import number_of
from trainwreck.core.row import Row

NORMAL = frozenset(["randn", "randn_like", "standard_normal", "normal"])
UNIFORM = frozenset(["rand", "rand_like", "random", "uniform"])
WIDER = 1.25
"""A spread at sampling beyond this times that of training is told; a smaller one is the truncation trick."""


class Noise(Row):
    """Random numbers of one kind (``normal`` or ``uniform``), their mean and standard deviation, and the draw."""

    kind: str
    mean: float
    spread: float
    draw: Node


def other_latents(run: Rehearsing) -> Iterator[Answer]:
    """A network that is trained on one noise and sampled from another: uniform and normal, another mean, wider."""
    used = feeding(run)
    taught: dict[tuple[int, object], list[Noise]] = {}
    asked: list[tuple[tuple[int, object], Noise, Event]] = []
    for event in run.tape:
        if event.name != "forward" or not isinstance(event.subject, Obj) or not is_module(event.subject):
            continue
        training = any(id(n) in used for n in parts(event.result))
        owner = event.subject if training or event.subject.copy_of is None else event.subject.copy_of
        for key, value in (*enumerate(event.args), *event.options.items()):
            noise = noise_of(value)
            if noise is None:
                continue
            if training:
                taught.setdefault((id(owner), key), []).append(noise)
            else:
                asked.append(((id(owner), key), noise, event))
    told: set[int] = set()
    for where, noise, event in asked:
        known = taught.get(where, [])
        if not known or any(_alike(k, noise) for k in known):
            continue
        mine, its = _place(noise, event), _place(known[-1], None)
        plain = noise.kind == "normal" and (noise.mean, noise.spread) == (0.0, 1.0)
        place, other = (its, mine) if plain else (mine, its)
        if place is None or id(place[0]) in told:
            continue
        told.add(id(place[0]))
        text = (
            f"the network is trained on {_words(known[-1])} noise and sampled from {_words(noise)} noise: "
            "most of what it is asked lies where it never learned"
        )
        yield Answer(place, text, (other,) if other is not None else ())


def noise_of(value: Value, depth: int = 0) -> Noise | None:
    """What noise a value is: drawn anew, and at most scaled, shifted and reshaped."""
    if not isinstance(value, Node) or depth > 8:
        return None
    inputs = value.inputs
    if value.op in NORMAL | UNIFORM:
        return _drawn(value)
    if value.op in ("mul", "div", "add", "sub") and len(inputs) >= 2:
        left = noise_of(inputs[0], depth + 1)
        number = number_of(inputs[1]) if left is not None else number_of(inputs[0])
        found = left or noise_of(inputs[1], depth + 1)
        if found is None or number is None or (left is None and value.op == "div"):
            return None
        if value.op in ("add", "sub"):
            mean = found.mean + number if value.op == "add" else found.mean - number if left else number - found.mean
            return Noise(found.kind, mean, found.spread, found.draw)
        factor = number if value.op == "mul" else 1 / number if number else math.nan
        return Noise(found.kind, found.mean * factor, found.spread * abs(factor), found.draw)
    return noise_of(inputs[0], depth + 1) if value.op in STRUCTURE - {"getitem", "element"} and inputs else None


def _drawn(node: Node) -> Noise | None:
    if node.op not in ("normal", "uniform"):
        uniform = node.op in UNIFORM
        return Noise("uniform", 0.5, math.sqrt(1 / 12), node) if uniform else Noise("normal", 0.0, 1.0, node)
    names = (("mean", "loc"), ("std", "scale")) if node.op == "normal" else (("low", "from"), ("high", "to"))
    drawn_into = "inplace" in node.options or not node.full.startswith(("torch.", "numpy."))
    rest = node.inputs[1:] if drawn_into and node.inputs and not number_of(node.inputs[0]) else node.inputs
    found: list[float] = []
    for place, (several, default) in enumerate(zip(names, (0.0, 1.0), strict=True)):
        named = next((node.options[n] for n in several if n in node.options), None)
        value = named if named is not None else rest[place] if place < len(rest) else default
        number = number_of(value)
        if number is None:
            return None
        found.append(number)
    if node.op == "normal":
        return Noise("normal", found[0], found[1], node)
    return Noise("uniform", (found[0] + found[1]) / 2, abs(found[1] - found[0]) / math.sqrt(12), node)


def _alike(taught: Noise, asked: Noise) -> bool:
    near = abs(taught.mean - asked.mean) <= 0.25 * max(taught.spread, 1e-9)
    return taught.kind == asked.kind and near and asked.spread <= WIDER * taught.spread


def _place(noise: Noise, event: Event | None) -> Place | None:
    return noise.draw.place or (event.place if event is not None else None)


def _words(noise: Noise) -> str:
    return f"{noise.kind} (mean {noise.mean:.2g}, deviation {noise.spread:.2g})"
