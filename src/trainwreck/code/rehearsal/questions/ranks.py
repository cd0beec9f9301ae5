"""Does each rank of a parallel job see its own share of the data, in a new order in every epoch?"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Event, Node, Obj, Place, Value, candidates
from trainwreck.code.rehearsal.graph import ancestors
from trainwreck.code.rehearsal.library.data import LOADERS
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.counts import length, number
from trainwreck.code.rehearsal.questions.gradients import backwards

WRAPPER = "DistributedDataParallel"


def wraps(run: Rehearsing) -> list[Event]:
    return [e for e in run.tape if e.name == "wrap" and e.full.endswith(WRAPPER)]


def is_parallel(run: Rehearsing) -> bool:
    return bool(wraps(run)) and any(e.full.endswith("init_process_group") for e in run.tape)


def learning_loaders(run: Rehearsing) -> list[Obj]:
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
    if not is_parallel(run):
        return
    for loader in learning_loaders(run):
        if _sampler(loader) is not None or loader.place is None or _of_rank(run, loader.get("dataset", 0)):
            continue
        if _own_order(run, loader):
            continue
        text = "every rank goes through the whole data: the loader has no sampler that gives each its share"
        yield Answer(loader.place, text, tuple(w.place for w in wraps(run)[:1] if w.place is not None))


def _own_order(run: Rehearsing, loader: Obj) -> bool:
    """True if the generator that shuffles is seeded by the rank, or the data draw themselves: no sampler helps."""
    from trainwreck.code.rehearsal.questions.streams import DRAWS, iterable, of_rank

    given = loader.options.get("generator")
    seeds = [given] if isinstance(given, Node) else []
    seeds += [a for e in run.tape if e.name == "manual_seed" and e.subject is given is not None for a in e.args]
    if any(of_rank(n) for s in seeds if isinstance(s, Node) for n in ancestors(s)):
        return True
    batches = [n for n in run.nodes if n.op == "batch" and n.owner is loader]
    drawn = any(n.op in DRAWS for b in batches[:4] for n in ancestors(b))
    return drawn and all(iterable(c) for c in candidates(loader.get("dataset", 0)))


def _of_rank(run: Rehearsing, data: Value) -> bool:
    """True if the data may depend on the rank, or aren't known well enough."""
    for one in candidates(data):
        given = (
            list(one.args) + list(one.options.values()) + list(one.attributes.values())
            if isinstance(one, Obj)
            else [one]
        )
        for part in given:
            nodes = list(ancestors(part)) if isinstance(part, Node) else []
            if any("rank" in (n.name or n.op) or n.op in ("argument", "unknown", "call") for n in nodes):
                return True
            if isinstance(part, Obj) and _of_rank(run, part):
                return True
    return not isinstance(data, Obj)


def same_order(run: Rehearsing) -> Iterator[Answer]:
    """A distributed sampler that is never told the epoch, of a loader that is gone through again and again."""
    for loader in learning_loaders(run):
        sampler = _sampler(loader)
        if (
            not isinstance(sampler, Obj)
            or sampler.name != "DistributedSampler"
            or sampler.get("shuffle", 3, True) is False
        ):
            continue
        told = [e for e in run.tape if e.name == "set_epoch" and (e.subject is sampler or not _other(e.subject))]
        rounds = [e for e in run.tape if e.name == "iterate" and e.subject is loader and e.turns]
        if not rounds or rounds[0].place is None:
            continue
        proof = tuple(p for p in (rounds[0].place, sampler.place) if p is not None)
        if not told:
            yield Answer(_turn_start(rounds[0]), "set_epoch is never called: each epoch has the same order", proof)
        elif told[0].place is not None and _the_same(told, rounds):
            text = "set_epoch is given the same number for every epoch: each has the same order"
            yield Answer(told[0].place, text, proof)


def _other(sampler: Value) -> bool:
    return isinstance(sampler, Obj) and sampler.name == "DistributedSampler"


def _the_same(told: list[Event], rounds: list[Event]) -> bool:
    """True if every call names one constant, or all come before the loop over the epochs."""
    given = [e.get("epoch", 0) for e in told]
    if all(isinstance(g, int) and g == given[0] for g in given) and len(given) > 1:
        return True
    return not any(e.turns for e in told) and all(e.serial < rounds[0].serial for e in told)


def _turn_start(event: Event) -> Place:
    """The first statement of the turn that goes through the loader, else that loop itself."""
    assert event.place is not None
    turn = event.turns[-1]
    body = getattr(turn.node, "body", None)
    if isinstance(body, list):
        return (body[0], turn.scope)
    return event.place


def padded_evaluation(run: Rehearsing) -> Iterator[Answer]:
    """A sampler that repeats samples, so that all ranks get as many, for data that are only evaluated.

    Said where the number of samples is known not to be a multiple of the number of ranks."""
    loaders = {id(n.owner): n.owner for n in run.nodes if n.op == "batch" and isinstance(n.owner, Obj)}
    if not any(_other(_sampler(loader)) for loader in loaders.values() if loader.name in LOADERS):
        return
    learned = {id(loader) for loader in learning_loaders(run)}
    told: set[int] = set()
    for event in run.tape:
        if event.name != "forward" or event.grad_mode:
            continue
        for node in (n for a in event.args for n in ancestors(a) if n.op == "batch"):
            loader = node.owner
            if not isinstance(loader, Obj) or loader.name not in LOADERS or id(loader) in learned or id(loader) in told:
                continue
            told.add(id(loader))
            sampler = _sampler(loader)
            if not isinstance(sampler, Obj) or sampler.name != "DistributedSampler" or sampler.place is None:
                continue
            size, world = length(run, sampler.get("dataset", 0)), number(run, sampler.get("num_replicas", 1))
            if size and world and size % world and sampler.get("drop_last", 5) is not True:
                text = (
                    f"{world - size % world:.0f} of {size:.0f} samples are repeated here, and count twice in the result"
                )
                yield Answer(sampler.place, text, (event.place,) if event.place is not None else ())
