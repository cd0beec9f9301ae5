"""Categories that are numbered by what occurs in data: is the numbering of the training also that of the evaluation?"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import NUMBERING, Items, Node, Obj, Place, Table, Value
from trainwreck.code.rehearsal.graph import ancestors, carries, near
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.paths import RANDOM
from trainwreck.code.rehearsal.questions.roles import trained, users
from trainwreck.core.row import Row

TABLES = frozenset(["Embedding", "EmbeddingBag"])
MAX_DEPTH = 8
LAYERS = frozenset(["linear", "embedding", "embeddingbag", "embedding_bag", "conv1d", "conv2d", "param"])


MOST = 400
"""Values that are looked at on the way from a number to where it is used."""


class Numbers(Row):
    """A numbering: of what, where it was made, by which calls, and in what the numbers were looked up."""

    key: object
    place: Place
    stack: tuple[Place, ...]
    used: Place | None
    inside: bool
    """What is numbered was put in order where it is numbered; else it was handed over in that order."""


def counted_anew(run: Rehearsing) -> Iterator[Answer]:
    """An embedding is asked, where nothing is trained, about numbers that were given anew."""
    learned = {id(n) for n in trained(run)}
    uses = [n for n in run.nodes if n.owner is not None and n.owner.name in TABLES and n.inputs and n.op != "param"]
    for owner in {id(n.owner): n.owner for n in uses}.values():
        mine = [n for n in uses if n.owner is owner]
        first = [f for n in mine if id(n) in learned for f in _numberings(n)]
        other = [f for n in mine if id(n) not in learned and not n.grad for f in _numberings(n)]
        if not first or not other or {f.key for f in first} & {f.key for f in other}:
            continue
        found, before = other[-1], first[0]
        if any(_of_one_sample(run, (f.place, *f.stack)) for f in (found, before)):
            continue
        same = found.place[0] is before.place[0]
        shared = same and found.used is not None and found.used[1] is found.place[1]
        left_out = same and bool(found.stack) and _left_out(found.stack[-1], found.place)
        by_call = same and bool(found.stack) and (left_out or not (shared and found.inside))
        place = found.stack[-1] if by_call else found.place
        yield Answer(place, "the categories are numbered anew here: the same one has another number than in training",
                     (before.place,))  # fmt: skip
        return
    yield from _unlearned(run, learned)


def _left_out(call: Place, inside: Place) -> bool:
    """True where the call leaves an argument out that it could give: the numbering that there is already."""
    spec, node = getattr(inside[1].node, "args", None), call[0]
    if not isinstance(spec, ast.arguments) or not isinstance(node, ast.Call) or inside[1].owner is not None:
        return False
    return bool(spec.defaults) and len(node.args) + len(node.keywords) < len(spec.args)


PER_SAMPLE = frozenset(["__getitem__", "__iter__", "__next__"])


def _of_one_sample(run: Rehearsing, places: tuple[Place, ...]) -> bool:
    """True for numbers that are given within each sample (entities of a document, speakers of a dialogue): they say
    who is who there, and mean nothing elsewhere."""
    loops = {id(t.node): t.node for e in run.tape if e.name == "backward" for t in e.turns}
    inner = {id(n) for loop in loops.values() for n in ast.walk(loop)}
    for node, scope in places:
        if getattr(scope.node, "name", "") in PER_SAMPLE or id(node) in inner:
            return True
        for around in run.project.ancestors(node, scope):
            rows = around.generators if isinstance(around, ast.ListComp | ast.GeneratorExp) else ()
            rows = [g for g in rows if not isinstance(g.iter, ast.List | ast.Tuple) and not _few(run, g)]
            if any(not _is_within(node, g.iter) for g in rows):
                return True
    return False


def _few(run: Rehearsing, generator: ast.comprehension) -> bool:
    """True where what is gone through always was a list of which every element is known: columns, not samples."""
    opened = run.memo.get("open", {}).get(id(generator), ())
    return bool(opened) and not any(opened)


def _is_within(node: ast.AST, around: ast.AST) -> bool:
    return any(n is node for n in ast.walk(around))


def _unlearned(run: Rehearsing, learned: set[int]) -> Iterator[Answer]:
    """A numbering that no training uses, made as that of an embedding and asked about values of the same column: what
    the embedding's rows are compared with (the items that were really bought)."""
    uses = [n for n in run.nodes if id(n) in learned and n.owner is not None and n.owner.name in TABLES]
    asked = {id(n) for use in uses if use.op != "param" for n in ancestors(use.inputs[0], through=_no_layer)}
    taught = {id(n) for n in ancestors(tuple(n for n in run.nodes if id(n) in learned))}
    looked = [n for n in run.nodes if isinstance(n.attributes.get(NUMBERING), Table)]
    tables = {id(n.attributes[NUMBERING]): n.attributes[NUMBERING] for n in looked}
    by_table = {key: [n for n in looked if n.attributes[NUMBERING] is table] for key, table in tables.items()}
    first = {key: table for key, table in tables.items() if any(id(n) in asked for n in by_table[key])}
    for key, table in tables.items():
        mine = by_table[key]
        if key in first or table.numbered is None or not table.stack or any(id(n) in taught for n in mine):
            continue
        if _of_one_sample(run, (table.numbered, *table.stack)):
            continue
        if {_alike(v) for v in table.counted} & {_alike(v) for twin in first.values() for v in twin.counted}:
            continue
        for other, twin in first.items():
            if (
                twin.numbered is None
                or twin.numbered[0] is not table.numbered[0]
                or len(twin.stack) != len(table.stack)
            ):
                continue
            if _columns(by_table[other]) & _columns(mine) and _meets(run, mine):
                text = "the categories are numbered anew here: the same one has another number than in training"
                way = [p for p, q in zip(table.stack, twin.stack, strict=True) if p[0] is not q[0]]
                yield Answer(way[0] if way else table.stack[0], text, (twin.numbered,))
                return


