"""Functions that divide the data, worked out for a few records of ours: has a record come into two parts?"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.calls import written
from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.same_rows import part_of
from trainwreck.code.scopes import FunctionNode, Scope

FIRST = 1000
"""Numbers from here on are those of our records; those of users and moments lie below."""
USERS, EACH = 4, 8
MOST_PARAMETERS = 5
WINDOWED = re.compile(r"window|look_?back|history|horizon|forecast|context|seq_len|\blags?\b|overlap|episode", re.I)
"""A part may begin with what only is looked back at, or be drawn with what it has in common on purpose."""
SHARE = re.compile(r"frac|ratio|share|size|split|percent|portion|val|test|train|valid")
LUCK = re.compile(r"^(rng|gen|generator|random|rand|prng|luck|rs|random_state)$")
NO_DATA = re.compile(
    r"^(n|n_.*|num.*|count|size|seed|args|cfg|config|conf|path|root|folder|file|device|rng|gen|opt.*|self)$"
)
"""Names of first arguments that are no data: what makes data is told how many, or from where."""
COUNTS = re.compile(r"^(k|n_?folds|folds|n_?splits|splits)$")


def record_in_two_parts(run: Rehearsing) -> Iterator[Answer]:
    """``train, valid, test = divide(events)`` gives one record to two of the parts."""
    told: set[int] = set()
    for scope in run.project.scopes:
        for node in run.project.within(scope, ast.Assign):
            assert isinstance(node, ast.Assign)
            names, call = node.targets[0], node.value
            if not isinstance(names, ast.Tuple) or not isinstance(call, ast.Call) or len(node.targets) > 1:
                continue
            parts = [part_of(n.id) if isinstance(n, ast.Name) else "" for n in names.elts]
            function = run.project.resolve(call.func, scope)
            if len({p for p in parts if p}) < 2 or function is None or id(function) in told:
                continue
            told.add(id(function))
            both = _common(run, function, parts) if not WINDOWED.search(_text(function)) else None
            if both is not None:
                place = _returned(function, both)
                text = f"records that are given to {both[0]} are given to {both[1]} as well"
                yield Answer(place, text, ((node, scope),))
                return


def _text(function: Scope) -> str:
    return written(function.node)


def _common(run: Rehearsing, function: Scope, parts: list[str]) -> tuple[str, str] | None:
    """Two parts that have a record in common, for the first of our kinds of records that the function can take."""
    if not isinstance(function.node, FunctionNode) or len(function.positional) > MOST_PARAMETERS or function.owner:
        return None
    for found in _worked(run, function):
        if not isinstance(found, tuple | list) or len(found) != len(parts):
            continue
        held = [(_records(f), p) for f, p in zip(found, parts, strict=True) if p]
        if any(not records for records, _ in held):
            continue
        for at, (records, part) in enumerate(held):
            for others, other in held[at + 1 :]:
                if records & others and part != other:
                    return part, other
        return None
    return None


def _worked(run: Rehearsing, function: Scope) -> Iterator[object]:
    """What the function gives for records as triples, as pairs, as plain numbers and as rows of an array."""
    assert isinstance(function.node, FunctionNode)
    needed = len(function.positional) - len(function.node.args.defaults)
    if needed < 1 or NO_DATA.search(function.positional[0].lower()):
        return
    import numpy as np

    from trainwreck.code.rehearsal.trial.steps import Steps, Unknown

    rest = [_argument(name) for name in function.positional[1:needed]]
    if None in rest:
        return
    count = USERS * EACH
    order = [int(n) for n in np.random.default_rng(3).permutation(count)]
    users, moments = [n % USERS for n in order], [n / count for n in np.random.default_rng(4).permutation(count)]
    numbers = [FIRST + n for n in order]
    triples = list(zip(users, numbers, moments, strict=True))
    kinds = (triples, [(u, n) for u, n, _ in triples], numbers, np.asarray(numbers), np.asarray(numbers)[:, None])
    for records in kinds:
        try:
            yield Steps(run.project).call(function, [records, *rest])
        except Unknown:
            continue


def _argument(name: str) -> object:
    from trainwreck.code.rehearsal.trial.things import Luck

    word = name.lower()
    if LUCK.search(word):
        return Luck()
    if "seed" in word:
        return 0
    return 3 if COUNTS.search(word) else 0.2 if SHARE.search(word) else None


def _records(value: object, depth: int = 0) -> set[int]:
    """The numbers of our records that a part holds."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, bool) or depth > 6:
        return set()
    if isinstance(value, int | float):
        return {int(value)} if value >= FIRST else set()
    if isinstance(value, dict):
        return {n for v in value.values() for n in _records(v, depth + 1)}
    if isinstance(value, list | tuple | set):
        return {n for v in value for n in _records(v, depth + 1)}
    return set()


def _returned(function: Scope, both: tuple[str, str]) -> tuple[ast.AST, Scope]:
    """Where the first of the two parts is put together."""
    for node in function.nodes:
        name = node.targets[0] if isinstance(node, ast.Assign) else None
        if isinstance(name, ast.Name) and part_of(name.id) == both[0]:
            return node, function
    returned = [n for n in function.nodes if isinstance(n, ast.Return)]
    return (returned[-1] if returned else function.node), function


__all__ = ["record_in_two_parts"]
