"""Columns that the training transforms by a function, and one of the evaluations does not."""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Event, Node, Obj, Place
from trainwreck.code.rehearsal.graph import ancestors, near
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.evaluation import inputs_of
from trainwreck.code.rehearsal.questions.modes import inside_another
from trainwreck.code.rehearsal.questions.paths import RANDOM, Path, statistic

FUNCTIONS = frozenset("log log1p log2 log10 sqrt exp expm1 tanh sigmoid arcsinh square cbrt".split())
"""What reshapes the distribution of a column for good; noise and flips are for the training alone."""

WRITTEN = 6
"""Values that are looked at behind what is written into a column."""


def function_left_out(run: Rehearsing) -> Iterator[Answer]:
    """``x[:, 3] = log(x[:, 3])`` on the way of the training's and of other evaluated rows, and not on this one's.

    Compared are rows that the same line of the program made and one network is given; a part of a column goes another
    way than the rest, so that all ways of one array count together. What a network hands to its layers is no input."""
    train, held = inputs_of(run)
    inner: dict[int, bool] = {}
    groups: dict[tuple[int, int], list[tuple[Event, Path]]] = {}
    for event, path in held:
        if id(event) not in inner:
            inner[id(event)] = inside_another(run, event)
        if not inner[id(event)]:
            groups.setdefault((_network(event), _source(event, path)), []).append((event, path))
    for (network, _), pairs in groups.items():
        event, mine = pairs[0][0], [p for _, p in pairs]
        roots = {_made(p) for p in mine}
        taught = [p for e, p in train if _made(p) in roots and _network(e) == network]
        alike = [v for (n, _), v in groups.items() if n == network and v is not pairs]
        others = [p for v in alike for _, p in v if _made(p) in roots]
        if not taught or not others:
            continue
        here = {key for e in {id(e): e for e, _ in pairs}.values() for key in _behind(e)}
        for key, node in _applied(taught).items():
            if key in here or key not in _applied(others) or not _settled(node):
                continue
            beside = [v for v in alike if key in _applied([p for _, p in v])]
            place = _own(mine, [*taught, *(p for v in beside for _, p in v)])
            if place is not None:
                text = f"these inputs go without the {node.op} that the training's and others have"
                proof = tuple(p for p in (node.place, event.place) if p is not None)
                yield Answer(place, text, proof)
                break


def _network(event: Event) -> int:
    """The same for a network and its copies (averaged weights)."""
    at = event.subject
    while isinstance(at, Obj) and (inner := at.copy_of or at.attributes.get("module")) is not None:
        at = inner
    return id(at)


def _source(event: Event, path: Path) -> int:
    """The loader that a way ends in, else where the network is called."""
    owner = next((n.owner for n in path.nodes if n.op == "batch"), None)
    return id(owner) if owner is not None else id(event.place[0]) if event.place is not None else 0


def _made(path: Path) -> int:
    return id(path.root.place[0]) if path.root.place is not None else id(path.root)


def _applied(found: list[Path]) -> dict[int, Node]:
    """The functions on these ways, also of what was put into a column on the way."""
    applied = (n for p in found for at in p.nodes for n in (at, *_put(at)))
    return {id(n.place[0]): n for n in applied if n.op in FUNCTIONS and n.place is not None}


def _behind(event: Event) -> set[int]:
    """Places of all that the input was computed from, but its statistics."""
    given = (*event.args, *event.options.values())
    return {id(n.place[0]) for n in ancestors(given, through=lambda n: not statistic(n)) if n.place is not None}


def _put(node: Node) -> list[Node]:
    return near(node.inputs[1], WRITTEN) if node.op == "setitem" and len(node.inputs) > 1 else []


def _settled(node: Node) -> bool:
    """True for what is always done, and not at random places."""
    return not node.maybe and not any(n.op in RANDOM for n in near(node, 2))


def _own(mine: list[Path], others: list[Path]) -> Place | None:
    """The first call on these ways that no other way leads through, but those that make the arrays."""
    known = {id(p[0]) for path in others for n in path.nodes for p in (*n.stack, n.place) if p is not None}
    makes = {id(p[0]) for path in mine for p in path.root.stack}
    for path in mine:
        for node in path.nodes:
            for place in (*node.stack, node.place):
                if place is not None and id(place[0]) not in known | makes and path.root.place is not place:
                    return place
    return None
