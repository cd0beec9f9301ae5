"""Scores that each rank of a job measures on its own share of the data: are they put together before they are told?"""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import WRITTEN, Event, Items, Node, Obj, Place, Value, candidates
from trainwreck.code.rehearsal.graph import ancestors, parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.paths import feeding
from trainwreck.code.rehearsal.questions.ranks import learning_loaders

TELLS = frozenset("print info log log_metrics add_scalar write warning log_dict".split())
"""What shows a score, or hands it to a log."""
JOINS = re.compile(r"gather|reduce|^reduce_|^sync|^merge|^broadcast|^send$|^recv$|^isend$|^irecv$|^barrier_sum")


def unjoined(run: Rehearsing) -> Iterator[Answer]:
    """A score of one rank's share that rank 0 tells as if it were that of all the data."""
    if not any(e.full.endswith("init_process_group") for e in run.tape):
        return
    judged = _judged(run)
    if not judged:
        return
    joins = [e for e in run.tape if JOINS.search(e.name) and (not e.full or "dist" in e.full or "accel" in e.full)]
    for event in run.tape:
        if event.name not in TELLS or not _by_one_rank(event):
            continue
        shown = [n for a in (*event.args, *event.options.values()) for n in _shown(a)]
        if any(_rank(n) for n in shown):
            continue
        for value in shown:
            behind = list(ancestors(value))
            ids = {id(n) for n in behind}
            share = next((judged[i] for i in ids if i in judged), None)
            if share is None or any(JOINS.search(n.op) for n in behind):
                continue
            if any(e.serial < event.serial and _touches(e, ids) for e in joins):
                continue
            place = _measured(behind, judged) or value.place or event.place
            if place is not None:
                text = "each rank measures this on its own share of the data, and the shares are never put together"
                yield Answer(place, text, tuple(p for p in (share, event.place) if p is not None))
                return


def _judged(run: Rehearsing) -> dict[int, Place | None]:
    """Results of evaluations on the share of one rank, by ``id``, with the place where the share is taken."""
    learning = {id(loader) for loader in learning_loaders(run)}
    found: dict[int, Place | None] = {}
    for event in run.tape:
        if event.name != "forward" or (event.grad_mode and event.state.get("training") is not False):
            continue
        results = [id(n) for n in parts(event.result)]
        if not results or any(i in feeding(run) for i in results):
            continue
        for node in ancestors((*event.args, *event.options.values())):
            place = _share(node, learning)
            if place is not None:
                found.update(dict.fromkeys(results, place))
                break
    return found


def _share(node: Node, learning: set[int]) -> Place | None:
    """Where a part of the data is taken by the number of the rank."""
    if node.op == "batch" and isinstance(node.owner, Obj) and id(node.owner) not in learning:
        loader = node.owner
        for sampler in candidates(loader.get("sampler", 3)):
            if isinstance(sampler, Obj) and sampler.name == "DistributedSampler":
                return sampler.place or loader.place
        for data in candidates(loader.get("dataset", 0)):
            if isinstance(data, Obj) and data.name == "Subset" and _by_rank(data.get("indices", 1)):
                return data.place
    if node.op == "getitem" and len(node.inputs) > 1 and _by_rank(node.inputs[1]):
        return node.place
    return node.place if node.op in ("chunk", "tensor_split", "array_split") and _by_rank(node.inputs) else None


def _by_rank(value: Value) -> bool:
    """True for numbers or slices that are computed from the number of the rank."""
    match value:
        case Node():
            return any(_rank(n) or _sliced(n) for n in ancestors(value))
        case tuple():
            return any(_by_rank(v) for v in value)
        case Items():
            return any(_by_rank(v) for v in value.items) or (value.source is not None and _by_rank(value.source))
        case Obj() if value.name == "slice":
            return any(_by_rank(a) for a in value.args)
    return False


def _sliced(node: Node) -> bool:
    return any(isinstance(i, Obj) and i.name == "slice" and _by_rank(i.args) for i in node.inputs)


def _rank(node: Node) -> bool:
    words: list[Value] = [node.name, node.op, *node.inputs]
    return node.op != "compare" and any(isinstance(w, str) and "rank" in w.lower() for w in words)


def _by_one_rank(event: Event) -> bool:
    """True under a test of the rank."""
    return any(_rank(n) for t in event.tests for n in ancestors(t))


def _shown(value: Value) -> Iterator[Node]:
    for node in parts(value):
        if node.op == "text":
            for written in node.attributes.get(WRITTEN, ()):
                yield from _shown(written)
        elif node.op == "mod" and len(node.inputs) > 1:
            for item in node.inputs[1:]:
                yield from _shown(item)
        else:
            yield node


def _touches(event: Event, ids: set[int]) -> bool:
    given: tuple[Value, ...] = (*event.args, *event.options.values(), event.result)
    if _gathers(event):
        given = (_gathered(event),)  # what is given in stays as it was
    return any(id(n) in ids for a in given for n in parts(a))


def _gathers(event: Event) -> bool:
    return event.name in ("all_gather", "gather", "all_gather_object") and "torch.distributed" in event.full


def _gathered(event: Event) -> Value:
    """The list that a collective fills."""
    if event.name == "gather":
        return event.get("gather_list", 1)
    return event.get("tensor_list" if event.name == "all_gather" else "object_list", 0)


def one_of_all(run: Rehearsing) -> Iterator[Answer]:
    """The results of all ranks are gathered, and those of one are read."""
    events = [e for e in run.tape if _gathers(e)]
    judged = _judged(run) if events else {}
    for event in events:
        filled = _gathered(event)
        given = event.get("obj" if event.name == "all_gather_object" else "tensor", 0 if event.name == "gather" else 1)
        own = any(id(n) in judged for n in ancestors(given))
        if not own or not isinstance(filled, Items) or filled.more or len(filled.items) < 2:
            continue
        readers: dict[int, list[Node]] = {}
        whole = any(e.serial > event.serial and any(a is filled for a in e.args) for e in run.tape)
        for node in run.nodes:
            if node.serial < event.serial:
                continue
            whole = whole or any(i is filled for i in (*node.inputs, *node.options.values()))
            for number, item in enumerate(filled.items):
                if any(i is item for i in node.inputs) or any(isinstance(i, Items) and i is not filled and any(
                        j is item for j in i.items) for i in node.inputs):  # fmt: skip
                    readers.setdefault(number, []).append(node)
        if not whole and len(readers) == 1 and (place := next(iter(readers.values()))[0].place) is not None:
            text = "the results of all ranks are gathered, and only those of one are read here"
            yield Answer(place, text, tuple(p for p in (event.place,) if p is not None))
            return


def _measured(behind: list[Node], judged: dict[int, Place | None]) -> Place | None:
    """The quotient or mean nearest to what is told that is computed from the results."""
    for node in behind:
        averages = node.op in ("div", "mean", "average") and node.place is not None
        if averages and any(id(n) in judged for n in ancestors(node)):
            return node.place
    return None
