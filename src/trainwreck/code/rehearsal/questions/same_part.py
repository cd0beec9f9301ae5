"""The same part of the data is taken twice, under two names: once to be trained on, once as what is held out."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.facts import HELD, TRAIN
from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import External, Node, Obj, Place, Value
from trainwreck.code.rehearsal.graph import ancestors
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.paths import evaluated, trained
from trainwreck.code.rehearsal.questions.splits import keys, learned_without_targets, sides

LOOKS = frozenset(["transform", "target_transform", "transforms", "download"])
"""Options of a data set that do not decide which samples it holds."""


def same_part(run: Rehearsing) -> Iterator[Answer]:
    """``Subset(augmented, rows)`` is trained on, and ``Subset(plain, rows)`` is what the held out samples are called:
    two data sets of one source, with other transforms, and the same rows of both."""
    taught = list(_subsets(tuple(node for _, node in trained(run))))
    for event, node in evaluated(run):
        for held in _subsets(node):
            place = held.place
            if place is None or any(held is t for t in taught) or not any(_alike(held, t) for t in taught):
                continue
            names = _names(run, place)
            if any(map(HELD.search, names)) and not any(map(TRAIN.search, names)):
                text = "these are the rows that are trained on, and their name speaks of others"
                yield Answer(place, text, (event.place,) if event.place is not None else ())
                return


def same_slice(run: Rehearsing) -> Iterator[Answer]:
    """``tests.append(x[:cut])`` beside ``shards.append(x[:cut])``: one selection is written twice."""
    both = sides(run)
    for event, held in both.held:
        place = held.fixed[-1].place if held.fixed else None
        mine = [p for p in both.train if p.root is held.root and p.fixed and keys(p) == keys(held)]
        if place is None or not mine or not all(keys(held)) or learned_without_targets(run, mine[0]):
            continue
        other = mine[0].fixed[-1].place
        one, two = run.project.statement(*place), run.project.statement(*other) if other is not None else None
        names = _names(run, place)
        if one is not two and any(map(HELD.search, names)) and not any(map(TRAIN.search, names)):
            text = "these are the rows that are trained on, and their name speaks of others"
            yield Answer(place, text, tuple(p for p in (other, event.place) if p is not None))
            return


def _subsets(value: Value) -> Iterator[Obj]:
    """The parts of data sets that loaders behind a value go through."""
    for node in ancestors(value):
        owner = node.owner if node.op in ("batch", "example") else None
        whole = owner.get("dataset", 0) if isinstance(owner, Obj) and node.op == "batch" else owner
        if isinstance(whole, Obj) and whole.name == "Subset":
            yield whole


def _alike(one: Obj, other: Obj) -> bool:
    return _same(one.get("indices", 1), other.get("indices", 1)) and _one_source(
        one.get("dataset", 0), other.get("dataset", 0)
    )


def _same(one: Value, other: Value) -> bool:
    """True for the same rows, or copies of the same list of rows."""
    one, other = _listed(one), _listed(other)
    return one is other and isinstance(one, Node | Obj)


def _listed(value: Value) -> Value:
    while isinstance(value, Node) and value.op in ("list", "tuple", "tolist", "array", "tensor") and value.inputs:
        value = value.inputs[0]
    source = getattr(value, "source", None)
    return _listed(source) if source is not None else value


def _one_source(one: Value, other: Value) -> bool:
    """True for data sets of one class made of the same arguments, but for the transforms."""
    if one is other:
        return True
    if not isinstance(one, Obj) or not isinstance(other, Obj) or (one.kind, one.cls) != (other.kind, other.cls):
        return False
    mine, theirs = ({k: v for k, v in o.options.items() if k not in LOOKS} for o in (one, other))
    given = [*zip(one.args, other.args, strict=False), *((mine.get(k), theirs.get(k)) for k in {*mine, *theirs})]
    return len(one.args) == len(other.args) and all(a is b or _plain(a, b) or _transforms(a, b) for a, b in given)


def _plain(one: Value, other: Value) -> bool:
    return isinstance(one, str | int | float) and type(one) is type(other) and one == other


def _transforms(one: Value, other: Value) -> bool:
    return all(v is None or isinstance(v, External) or "transforms" in getattr(v, "kind", "") for v in (one, other))


def _names(run: Rehearsing, place: Place) -> list[str]:
    """The names that the statement gives, or of the list that it adds to."""
    statement = run.project.statement(*place)
    targets: list[ast.expr] = statement.targets if isinstance(statement, ast.Assign) else []
    added = statement.value if isinstance(statement, ast.Expr) else None
    if (
        isinstance(added, ast.Call)
        and isinstance(added.func, ast.Attribute)
        and added.func.attr in ("append", "extend")
    ):
        targets = [added.func.value]
    named = [n for t in targets for n in ast.walk(t) if isinstance(n, ast.Name | ast.Attribute)]
    return [(n.id if isinstance(n, ast.Name) else n.attr).lower().rstrip("s") for n in named]


__all__ = ["same_part", "same_slice"]
