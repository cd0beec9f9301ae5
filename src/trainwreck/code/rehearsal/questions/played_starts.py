"""Ranks that one process plays one after the other: do their networks start from the same weights?

The mean of their gradients keeps networks equal that are equal, and no others. Silent where one network is a copy of
the other, where anything writes weights before the first step, and where the generator is put back between them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Event, Node, Obj, Place, Value
from trainwreck.code.rehearsal.graph import parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.gradients import steps
from trainwreck.code.rehearsal.questions.played_ranks import means_of, ranks_of

DRAWN = frozenset(
    """Linear Bilinear Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d Embedding EmbeddingBag LSTM
    GRU RNN""".split()
)
"""Layers whose weights are drawn at random when they are made."""
DRAWS = frozenset(
    """uniform_ normal_ trunc_normal_ kaiming_uniform_ kaiming_normal_ xavier_uniform_ xavier_normal_ orthogonal_
    sparse_ kaiming_uniform kaiming_normal xavier_uniform xavier_normal requires_grad""".split()
)
"""What may be written into weights and leaves them as different as they were."""
SEEDS = ("manual_seed", "seed_everything", "set_seed", "manual_seed_all", "set_rng_state", "setstate", "fork_rng")
CARRY = frozenset(["load_state_dict", "vector_to_parameters", "swap_tensors", "functional_call"])


def drawn_apart(run: Rehearsing) -> Iterator[Answer]:
    """Networks that get the mean of their gradients each, and whose weights were drawn one after the other."""
    moved = [s for s in steps(run) if s.turns]
    if len({id(s.subject) for s in moved}) < 2 or any(e.full.endswith("init_process_group") for e in run.tape):
        return
    ranks = ranks_of(moved)
    means = means_of(run, ranks) if ranks else None
    if means is None or not means.joined or any(e.name in CARRY for e in run.tape):
        return
    mixed = {id(n) for n in means.joined}
    given: dict[tuple[object, ...], list[tuple[Node, Event]]] = {}
    for write, param, value in means.written:
        if any(id(p) in mixed for p in parts(value)) and id(param) in ranks:
            mine = given.setdefault(ranks[id(param)], [])
            if all(p is not param for p, _ in mine):
                mine.append((param, write))
    for same in given.values():
        same.sort(key=lambda pair: pair[0].serial)
        for (one, write), (other, _) in pairwise(same):
            if not (_drawn(one) and _drawn(other)) or _put_back(run, one, other):
                continue
            place = _where(run, moved, one, other)
            if place is not None:
                text = "the weights of each rank are drawn anew here: the mean of the gradients never makes them equal"
                yield Answer(place, text, (write.place,) if write.place is not None else ())
                return


def _drawn(param: Node) -> bool:
    """True for weights of a layer that draws them, and into which nothing but a draw was written."""
    owner = param.owner
    if not isinstance(owner, Obj) or owner.cls is not None or owner.name not in DRAWN or param.inputs:
        return False
    if param.shape.open or len(param.shape.dims) < 2:
        return False
    return all(w.name in DRAWS for w in param.writes)


def _put_back(run: Rehearsing, one: Node, other: Node) -> bool:
    """True where the generator may start with the same numbers for both."""
    told = [e for e in run.tape if e.name in SEEDS and e.subject is None and e.serial < other.serial]
    between = [e for e in told if e.serial > one.serial]
    if not between:
        return False
    before = [e for e in told if e.serial < one.serial]
    seeds: list[Value] = [e[-1].args[0] if e and e[-1].args else None for e in (before, between)]
    return not all(isinstance(s, int) for s in seeds) or seeds[0] == seeds[1]


def _where(run: Rehearsing, moved: list[Event], one: Node, other: Node) -> Place | None:
    """Where the second is made: where its way parts from that of the first, else in the function of the optimizers."""
    ways, first = ([*p.stack, p.place] for p in (other, one))
    for here, there in zip(ways, first, strict=False):
        if here is not None and there is not None and here[0] is not there[0]:
            return here
    beside = {id(s.subject.place[1]) for s in moved if isinstance(s.subject, Obj) and s.subject.place is not None}
    return next((at for at in ways if at is not None and id(at[1]) in beside), ways[0])


__all__ = ["drawn_apart"]
