"""Does the wrapped network run, and does each rank of a parallel job see its own share in a new order?"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Event, Node, Obj, Value, candidates
from trainwreck.code.rehearsal.graph import ancestors
from trainwreck.code.rehearsal.library.data import LOADERS
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.gradients import backwards

WRAPPER = "DistributedDataParallel"


def _wraps(run: Rehearsing) -> list[Event]:
    return [e for e in run.tape if e.name == "wrap" and e.full.endswith(WRAPPER)]


def passed_by(run: Rehearsing) -> Iterator[Answer]:
    """The network inside the wrapper is called for a loss that is learned from: its gradients are not averaged."""
    if any("all_reduce" in e.full for e in run.tape):
        return
    for wrap in _wraps(run):
        inner, wrapper = wrap.subject, wrap.result
        if not isinstance(inner, Obj) or not isinstance(wrapper, Obj):
            continue
        calls = [e for e in run.tape if e.name == "forward" and e.subject is inner and e.serial > wrap.serial]
        outer = [e for e in run.tape if e.name == "forward" and e.subject is wrapper]
        behind = {id(n) for b in backwards(run) if b.turns for n in ancestors(b.subject)}
        for call in calls:
            within = any(o.place is not None and call.place is not None and o.place[0] is call.place[0] for o in outer)
            learned = isinstance(call.result, Node) and id(call.result) in behind
            if learned and not within and call.place is not None and not outer:
                text = "the network inside the wrapper is called: its gradients are not averaged over the ranks"
                yield Answer(call.place, text, (wrap.place,) if wrap.place is not None else ())
                return


def _is_parallel(run: Rehearsing) -> bool:
    return bool(_wraps(run)) and any(e.full.endswith("init_process_group") for e in run.tape)


def _learning_loaders(run: Rehearsing) -> list[Obj]:
    """Loaders whose batches go into a loss that is learned from."""
    found: dict[int, Obj] = {}
    for event in backwards(run):
        for node in ancestors(event.subject):
            if node.op == "batch" and isinstance(node.owner, Obj) and node.owner.name in LOADERS:
                found[id(node.owner)] = node.owner
    return list(found.values())


def _sampler(loader: Obj) -> Value:
    value = loader.get("sampler", 3)
    return value if value is not None else loader.options.get("batch_sampler")


def whole_data(run: Rehearsing) -> Iterator[Answer]:
    """A loader without a sampler of this rank, over data that no rank was taken into account for."""
    if not _is_parallel(run):
        return
    for loader in _learning_loaders(run):
        if _sampler(loader) is not None or loader.place is None or _of_rank(run, loader.get("dataset", 0)):
            continue
        text = "every rank goes through the whole data: the loader has no sampler that gives each its share"
        yield Answer(loader.place, text, tuple(w.place for w in _wraps(run)[:1] if w.place is not None))


def _of_rank(run: Rehearsing, data: Value) -> bool:
    """True if the data may depend on the rank, or aren't known well enough."""
    for one in candidates(data):
        parts = (
            list(one.args) + list(one.options.values()) + list(one.attributes.values())
            if isinstance(one, Obj)
            else [one]
        )
        for part in parts:
            nodes = list(ancestors(part)) if isinstance(part, Node) else []
            if any("rank" in (n.name or n.op) or n.op in ("argument", "unknown", "call") for n in nodes):
                return True
            if isinstance(part, Obj) and _of_rank(run, part):
                return True
    return not isinstance(data, Obj)


def same_order(run: Rehearsing) -> Iterator[Answer]:
    """A distributed sampler that is never told the epoch, of a loader that is gone through again and again."""
    for loader in _learning_loaders(run):
        sampler = _sampler(loader)
        if (
            not isinstance(sampler, Obj)
            or sampler.name != "DistributedSampler"
            or sampler.get("shuffle", 3, True) is False
        ):
            continue
        told = any(e.name == "set_epoch" for e in run.tape)
        rounds = [e for e in run.tape if e.name == "iterate" and e.subject is loader and e.turns]
        if rounds and not told and rounds[0].place is not None:
            proof = (sampler.place,) if sampler.place is not None else ()
            yield Answer(rounds[0].place, "set_epoch is never called: each epoch has the same order", proof)
