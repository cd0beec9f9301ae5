"""Negatives that are drawn for training and thrown away where they are held out: what is never a negative is told."""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Obj, Value
from trainwreck.code.rehearsal.graph import ancestors, near, parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.monotone import judged
from trainwreck.code.rehearsal.questions.roles import JOINS, backwards

DRAWS = frozenset(["randint", "integers", "randrange", "choice", "randint_like"])
BEST = frozenset(["topk", "argsort", "sort", "argpartition"])
MEETS = frozenset(["eq", "isin", "and", "in", "intersection", "gather", "in1d"])
MARKS = frozenset(["scatter", "scatter_", "setitem", "index_put", "index_put_", "index_fill", "isin"])
UNITES = JOINS | {"or", "union", "add", "set"}
FEW = 40


def held_out_spared(run: Rehearsing) -> Iterator[Answer]:
    """Of the pairs that are drawn as negatives those are thrown away that the evaluation asks for.

    No training could know them: whatever is never drawn as a negative is a positive to come."""
    held = list(_asked(run))
    tests = list(_tests(run)) if held else []
    if not tests:
        return
    apart = {id(test) for _, test, _ in tests}
    subjects = tuple(e.subject for e in backwards(run))
    feeding = {id(n) for n in ancestors(subjects)}
    known = {id(n) for n in ancestors(subjects, through=lambda n: id(n) not in apart)}
    wanted = {id(n) for n in held if id(n) not in known}
    wholes = {id(p) for n in held if id(n) in wanted for p in parts(n.inputs[0])}
    for drawn, test, container in tests:
        if not any(id(n) in feeding for n in drawn):
            continue
        behind = list(ancestors(container))
        uncut = [n for n in ancestors(container, through=lambda n: not _cut(n)) if id(n) in wholes]
        mine = wanted | {id(n) for n in uncut}
        if test.place is None or not any(id(n) in mine for n in behind):
            continue
        place = next((n.place for n in behind if n.place is not None and _unites(n, mine)), None)
        text = "what is held out for the evaluation is kept out of the negatives of the training: they tell it"
        yield Answer(place or test.place, text, (test.place,))
        return


def _asked(run: Rehearsing) -> Iterator[Node]:
    """The cuts (``liked[:, 25:]``, ``seq[-1]``) that what the best scores choose is held against."""
    for node in run.nodes:
        if node.op not in MEETS or node.grad or len(node.inputs) < 2:
            continue
        for one, other in (node.inputs[:2], node.inputs[1::-1]):
            best = any(n.op in BEST and judged(n) for p in parts(one) for n in near(p, FEW))
            if best and isinstance(other, Node) and not judged(other):
                yield from (n for n in ancestors(other) if _cut(n))


def _cut(node: Node) -> bool:
    index = node.inputs[1] if node.op == "getitem" and len(node.inputs) > 1 else None
    for item in index if isinstance(index, tuple) else (index,):
        if isinstance(item, Obj) and item.kind == "builtins.slice" and item.args[:2] not in ((), (None, None)):
            return True
        if isinstance(item, int) and not isinstance(item, bool) and item < 0:
            return True
    return node.op == "part" and any(n.op in ("split", "chunk", "unbind", "hsplit") for n in parts(node.inputs[:1]))


def _tests(run: Rehearsing) -> Iterator[tuple[list[Node], Node, Value]]:
    """(what was drawn, the test, what it is looked for in): ``q in seen[u]``, ``seen[u, q]`` of a table of marks."""
    loops = {id(n): loop for test, loop in run.memo.get("tested", ()) for n in near(test, 6)}
    again: dict[int, list[Node]] = {}
    for node in run.nodes:
        if node.op in DRAWS and node.turns:
            again.setdefault(id(node.turns[-1].node), []).append(node)
    for node in run.nodes:
        if node.grad or len(node.inputs) < 2:
            continue
        first, second = node.inputs[:2]
        if node.op in ("in", "isin", "in1d"):
            drawn = _drawn(first)
            if drawn and id(node) in loops:  # ``while q in seen: q = draw()``
                drawn = drawn + again.get(id(loops[id(node)]), [])
            if drawn:
                yield drawn, node, second
        elif node.op == "getitem" and isinstance(first, Node) and isinstance(second, tuple):
            drawn = [d for i in second for d in _drawn(i)]
            if drawn and any(n.op in MARKS for n in near(first, FEW // 4)):
                yield drawn, node, first


def _drawn(value: Value) -> list[Node]:
    return [n for p in parts(value) for n in near(p, 6) if n.op in DRAWS]


def _unites(node: Node, wanted: set[int]) -> bool:
    """True where values that are held out come together with others, or into a table of marks."""
    held = [n for i in node.inputs for n in parts(i)]
    inside = [any(id(n) in wanted for n in ancestors(h)) for h in held]
    return any(inside) and (node.op in MARKS or (node.op in UNITES and not all(inside)))


__all__ = ["held_out_spared"]