def _no_layer(node: Node) -> bool:
    return node.op not in LAYERS and node.op != "lookup"


def _meets(run: Rehearsing, looked: list[Node]) -> bool:
    """True where the numbers come together with what a network gives."""
    queue, seen = list(looked), {id(n) for n in looked}
    while queue and len(seen) < MOST:
        node = queue.pop()
        if any(n.op == "param" for n in near(node, MOST)):
            return True
        after = [u for u in users(run).get(id(node), ()) if id(u) not in seen]
        seen |= {id(u) for u in after}
        queue += after
    return False


def _columns(looked: Iterable[Node]) -> set[int]:
    """Where what is looked up was made."""
    made = (p for n in looked for p in near(n.inputs, 6) if p.op in ("getitem", "item", "choice", "text"))
    return {id(p.place[0]) for p in made if p.place is not None}


def _numberings(asked: Node) -> Iterator[Numbers]:
    """The numberings that the numbers given to an embedding come from."""
    given = asked.inputs[0]
    for node in ancestors(given, through=lambda n: _no_layer(n) and carries(n)):
        table = node.attributes.get(NUMBERING)
        if isinstance(table, Table) and table.numbered is not None:
            for value in table.counted or (table,):
                yield Numbers(_alike(value), table.numbered, table.stack, node.place, _inside(value, table.numbered))
        elif node.op in ("part", "getitem") and node.inputs[1:] == (1,) and isinstance(node.inputs[0], Node):
            unique = node.inputs[0]
            if unique.op == "unique" and unique.options.get("return_inverse") is True and unique.place is not None:
                yield Numbers(_alike(unique), unique.place, unique.stack, node.place, True)


def _inside(value: Value, place: Place) -> bool:
    """True where some order is made of the values in the function that numbers them, or none at all."""
    made = [n for n in near(value, 6) if n.op != "element" and n.place is not None]
    return not made or made[0].place is None or made[0].place[1] is place[1]


def _alike(value: Value, depth: int = 0) -> object:
    """Equal for values that the program computes alike from the same things: what is numbered twice in one order (a
    list that was fitted, a file that is read again) has the same numbers both times."""
    if isinstance(value, Node) and value.op not in RANDOM and value.inputs and depth < MAX_DEPTH:
        rest = (_alike(v, depth + 1) for v in value.inputs)
        return (value.op, value.name, *rest)
    if isinstance(value, Obj) and value.cls is None:
        return (value.kind, *(_alike(a, depth + 1) for a in value.args))
    if isinstance(value, tuple) or (isinstance(value, Items) and not value.more and depth < MAX_DEPTH):
        return tuple(_alike(v, depth + 1) for v in (value if isinstance(value, tuple) else value.items))
    return value if isinstance(value, int | float | str | bool | bytes) or value is None else id(value)


__all__ = ["counted_anew"]
