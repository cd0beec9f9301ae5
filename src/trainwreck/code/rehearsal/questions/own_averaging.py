"""Jobs that share the work among their ranks by hand: is what each one learns brought together, from one start, and
does each take a share of its own?"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import last_name
from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Event, Node, Obj
from trainwreck.code.rehearsal.graph import ancestors
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.gradients import backwards, held, steps
from trainwreck.code.rehearsal.questions.ranks import learning_loaders, wraps
from trainwreck.code.rehearsal.questions.roles import JOINS, STRUCTURE
from trainwreck.code.rehearsal.questions.streams import of_rank, seed_of
from trainwreck.code.scopes import Scope

COLLECTIVES = frozenset(
    """all_reduce reduce all_gather broadcast reduce_scatter all_gather_into_tensor all_reduce_coalesced send
    recv""".split()
)
COPIES = frozenset(["clone", "deepcopy", "copy"])
ORDERS = frozenset(["randperm", "permutation"])


def _by_hand(run: Rehearsing) -> bool:
    return not wraps(run) and any(e.full.endswith("init_process_group") for e in run.tape)


def _carried(run: Rehearsing) -> list[Event]:
    return [e for e in run.tape if e.name in COLLECTIVES and "distributed" in e.full]


# ---------------------------------------------------------------------- gradients
def never_averaged(run: Rehearsing) -> Iterator[Answer]:
    """A function that averages gradients over the ranks is written, and nothing calls it."""
    if not _by_hand(run) or any(e.name.startswith("register_") for e in run.tape):
        return
    trained = {id(p) for s in steps(run) for p in held(s)}
    first = next((s for s in steps(run) if s.turns and s.place is not None), None)
    if first is None or not trained:
        return
    for event in _carried(run):
        behind = list(ancestors(event.args, through=_moved))
        if any(n.op == "grad" or n.unknown for n in behind):
            return
        if event.serial > first.serial and event.grad_mode and any(id(n) in trained for n in behind):
            return  # weights are averaged now and then
    unused = next((f for f in run.project.functions if _averages(f) and not _called(run, f)), None)
    if unused is not None and first.place is not None:
        text = f"{unused.name} is never called: each rank steps with its own gradients"
        yield Answer(first.place, text, ((unused.node, unused),))


def _moved(node: Node) -> bool:
    """True for what only puts numbers elsewhere, or scales them."""
    return node.op in STRUCTURE | JOINS | COPIES | {"mul", "div", "parameters_to_vector", "data"}


def _averages(function: Scope) -> bool:
    """True for a function with a collective over gradients."""
    calls = {last_name(n.func) for n in ast.walk(function.node) if isinstance(n, ast.Call)}
    read = any(isinstance(n, ast.Attribute) and n.attr == "grad" for n in ast.walk(function.node))
    return read and bool(calls & {"all_reduce", "all_reduce_coalesced"})


def _called(run: Rehearsing, function: Scope) -> bool:
    for walked in run.project.walked.values():
        for node in ast.walk(walked.top.module.tree):
            if isinstance(node, ast.Name | ast.Attribute) and last_name(node) == function.name:
                return True
    return False


# ---------------------------------------------------------------------- weights
def copy_broadcast(run: Rehearsing) -> Iterator[Answer]:
    """What is sent to the other ranks, or comes from them, is a copy of a weight that is used nowhere afterwards."""
    if not _by_hand(run):
        return
    for event in _carried(run):
        given = event.args[0] if event.args else None
        if event.name != "broadcast" or not isinstance(given, Node) or given.op not in COPIES or event.place is None:
            continue
        of = [n for n in ancestors(given) if n.op == "param"]
        back = any(given in ancestors(w.args) for p in of for w in p.writes)
        read = any(n is not given and n.op != "broadcast" and any(i is given for i in n.inputs) for n in run.nodes)
        if of and not back and not read:
            yield Answer(event.place, "this broadcasts a copy: the weights of each rank stay its own", ())
            return


# ---------------------------------------------------------------------- data
def one_share(run: Rehearsing) -> Iterator[Answer]:
    """A distributed sampler is made for one rank by its number: all ranks take the share of that one."""
    if not any(e.full.endswith("init_process_group") for e in run.tape):
        return
    for loader in learning_loaders(run):
        sampler = loader.get("sampler", 3)
        if not isinstance(sampler, Obj) or sampler.name != "DistributedSampler" or sampler.place is None:
            continue
        call = sampler.place[0]
        written = [k.value for k in call.keywords if k.arg == "rank"] if isinstance(call, ast.Call) else []
        several = not isinstance(sampler.get("num_replicas", 1), int)
        if written and isinstance(written[0], ast.Constant) and isinstance(written[0].value, int) and several:
            yield Answer(sampler.place, "the sampler of every rank gives out the share of one rank")
            return


def whole_order(run: Rehearsing) -> Iterator[Answer]:
    """Each rank goes through the same order of the data, drawn from one seed, or cuts its share out of an order of its
    own."""
    if not _by_hand(run):
        return
    averaged = any(n.op == "grad" for e in _carried(run) for n in ancestors(e.args))
    for event in backwards(run) if averaged else ():
        if not event.turns:
            continue
        behind = list(ancestors(event.subject, through=lambda n: n.op != "param"))
        for order in (n for n in behind if n.op in ORDERS and n.place is not None):
            seed = seed_of(run, order)
            if seed is None or order.place is None:
                continue
            own = _of_rank(seed[1])
            shares = [n for n in behind if _taken_by_rank(n, order)]
            if own and shares and shares[0].place is not None:
                text = "the order is drawn from a seed of each rank's own, and each takes its share by its number: "
                yield Answer(seed[0], text + "the shares overlap", (shares[0].place,))
                return
            ranked = any(of_rank(n) or _split_by_rank(n) for n in behind)
            if not own and not ranked and _numbers(seed[1]):
                text = "each rank goes through all data in the same order: their gradients are all the same"
                yield Answer(order.place, text, (seed[0], *((event.place,) if event.place is not None else ())))
                return


def _of_rank(values: object) -> bool:
    return any(of_rank(n) for v in (values if isinstance(values, tuple) else (values,)) for n in ancestors(v))


def _numbers(values: object) -> bool:
    """True for a seed that is a number, or counts the epochs."""
    nodes = [n for v in (values if isinstance(values, tuple) else (values,)) for n in ancestors(v)]
    return all(n.op in ("counter", "add", "mul", "option") for n in nodes)


def _taken_by_rank(node: Node, order: Node) -> bool:
    """``order[rank::world]``."""
    index = node.inputs[1] if node.op == "getitem" and len(node.inputs) > 1 else None
    ends = index.args if isinstance(index, Obj) and index.kind == "builtins.slice" else ()
    at = node.inputs[0] if node.inputs else None
    while isinstance(at, Node) and at.op == "getitem" and at.inputs:
        at = at.inputs[0]
    return at is order and any(_of_rank(e) for e in ends)


def _split_by_rank(node: Node) -> bool:
    index = node.inputs[1] if node.op == "getitem" and len(node.inputs) > 1 else None
    ends = index.args if isinstance(index, Obj) and index.kind == "builtins.slice" else ()
    return any(_of_rank(e) for e in ends)


__all__ = ["copy_broadcast", "never_averaged", "one_share", "whole_order"]
