"""What a loader hands to its worker processes: can it be pickled, where these are spawned?"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from trainwreck.code.calls import last_name
from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Class, Function, Items, Node, Obj, Place, Table, Value, candidates
from trainwreck.code.rehearsal.graph import ancestors
from trainwreck.code.rehearsal.library.data import LOADERS
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.counts import number
from trainwreck.code.rehearsal.questions.paths import feeding
from trainwreck.code.rehearsal.questions.streams import DRAWS
from trainwreck.code.scopes import Scope
from trainwreck.code.sharding import numbered

SPAWNING = frozenset(["spawn", "forkserver"])
HANDED = ("dataset", "collate_fn", "worker_init_fn")
OWN_STATE = ("__getstate__", "__reduce__", "__reduce_ex__")
"""Methods by which a class says itself what is pickled of its objects."""
HANDLES = frozenset(["open", "File", "connect", "socket", "Lock", "RLock", "Condition", "Semaphore", "mmap"])
MAX_DEPTH = 8
SEEDING = frozenset(["seed", "manual_seed", "initial_seed", "get_worker_info", "int", "print", "set_num_threads"])
"""What the first function of a worker may call without any data set hearing of it."""
MAKERS = frozenset(["default_rng", "RandomState", "Generator", "Random"])


def local_functions(run: Rehearsing) -> Iterator[Answer]:
    """A lambda, or a function or class of a function's own, in what spawned workers get."""
    for loader, value, depth in _handed(run):
        found = _local(value)
        if found is not None and depth < MAX_DEPTH:
            text = f"{found[1]} can't be pickled, and the workers of this loader are spawned: they get a pickled copy"
            yield Answer(found[0], text, (loader.place,) if loader.place is not None else ())


def handles(run: Rehearsing) -> Iterator[Answer]:
    """An open file, a connection or a lock in what spawned workers get."""
    for loader, value, _ in _handed(run):
        if not isinstance(value, Node | Obj):
            continue
        held = (value.op if isinstance(value, Node) else value.name) in HANDLES
        if held and value.place is not None and value.serial < loader.serial:  # else a worker opens it for itself
            text = "this can't be pickled, and the workers of this loader are spawned: they get a pickled copy"
            yield Answer(value.place, text, (loader.place,) if loader.place is not None else ())


def _handed(run: Rehearsing) -> Iterator[tuple[Obj, Value, int]]:
    """Everything that loaders with spawned workers, which are gone through, hand to them."""
    gone_through = {id(e.subject) for e in run.tape if e.name == "iterate"}
    told: set[int] = set()
    for loader in run.objects:
        if loader.name not in LOADERS or id(loader) not in gone_through or not _spawns(run, loader):
            continue
        queue: list[tuple[Value, int]] = [(loader.get(HANDED[0], 0), 0)]
        queue += [(loader.options.get(name), 0) for name in HANDED[1:]]
        while queue:
            value, depth = queue.pop(0)
            if value is None or id(value) in told or depth > MAX_DEPTH:
                continue
            told.add(id(value))
            yield loader, value, depth
            queue += [(inner, depth + 1) for inner in _inside(value)]


def _spawns(run: Rehearsing, loader: Obj) -> bool:
    workers = number(run, loader.get("num_workers", 5, 0))
    if not workers:
        return False
    context = loader.options.get("multiprocessing_context")
    if isinstance(context, Node | Obj):
        given = context.inputs if isinstance(context, Node) else context.args
        named = (context.op if isinstance(context, Node) else context.name) == "get_context"
        context = next((g for g in given if isinstance(g, str)), None) if named else None
        return context in SPAWNING
    if context is not None:
        return context in SPAWNING
    told = [n for n in run.nodes if n.op == "set_start_method" and n.serial < loader.serial]
    return bool(told) and told[-1].get("method", 0) in SPAWNING and not told[-1].maybe


def _inside(value: Value) -> list[Value]:
    match value:
        case Obj():
            if value.cls is not None and any(value.cls.find(name) is not None for name in OWN_STATE):
                return []
            return [*value.attributes.values(), *(value.args if value.cls is None else ())]
        case Items():
            return list(value.items)
        case Table():
            return list(value.entries.values())
        case tuple():
            return list(value)
        case Node() if value.op == "either":
            return []  # which of them it is, isn't known
    return []


def _local(value: Value) -> tuple[Place, str] | None:
    """Where something is defined that pickle can't find by its name, and what."""
    if isinstance(value, Function):
        if isinstance(value.node, ast.Lambda):
            return (value.node, value.scope), "a lambda"
        return ((value.node, value.scope), f"the local function {value.name}") if _in_function(value.scope) else None
    cls: Class | None = value.cls if isinstance(value, Obj) else None
    if cls is not None and _in_function(cls.scope):
        return (cls.scope.node, cls.scope), f"the local class {cls.name}"
    return None


