"""Networks of a job whose ranks average their gradients by hand: do they start from the same weights?"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Event, Node, Obj, Value, is_module
from trainwreck.code.rehearsal.graph import ancestors
from trainwreck.code.rehearsal.holding import is_optimizer
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.streams import VARY

JOINS = frozenset(["all_reduce", "reduce", "all_reduce_coalesced", "all_gather", "reduce_scatter_tensor"])
"""Collectives with which gradients are averaged by hand."""
ALIKE = frozenset(
    """wrap broadcast broadcast_ _broadcast_coalesced broadcast_object_list load_state_dict from_pretrained scatter
    broadcast_parameters sync_params""".split()
)
"""What may give all ranks the weights of one."""
SEEDS = ("manual_seed", "seed_everything", "set_seed", "manual_seed_all")


def unlike(run: Rehearsing) -> Iterator[Answer]:
    """Weights that every rank draws by itself, from a seed of its own, where only gradients are exchanged.

    Silent where anything carries weights (or the whole state) from one rank to the others before the first step."""
    if not any(e.full.endswith("init_process_group") for e in run.tape):
        return
    exchanged: dict[int, Event] = {}
    for event in run.tape:
        if event.name in JOINS and "distributed" in event.full:
            for grad in (n for n in ancestors(event.args) if n.op == "grad"):
                for param in (i for i in grad.inputs if isinstance(i, Node) and i.op == "param"):
                    exchanged.setdefault(id(param), event)
    if not exchanged:
        return
    for optimizer in (o for o in run.objects if is_optimizer(o)):
        held = [p for p in run.optimized(optimizer)[0] if id(p) in exchanged]
        first = next((e for e in run.tape if e.name == "step" and e.subject is optimizer), None)
        if not held or first is None:
            continue
        network = _network(run, held)
        if network is None or network.place is None or _made_alike(run, network, held, first):
            continue
        seed = _seed(run, network)
        if seed is False:
            continue
        proof = [exchanged[id(held[0])].place, seed.place if isinstance(seed, Event) else None]
        beside = optimizer.place[1] if optimizer.place is not None else None
        ways = [at for at in (*network.stack, network.place) if at[1] is beside]
        text = "each rank draws its own weights here, and only gradients are exchanged: the replicas never agree"
        yield Answer(ways[0] if ways else network.place, text, tuple(p for p in proof if p is not None))
        return


def _network(run: Rehearsing, held: list[Node]) -> Obj | None:
    """The outermost module that holds them."""
    wanted = {id(p) for p in held}
    found = [(len(wanted & {id(p) for p in run.parameters(o)[0]}), o) for o in run.objects if is_module(o)]
    return max(found, key=lambda pair: pair[0])[1] if found else None


def _made_alike(run: Rehearsing, network: Obj, held: list[Node], first: Event) -> bool:
    wanted = {id(p) for p in held}
    for event in run.tape:
        if event.serial > first.serial:
            return False
        if event.name in ALIKE and (event.subject is network or event.subject is None):
            carried = list(ancestors((*event.args, *event.options.values())))
            whole = any(isinstance(a, Obj) for a in event.args) or not event.args
            if event.subject is network or whole or any(id(n) in wanted for n in carried):
                return True
            if any(n.op in ("unknown", "opaque", "call", "state") for n in carried) and not _of_buffers(event):
                return True
        elif event.name in JOINS and any(id(n) in wanted for n in ancestors(event.args, through=_no_gradient)):
            return True
    return False


def _of_buffers(event: Event) -> bool:
    """True in a loop over the buffers of a module alone."""
    return any(isinstance(t.node, ast.For) and ".buffers(" in ast.unparse(t.node.iter) for t in event.turns)


def _no_gradient(node: Node) -> bool:
    return node.op != "grad"


def _seed(run: Rehearsing, network: Obj) -> Event | bool:
    """What seeded torch last before the network was made, if it differs by rank; True where nothing did; False where
    all ranks have the same seed, or that isn't known."""
    told = [e for e in run.tape if e.serial < network.serial and e.name in SEEDS and e.subject is None]
    mine = [e for e in told if not e.full.startswith(("numpy", "random"))]
    mine = [e for e in mine if not _of_the_parent(run, e)]
    if not mine:
        return True
    last = mine[-1]
    given = [n for a in last.args for n in ancestors(a)]
    written = ast.unparse(last.place[0]).lower() if last.place is not None else ""
    return last if given and ("rank" in written or any(_differs(n) for n in given)) else False


def _of_the_parent(run: Rehearsing, seed: Event) -> bool:
    """True for a seed that was set before this process was spawned: a new interpreter does not know of it."""
    begun = next((e for e in run.tape if e.full.endswith("init_process_group")), None)
    return begun is not None and bool(begun.stack) and not seed.stack and seed.serial < begun.serial


def _differs(node: Node) -> bool:
    words: list[Value] = [node.name, node.op, *node.inputs]
    return node.op in VARY or any(isinstance(w, str) and "rank" in w.lower() for w in words)
