"""Are there copies of a row on both sides of a split?"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import zip_longest

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Items, Node, Obj, Place, Value, candidates
from trainwreck.code.rehearsal.graph import ancestors, near, parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.paths import CREATES, RANDOM, Path, Step
from trainwreck.code.rehearsal.questions.places import asked
from trainwreck.code.rehearsal.questions.splits import keys, sides

JOINS = frozenset(["cat", "concatenate", "concat", "vstack", "append", "extend"])
REPEATS = frozenset(["repeat", "tile", "repeat_interleave"])


def before_the_split(run: Rehearsing) -> Iterator[Answer]:
    """Rows that are copied (jittered, repeated) before a random order parts them.

    Said where a way of the training and one of the evaluation lead through the same copies and part after them."""
    both = sides(run)
    told: set[int] = set()
    for event, held in both.held:
        for train in both.train:
            if held.root is not train.root or keys(held) == keys(train) or not _parted(train, held):
                continue
            copied = _copied(held, train) or _of_a_list(held, train)
            if copied is None or id(copied[0]) in told:
                continue
            told.add(id(copied[0]))
            split = next((s.place for s in reversed(held.fixed) if s.place is not None), None)
            text = "rows are copied here before they are split, so that copies of a row are on both sides"
            yield Answer(copied, text, tuple(p for p in (split, event.place) if p is not None))


def in_a_list(run: Rehearsing) -> Iterator[Answer]:
    """A list of samples with changed copies of some among them, of which both sides are made at random."""
    both = sides(run)
    taught = {id(o): o for path in both.train for o in _loaders(path)}
    judged = {id(o): (o, event) for event, path in both.held for o in _loaders(path)}
    for key, (loader, event) in judged.items():
        for other in taught.values():
            if key in taught:
                continue
            mine, theirs = _listed(loader), _listed(other)
            shared = [n for n in mine if any(n is t for t in theirs)]
            varied = _varied(shared) if len(shared) > 1 and _at_random(run, loader) else None
            if varied is not None:
                place = asked(varied)
                if place is not None:
                    text = "rows are copied here before they are split, so that copies of a row are on both sides"
                    yield Answer(place, text, (event.place,) if event.place is not None else ())
                return


def _loaders(path: Path) -> Iterator[Obj]:
    for node in path.nodes:
        if node.op == "batch" and isinstance(node.owner, Obj):
            yield node.owner


def _listed(loader: Obj) -> list[Node]:
    """The samples of a loader whose data set is a list; of pairs the first part."""
    items = _list_of(loader)
    firsts = [next(parts(value), None) for value in items.items] if items is not None else []
    return [n for n in firsts if n is not None]


def _list_of(loader: Obj) -> Items | None:
    given = loader.get("dataset", 0)
    for _ in range(4):
        if isinstance(given, Obj) and given.name == "Subset":
            given = given.get("dataset", 0)
    return given if isinstance(given, Items) else None


def _at_random(run: Rehearsing, loader: Obj) -> bool:
    """True for a part by ``random_split``, or where the program shuffles a list before any loader is made."""
    given = loader.get("dataset", 0)
    if isinstance(given, Obj) and given.name == "Subset":
        index = given.get("indices", 1)
        return isinstance(index, Node) and any(n.op in RANDOM or n.op == "split" for n in near(index, 20))
    items = _listed(loader)
    drawn = [n for n in run.nodes if n.op in ("shuffle", "sample", "permutation") and n.serial < loader.serial]
    return any(any(p is i for p in parts(tuple(n.inputs)) for i in items) for n in drawn)


def _parted(train: Path, held: Path) -> bool:
    """True where a random order stands before the two ways part: without one, copies stay where they are."""
    for one, other in zip_longest(train.fixed, held.fixed):
        if any(step is not None and _random(step) for step in (one, other)):
            return True
        if one is None or other is None or one.key != other.key:
            return False  # a random order after the parting stays on its own side
    return False


def _random(step: Step) -> bool:
    return isinstance(step.index, Node) and any(n.op in RANDOM or n.op == "split" for n in near(step.index, 20))


def _copied(held: Path, train: Path) -> Place | None:
    """The place on both ways at which one array is put behind itself, before any part is taken of it."""
    other = {id(n) for n in train.nodes}
    first = next((s.place for s in held.fixed if s.place is not None), None)
    for node in held.nodes:
        if id(node) not in other:
            return None
        if node.op == "getitem" and len(node.inputs) > 1 and _drawn_again(node.inputs[1]):
            return asked(node)
        if first is not None and node.place is first:
            return None
        if node.op in REPEATS and node.inputs and _many(node):
            return asked(node)
        if node.op in JOINS and node.inputs and not _beside(node):
            pieces = list(parts(node.inputs[0]))
            sources = [{id(n) for n in near(p, 60)} for p in pieces]
            if len(pieces) > 1 and any(id(pieces[0]) in source for source in sources[1:]):
                return asked(node)
    return None


def _beside(node: Node) -> bool:
    """True where what is joined stands beside each other in a row (along any axis but the first): no row is copied.

    So it is, too, where what is joined is turned over (``vstack([x, x ** 2]).T``): its rows become columns."""
    axis = node.options.get("axis", node.options.get("dim", node.inputs[1] if len(node.inputs) > 1 else 0))
    if node.op in ("append", "extend", "vstack"):
        axis = node.options.get("axis", 0)
    if axis == -1 and not node.shape.open and len(node.shape.dims) == 1:
        return False
    return axis != 0


def _drawn_again(index: Value) -> bool:
    """True for an index that names all rows and, behind them, some of them once more."""
    if not isinstance(index, Node) or index.op not in JOINS or not index.inputs:
        return False
    pieces = list(parts(index.inputs[0]))
    return len(pieces) > 1 and any(_with_repeats(piece) for piece in pieces)


def _with_repeats(index: Node, depth: int = 0) -> bool:
    """True for a draw with replacement, or each of some numbers several times."""
    if index.op == "choice":
        return index.get("replace", 2, True) is not False
    if index.op in ("integers", "randint", "choices") or index.op in REPEATS:
        return True
    inner = index.inputs[1] if index.op == "getitem" and len(index.inputs) > 1 else None
    return isinstance(inner, Node) and depth < 4 and _with_repeats(inner, depth + 1)


def _of_a_list(held: Path, train: Path) -> Place | None:
    """Both take elements of one list, and some of its elements were made from others of them."""
    for mine in _taken(held):
        for theirs in _taken(train):
            shared = [n for n in mine if any(n is other for other in theirs)]
            varied = _varied(shared) if len(shared) > 1 else None
            if varied is not None:
                return asked(varied)
    return None


def _taken(path: Path) -> Iterator[list[Node]]:
    """The elements of the lists that a way takes some element of; of pairs the first part."""
    for node in path.nodes:
        if node.op == "either" and node.place is not None and isinstance(node.place[0], ast.Subscript):
            firsts = (next(parts(value), None) for value in candidates(node))
            yield [n for n in firsts if n is not None]


def _varied(elements: list[Node]) -> Node | None:
    """The one that was made from another of them.

    Not meant: what goes on from turn to turn of the loop that makes it (a walk)."""
    for made in elements:
        behind = {id(n) for n in near(made, 60)}
        for other in elements:
            if other is not made and id(other) in behind and not _goes_on(other, made):
                return made
    return None


def _goes_on(one: Node, other: Node) -> bool:
    theirs = {id(t.node): t for t in other.turns}
    return any(id(t.node) in theirs and theirs[id(t.node)] is not t for t in one.turns)


def _many(node: Node) -> bool:
    """True for a repetition of rows (along the first axis) of an array that holds data."""
    return _of_rows(node) and not all(
        n.op in CREATES | {"tensor", "array", "unknown"} for n in ancestors(node) if n is not node
    )


def _of_rows(node: Node) -> bool:
    """False where the first axis keeps its length, or is said to be another one."""
    before = node.inputs[0].shape.dims[:1] if isinstance(node.inputs[0], Node) else ()
    after = node.shape.dims[:1]
    same_rank = isinstance(node.inputs[0], Node) and len(node.inputs[0].shape.dims) == len(node.shape.dims)
    if same_rank and before == after and before not in ((), (None,)):
        return False
    rest = node.inputs[1:]
    if node.op == "repeat_interleave" or (node.op == "repeat" and node.full.startswith("numpy")):
        return node.options.get("axis", node.options.get("dim", rest[1] if len(rest) > 1 else 0)) in (0, None)
    counts = rest[0] if rest and isinstance(rest[0], tuple) else rest
    return not counts or counts[0] != 1