def _in_function(scope: Scope) -> bool:
    at = scope.parent
    while at is not None:
        if at.kind == "function":
            return True
        at = at.parent
    return False


def copied_generator(run: Rehearsing) -> Iterator[Answer]:
    """A generator that was made with the data set, from which its samples draw in several workers: each has a copy."""
    told: set[int] = set()
    for node in run.nodes:
        loader = node.owner
        if node.op != "batch" or not isinstance(loader, Obj) or loader.name not in LOADERS:
            continue
        workers = number(run, loader.get("num_workers", 5, 0))
        if not workers or _reseeded(loader):
            continue
        if workers == 1 and loader.options.get("persistent_workers") is True:
            continue
        for draw in (n for n in ancestors(node) if n.op in DRAWS):
            maker = next((i for i in (*draw.inputs, *draw.options.values()) if _made_before(i, loader)), None)
            if maker is None or id(maker) in told or not _in_sample(draw):
                continue
            told.add(id(maker))
            text = "the workers of this loader get copies of one generator: they draw the same numbers, in every epoch"
            yield Answer(maker.place, text, tuple(p for p in (draw.place, loader.place) if p is not None))


def made_in_worker(run: Rehearsing) -> Iterator[Answer]:
    """A generator that each worker makes for itself, once, of a seed that is the same in all of them."""
    told: set[int] = set()
    used = feeding(run)
    for batch in (n for n in run.nodes if n.op == "batch" and id(n) in used):
        loader = batch.owner
        if not isinstance(loader, Obj) or loader.name not in LOADERS or _reseeded(loader):
            continue
        workers = number(run, loader.get("num_workers", 5, 0))
        if not workers or workers < 2:
            continue
        for draw in (n for n in ancestors(batch) if n.op in DRAWS):
            maker = next((i for i in (*draw.inputs, *draw.options.values()) if _is_maker(i)), None)
            if not isinstance(maker, Node | Obj) or maker.serial < loader.serial or maker.place is None:
                continue
            way = [*maker.stack, maker.place]
            stream = any(at[1].name == "__iter__" for at in way) and not _asks_worker(run, way)
            if id(maker.place[0]) in told or not _one_seed(maker) or not (stream or _stays(run, maker, draw)):
                continue
            told.add(id(maker.place[0]))
            text = f"each of the {workers:.0f} workers makes its generator here, of one seed: all draw the same numbers"
            yield Answer(maker.place, text, tuple(p for p in (draw.place, loader.place) if p is not None))


def _stays(run: Rehearsing, maker: Node | Obj, draw: Node) -> bool:
    """True where a generator is made while a sample is, and kept for those that follow."""
    if not _in_sample(draw) or not any(at[1].name == "__getitem__" for at in (*maker.stack, maker.place) if at):
        return False
    kept = (v for o in run.objects for v in o.attributes.values())
    return any(v is maker or (isinstance(v, Table) and any(e is maker for e in v.entries.values())) for v in kept)


def _asks_worker(run: Rehearsing, way: list[Place]) -> bool:
    """True where what makes the stream looks at the number of its worker anywhere. How many there are tells none
    from another."""
    streams = {id(at[1]): at[1] for at in way if at[1].name == "__iter__"}
    scopes = streams.keys()
    read = {n.attr for scope in streams.values() for n in scope.nodes if isinstance(n, ast.Attribute)}
    if "num_workers" in read and not read & {"id", "seed"} and not _handed_on(streams.values()):
        return False
    inside = (n for n in run.nodes if any(id(at[1]) in scopes for at in (*n.stack, n.place) if at is not None))
    return any(n.op == "get_worker_info" or _of_worker(n) for n in inside)


def _handed_on(scopes: Iterable[Scope]) -> bool:
    """True where something is asked of a function with a name for workers or ranks, other than how many there are."""
    calls = (n for scope in scopes for n in scope.nodes if isinstance(n, ast.Call))
    names = [last_name(n.func).lower() for n in calls]
    return any(("worker" in n or "rank" in n or "seed" in n) and n != "get_worker_info" for n in names)


def _one_seed(maker: Node | Obj) -> bool:
    """True for a generator of numbers that are written out."""
    given = [*maker.inputs, *maker.options.values()] if isinstance(maker, Node) else [*maker.args]
    given += [] if isinstance(maker, Node) else [*maker.options.values()]
    seeds = [g for g in given if not _is_maker(g)]
    return bool(seeds) and all(isinstance(s, int) and not isinstance(s, bool) for s in seeds)


def _is_maker(value: Value) -> bool:
    named = value.op if isinstance(value, Node) else value.name if isinstance(value, Obj) else ""
    return named in MAKERS or (named == "manual_seed" and isinstance(value, Node) and bool(value.inputs))


