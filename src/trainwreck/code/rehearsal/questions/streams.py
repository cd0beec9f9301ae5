"""Random data of a parallel job: does each rank draw its own, or do all draw the same from one seed?"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Event, Node, Obj, Place, Value, candidates
from trainwreck.code.rehearsal.graph import ancestors, parts
from trainwreck.code.rehearsal.library.data import LOADERS
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.gradients import backwards
from trainwreck.code.rehearsal.questions.ranks import is_parallel, wraps

DRAWS = frozenset(
    """randn rand randint randperm normal uniform multinomial bernoulli integers random choice permutation
    standard_normal rand_like randn_like sample choices shuffle""".split()
)
"""What draws random numbers."""
VARY = frozenset(["time", "time_ns", "urandom", "perf_counter", "item", "initial_seed", "token_bytes"])
SEEDED = frozenset(["manual_seed", "default_rng", "RandomState", "seed", "PRNGKey"])
GLOBAL = frozenset(["torch", "numpy", "random"])
"""Packages with one generator for the whole process."""


def same_stream(run: Rehearsing) -> Iterator[Answer]:
    """Batches that every rank draws (or picks) with a generator of one seed: all ranks see the same samples.

    Silent where the rank goes into anything that the batch was made from, or a seed isn't known."""
    if not is_parallel(run):
        return
    for event in backwards(run):
        if not event.turns or not event.turns[-1].generic:
            continue
        data = _fed(run, event)
        behind = [n for d in data for n in ancestors(d)]
        draws = [n for n in behind if n.op in DRAWS]
        if not draws or any(of_rank(n) for n in behind) or not _all_streamed(behind):
            continue
        streamed = any(n.op == "batch" for n in behind)
        inside = [d for d in draws if streamed or (d.turns and d.turns[0].node is event.turns[0].node)]
        seeds = [seed_of(run, d) for d in draws]
        known = [s for s in seeds if s is not None]
        if not inside or len(known) != len(seeds) or any(_varies(value) for _, value in known):
            continue
        place = next((s[0] for d, s in zip(draws, known, strict=True) if d in inside), known[0][0])
        text = "all ranks start from this seed, and each draws its samples with it: they see the same batches"
        proof = (inside[0].place, *(w.place for w in wraps(run)[:1]))
        yield Answer(place, text, tuple(p for p in proof if p is not None))
        return


def _fed(run: Rehearsing, event: Event) -> list[Node]:
    """What the wrapped network is given for a loss that is learned from."""
    wrappers = [w.result for w in wraps(run)]
    behind = {id(n) for n in ancestors(event.subject)}
    found: list[Node] = []
    for forward in run.tape:
        if forward.name != "forward" or not any(forward.subject is w for w in wrappers):
            continue
        if any(id(p) in behind for p in parts(forward.result)):
            found += [p for a in (*forward.args, *forward.options.values()) for p in parts(a)]
    return found


def of_rank(node: Node) -> bool:
    """True for the number of this process, or what may be made from it unseen."""
    words = [node.name, node.op, *(i for i in node.inputs if isinstance(i, str))]
    if any("rank" in w.lower() for w in words) or node.op in ("unknown", "opaque", "call", "getpid"):
        return True
    ends = [e for i in node.inputs if isinstance(i, Obj) and i.name == "slice" for e in i.args]
    return any(of_rank(n) for e in ends if isinstance(e, Node) for n in ancestors(e))


def _all_streamed(behind: list[Node]) -> bool:
    """False where a batch comes from a loader of numbered samples: its sampler decides who sees what."""
    loaders = [n.owner for n in behind if n.op == "batch" and isinstance(n.owner, Obj) and n.owner.name in LOADERS]
    return all(iterable(c) for loader in loaders for c in candidates(loader.get("dataset", 0)))


def iterable(data: Value) -> bool:
    return isinstance(data, Obj) and data.cls is not None and data.cls.find("__iter__") is not None


def seed_of(run: Rehearsing, draw: Node) -> tuple[Place, Value] | None:
    """Where the generator of a draw got its seed, and the seed; None where that isn't known."""
    given = draw.options.get("generator")
    makers = [given] if given is not None else [i for i in draw.inputs if _generator(i)]
    for maker in makers:
        if isinstance(maker, Node) and maker.op in SEEDED and maker.place is not None:
            seed = tuple(i for i in maker.inputs if not isinstance(i, Obj))
            return (maker.place, seed) if seed else None
        if isinstance(maker, Obj):
            if maker.name in SEEDED and maker.args and maker.place is not None:
                return maker.place, maker.args
            told = [e for e in run.tape if e.name == "manual_seed" and e.subject is maker and e.serial < draw.serial]
            return (told[-1].place, told[-1].args) if told and told[-1].place is not None else None
        return None
    package = draw.full.partition(".")[0]
    if package not in GLOBAL or not draw.full:
        return None
    told = [e for e in run.tape if e.name in SEEDED and e.subject is None and e.serial < draw.serial]
    mine = [e for e in told if e.full.partition(".")[0] == package]
    if not mine or mine[-1].place is None or mine[-1].turns:
        return None
    return mine[-1].place, mine[-1].args


def _generator(value: Value) -> bool:
    return (isinstance(value, Node) and value.op in SEEDED) or (isinstance(value, Obj) and value.name in SEEDED)


def _varies(seed: Value) -> bool:
    """True if a seed may differ from rank to rank."""
    given = seed if isinstance(seed, tuple) else (seed,)
    if not given or any(not isinstance(g, int | Node) for g in given):
        return True
    nodes = [n for g in given for n in (ancestors(g) if isinstance(g, Node) else ())]
    named = {id(i) for n in nodes if n.op == "attribute" for i in n.inputs}  # settings are handed to all ranks alike
    return any(of_rank(n) or n.op in VARY or (n.op == "argument" and id(n) not in named) for n in nodes)
