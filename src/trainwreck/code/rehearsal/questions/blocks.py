"""Are batches taken in order from data that stand class by class?"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from itertools import islice, pairwise

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Event, Items, Node, Obj, Place, Value
from trainwreck.code.rehearsal.graph import ancestors, carries, near, parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.paths import RANDOM, paths, trained
from trainwreck.code.rehearsal.questions.roles import JOINS

WHOLE = (("mask",), ("arange",))
"""Selections that are no batch: by a test, and all numbers in their order, of which the batches are taken."""
FOLDERS = ("torchvision.datasets.ImageFolder", "torchvision.datasets.DatasetFolder")
"""Data sets that list one folder after the other: all of one class, then all of the next."""


def sorted_batches(run: Rehearsing) -> Iterator[Answer]:
    """Labels that stand in blocks of one class, and batches that are taken from them in order."""
    if any(event.name == "shuffle" for event in run.tape):
        return
    told: set[int] = set()
    for event, node in trained(run):
        yield from _of_rows(run, event, node, told)
        for path in paths(run, node):
            blocks = next((n for n in path.nodes if _in_blocks(n)), None)
            if blocks is None or blocks.place is None:
                continue
            own = blocks.inputs[1] if blocks.op == "getitem" else None
            if any(_any_order(s.index) for s in path.steps if own is None or s.index is not own):
                continue
            if _one_of(path.nodes, blocks):
                continue  # the best of a few that were sorted
            if event.turns and event.turns[-1] in blocks.turns:
                continue  # made in the step itself: a state, or the numbers of one batch
            if _within_a_batch(blocks):
                continue
            if blocks.op == "repeat_interleave" and any(t in blocks.turns for t in event.turns):
                continue  # copies of what was asked in this round
            loader, whole = _taken(run, path.nodes)
            if loader is not None and (not in_order(run, loader) or blocks.serial > loader.serial):
                continue  # what is made later, while the loader is gone through, is one sample
            picked = (i for n in whole if n.op == "getitem" for i in parts(n.inputs[1:]))
            after = {id(n.place[0]) for n in (*whole, *picked) if n.place is not None}
            batched = [s for s in path.steps if s.moving and not (isinstance(s.key, tuple) and s.key[:1] in WHOLE)]
            moves = [s.place for s in batched if s.place is not None and id(s.place[0]) in after]
            if loader is None and not moves:
                continue
            place = loader.place if loader is not None else moves[0]
            if place is None or id(place[0]) in told:
                continue
            told.add(id(place[0]))
            text = "batches are taken in order from data that stand class by class"
            yield Answer(place, text, (blocks.place, *((event.place,) if event.place else ())))


def _within_a_batch(blocks: Node) -> bool:
    """True for what a generator makes in each turn before it yields: the order of the rows of one batch."""
    return any(isinstance(n, ast.Yield) for t in blocks.turns[-1:] for n in ast.walk(t.node))


def _taken(run: Rehearsing, nodes: Sequence[Node]) -> tuple[Obj | None, Sequence[Node]]:
    """The loader whose batches are trained on, and the values from the last whole array on: where all batches of a
    loader were joined, it is that, and the order of that loader is no order of training."""
    while True:
        first = next((n for n, node in enumerate(nodes) if node.op == "batch"), None)
        if first is None:
            return None, nodes
        whole = _gathered(run, nodes[first:])
        if not whole:
            return nodes[first].owner, nodes
        nodes = whole


def _gathered(run: Rehearsing, nodes: Sequence[Node]) -> Sequence[Node]:
    """What is computed from all batches, joined behind the loop over them; ``nodes`` start with one batch."""
    place = nodes[0].place
    around = (place[0], *run.project.ancestors(*place)) if place is not None else ()
    loop = next((n for n in around if isinstance(n, ast.stmt | ast.ListComp | ast.GeneratorExp)), None)
    if not isinstance(loop, ast.For | ast.ListComp | ast.GeneratorExp):
        return ()
    joins = (n for n, node in enumerate(nodes) if node.op in JOINS and all(t.node is not loop for t in node.turns))
    first = next(joins, None)
    return nodes[first:] if first is not None else ()


def _one_of(nodes: Sequence[Node], listed: Node) -> bool:
    """True where one element by its number is all that is taken of it."""
    after = next((b for a, b in pairwise(nodes) if a is listed), None)
    return after is not None and after.op == "getitem" and type(after.inputs[1]) is int


LISTINGS = frozenset(["glob", "iglob", "rglob", "listdir", "scandir", "iterdir"])


def _in_blocks(node: Node) -> bool:
    """Values that stand in blocks of equals: repeated one by one, sorted, or constants put behind one another."""
    if node.op in ("repeat_interleave", "sort", "sorted"):
        return not any(n.op in LISTINGS for n in near(node, 4))  # names of files stand in some order, not of classes
    if node.op == "repeat" and node.full.startswith("numpy."):
        return True
    if node.op == "getitem" and len(node.inputs) > 1 and isinstance(node.inputs[1], Node):
        order = node.inputs[1]
        return order.op == "argsort" and bool(order.inputs) and order.inputs[0] is node.inputs[0]  # put in their order
    if node.op in ("cat", "concatenate", "concat", "hstack", "vstack") and node.inputs:
        pieces = list(parts(node.inputs[0]))
        constants = [p for p in pieces if p.op in ("full", "zeros", "ones", "full_like", "zeros_like", "ones_like")]
        return len(pieces) > 1 and len(constants) == len(pieces)
    return False


def _of_rows(run: Rehearsing, event: Event, node: Node, told: set[int]) -> Iterator[Answer]:
    """Batches of a loader that goes in order through rows which were listed class by class."""
    batch = next((n for n in near(node, 30) if n.op == "batch"), None)
    loader = batch.owner if batch is not None else None
    if loader is None or loader.place is None or id(loader.place[0]) in told or not in_order(run, loader):
        return
    listed = _listed(loader.get("dataset", 0))
    if listed is not None:
        told.add(id(loader.place[0]))
        text = "batches are taken in order from data that stand class by class"
        yield Answer(loader.place, text, (listed, *((event.place,) if event.place else ())))


def _listed(dataset: Value) -> Place | None:
    """Where the rows of a data set were listed, all of one class before the next."""
    if isinstance(dataset, Obj) and dataset.kind in FOLDERS:
        return dataset.place
    held = dataset.attributes.values() if isinstance(dataset, Obj) and dataset.cls is not None else [dataset]
    return next((place for value in held if (place := _by_class(value)) is not None), None)


def _by_class(rows: Value) -> Place | None:
    """Where rows were made in two loops, and one of their parts is the number of the outer one: the class."""
    if not isinstance(rows, Items) or rows.kind != "list" or not rows.items or not isinstance(rows.items[-1], tuple):
        return None
    row = rows.items[-1]
    made = next((n for n in row if isinstance(n, Node) and len(n.turns) > 1 and n.turns[-1].generic), None)
    if made is None or len(row) != 2:
        return None
    numbers = {id(n) for t in made.turns[:1] for n in parts(t.over) if n.op == "counter"}
    return made.place if any(id(n) in numbers for n in row if isinstance(n, Node)) else None


def _any_order(index: Value) -> bool:
    ends = index.args if isinstance(index, Obj) and index.kind == "builtins.slice" else (index,)
    drawn = (islice(ancestors(end, through=carries), 30) for end in ends if isinstance(end, Node))
    return any(n.op in RANDOM for behind in drawn for n in behind)


def in_order(run: Rehearsing, loader: Obj) -> bool:
    """True for a loader that certainly takes the elements in order."""
    shuffle = run.truth(loader.get("shuffle", 2, False))
    others = [loader.options.get(name) for name in ("sampler", "batch_sampler")]
    return shuffle is False and all(o is None for o in others) and "?" not in loader.options
