"""Noise that a generator is given in training: is it fresh for each sample, and for each step?"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Event, Node
from trainwreck.code.rehearsal.graph import ancestors, parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.adversarial import NOISE, against, games
from trainwreck.code.rehearsal.questions.roles import STRUCTURE

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
            if at.op in STRUCTURE and at.op not in PICKS and at.inputs:
                at = at.inputs[0]
            elif at.op in ("cat", "concat") and at.inputs:
                parts_ = [p for p in parts(at.inputs[0]) if p.op in NOISE | SPREADS]
                at = parts_[0] if parts_ else None
            else:
                break
    return None


def _reseeded(noise: Node, event: Event) -> bool:
    """True where the generator is set to the same seed again in every turn."""
    given = noise.options.get("generator")
    if isinstance(given, Node) and given.op == "manual_seed" and isinstance(given.inputs[-1], int):
        return bool(event.turns) and any(t in given.turns for t in event.turns)
    return False