def _reseeded(loader: Obj) -> bool:
    """True where the workers are told what to do first, and that may reach the data set."""
    told = loader.options.get("worker_init_fn")
    if not isinstance(told, Function):
        return told is not None
    calls = [last_name(n.func) for n in ast.walk(told.node) if isinstance(n, ast.Call)]
    held = any(isinstance(n, ast.Attribute) and n.attr == "dataset" for n in ast.walk(told.node))
    return held or any(c not in SEEDING for c in calls)


def _made_before(value: Value, loader: Obj) -> bool:
    return _is_maker(value) and value.serial < loader.serial and value.place is not None


def _in_sample(draw: Node) -> bool:
    """True for a draw that a data set makes for one sample."""
    scopes = [p[1].name for p in (*draw.stack, draw.place) if p is not None]
    return "__getitem__" in scopes


def unsharded(run: Rehearsing) -> Iterator[Answer]:
    """A stream that every one of several workers goes through as a whole: the worker's number decides about nothing."""
    told: set[int] = set()
    for batch in (n for n in run.nodes if n.op == "batch"):
        loader = batch.owner
        if not isinstance(loader, Obj) or loader.name not in LOADERS or id(loader) in told:
            continue
        workers, data = number(run, loader.get("num_workers", 5, 0)), loader.get("dataset", 0)
        walk = data.cls.find("__iter__") if isinstance(data, Obj) and data.cls is not None else None
        if not workers or workers < 2 or not isinstance(walk, Function) or not _is_stream(data):
            continue
        told.add(id(loader))
        if loader.options.get("worker_init_fn") is not None:
            continue
        inside = [n for n in run.nodes if any(p[1] is walk.scope for p in (*n.stack, n.place) if p is not None)]
        loops = [t for n in inside for t in n.turns if t.scope is walk.scope and isinstance(t.node, ast.For)]
        if not loops or any(n.op in DRAWS and not n.inputs for n in inside):
            continue
        if any(isinstance(c, Obj) and c.cls is not None for t in loops for c in candidates(t.over)):
            continue  # a stream around another one, that may share itself out
        asked = {id(n) for n in inside if n.op == "get_worker_info"}
        if any(n.op in ("unknown", "call") for t in loops for n in ancestors(t.over)):
            continue
        decides = [n for t in loops for n in ancestors(t.over)] + [n for n in inside if n.op in ("mod", "eq", "ne")]
        if any(id(a) in asked for n in decides for a in ancestors(n)) or any(_of_worker(n) for n in decides):
            continue
        told_in = {id(p[0]) for n in inside if n.op == "get_worker_info" for p in n.stack}
        if any(_asks(t.node, walk, told_in) for t in loops) or any(_draws_each(t.node, inside) for t in loops):
            continue
        text = f"each of the {workers:.0f} workers yields every sample: its number decides about none of them"
        proof = (loader.place,) if loader.place is not None else ()
        yield Answer(numbered(run.project, loops[0].node, walk.scope), text, proof)


def _asks(loop: ast.AST, walk: Function, calls: set[int]) -> bool:
    """True where a name that was made from the worker's number, or a call (``id``) that asks for it, stands in the
    loop."""
    names = {"get_worker_info"}
    for _ in range(4):
        for node in ast.walk(walk.node):
            if isinstance(node, ast.Assign) and (names & _names(node.value) or _holds(node.value, calls)):
                names |= {n for target in node.targets for n in _names(target)}
    asked = loop.iter if isinstance(loop, ast.For) else loop
    return bool(names & _names(loop)) or _holds(asked, calls)


def _holds(node: ast.AST, calls: set[int]) -> bool:
    return any(id(n) in calls for n in ast.walk(node))


def _draws_each(loop: ast.AST, inside: list[Node]) -> bool:
    """True for so many turns, whose number is of no use in them: each draws what it yields."""
    if not isinstance(loop, ast.For) or not isinstance(loop.iter, ast.Call):
        return False
    if last_name(loop.iter.func) not in ("range", "count", "repeat"):
        return False
    used = {n for statement in loop.body for n in _names(statement)}
    drawn = any(n.op in DRAWS and any(t.node is loop for t in n.turns) for n in inside)
    return drawn and not _names(loop.target) & used


def _names(node: ast.AST) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}


def _is_stream(data: Value) -> bool:
    bases = data.cls.external() if isinstance(data, Obj) and data.cls is not None else []
    return any(base.rpartition(".")[2] == "IterableDataset" for base in bases)


def _of_worker(node: Node) -> bool:
    """True for what may say which worker or rank this is."""
    words = f"{node.name} {node.op} {[i for i in node.inputs if isinstance(i, str)]}".lower()
    return any(w in words for w in ("worker", "rank", "environ", "getpid"))
