"""Collectives that the program calls itself: do all ranks call them, and what becomes of gradients that are summed?"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import WRITTEN, Event, Node, Place, Value
from trainwreck.code.rehearsal.graph import ancestors
from trainwreck.code.rehearsal.holding import is_optimizer
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.gradients import backwards, parameters_of
from trainwreck.code.rehearsal.questions.roles import STRUCTURE, users

COLLECTIVES = frozenset(
    """barrier all_reduce all_gather all_gather_object broadcast broadcast_object_list reduce_scatter all_to_all
    all_gather_into_tensor reduce gather scatter""".split()
)
LOGIC = frozenset("eq ne lt gt le ge and or not bool int either mod compare".split())
PROCESSES = frozenset(["getpid", "gethostname", "uuid4", "mkdtemp", "time", "environ", "getenv"])
SCALES = frozenset(["div", "mul", "div_", "mul_", "true_divide", "floor_divide", "lerp", "addcdiv"])

SCALE_FREE = ("Adam", "NAdam", "RAdam", "RMSprop", "Adagrad", "Adadelta", "Rprop", "Adafactor", "Lion")
"""Optimizers whose steps stay the same where all gradients are multiplied by one number."""


def on_one_rank(run: Rehearsing) -> Iterator[Answer]:
    """A collective that is reached under a test on the rank, also through functions that the branch calls."""
    calls = [
        e for e in run.tape if e.name in COLLECTIVES and ".distributed." in e.full and e.options.get("group") is None
    ]
    told: set[int] = set()
    for event in calls:
        tests = [t for t in event.tests if isinstance(t, Node) and _of_rank(t)]
        if not tests or event.place is None or id(event.place[0]) in told:
            continue
        partners = [
            e for e in calls if e.name == event.name and e.place is not None and e.place[0] is not event.place[0]
        ]
        if any(_of_rank(t) for e in partners for t in e.tests if isinstance(t, Node)):
            continue
        if any(_left_to(p, event, tests[0]) for p in partners):
            continue
        told.add(id(event.place[0]))
        text = f"only the ranks of this branch call {event.name}: the others never do"
        place = _in_branch(event, tests[0]) or event.place
        proof = tuple(p for p in (tests[0].place, event.place) if p is not None and p is not place)
        yield Answer(place, text, proof)


def _left_to(partner: Event, event: Event, test: Node) -> bool:
    """True where the branch leaves its function, and the ranks that don't take it go on to the partner there."""
    if test.place is None:
        return False
    for branch in (n for n in test.place[1].nodes if isinstance(n, ast.If)):
        inside = {id(n) for s in branch.body for n in ast.walk(s)}
        mine = any(p is not None and id(p[0]) in inside for p in (*event.stack, event.place))
        if not mine or not isinstance(branch.body[-1], ast.Return | ast.Continue):
            continue
        for place in (*partner.stack, partner.place):
            here = place is not None and place[1] is test.place[1] and id(place[0]) not in inside
            if here and place is not None and getattr(place[0], "lineno", 0) > branch.lineno:
                return True
    return False


def _of_rank(test: Node) -> bool:
    """True for a comparison with the number of this process itself, not with what depends on it."""
    named = False
    for node in ancestors(test, through=lambda n: n.op in LOGIC):
        words = [node.name, node.op, *(i for i in node.inputs if isinstance(i, str))]
        if any("world" in w.lower() for w in words) or node.op in ("unknown", "opaque", "call"):
            return False
        named = named or (node.op not in LOGIC and any("rank" in w.lower() for w in words))
    return named


def _in_branch(event: Event, test: Node) -> Place | None:
    """The call in the function of the test that leads to the collective."""
    if test.place is None:
        return None
    inside = [p for p in (*event.stack, event.place) if p is not None and p[1] is test.place[1]]
    return next((p for p in inside if getattr(p[0], "lineno", 0) >= getattr(test.place[0], "lineno", 0)), None)


def clipped_before(run: Rehearsing) -> Iterator[Answer]:
    """Gradients that are clipped before they are summed over the ranks: each rank cuts its own by its own norm."""
    sums = _sums(run)
    for clip in (e for e in run.tape if e.name == "clip"):
        mine = {id(p) for p in parameters_of(clip.get("parameters", 0))[0]}
        last = next((b for b in reversed(backwards(run)) if b.serial < clip.serial), None)
        after = [e for e, params in sums if e.serial > clip.serial and mine & params]
        before = [
            e for e, params in sums if last is not None and last.serial < e.serial < clip.serial and mine & params
        ]
        moved = next(
            (e for e in run.tape if e.name == "step" and e.serial > clip.serial and is_optimizer(e.subject)), None
        )
        if clip.get("max_norm", 1) == math.inf:
            continue  # only measured
        if before or not after or moved is None or after[0].serial > moved.serial or clip.place is None:
            continue
        text = "each rank clips its own gradients here, before they are averaged: the norm is not that of the update"
        yield Answer(clip.place, text, tuple(p for p in (after[0].place, moved.place) if p is not None))
        return


def _sums(run: Rehearsing) -> list[tuple[Event, set[int]]]:
    """The reductions of gradients, with the parameters whose gradients they are."""
    found = []
    for event in run.tape:
        if event.name not in ("all_reduce", "reduce") or ".distributed" not in event.full:
            continue
        grads = [n for n in ancestors(event.args) if n.op == "grad"]
        params = {id(i) for g in grads for i in g.inputs if isinstance(i, Node) and i.op == "param"}
        if params:
            found.append((event, params))
    return found


def summed_only(run: Rehearsing) -> Iterator[Answer]:
    """Gradients that are summed over the ranks and that nothing divides, of a loss that is a mean over a rank's batch.

    Silent where gradients, the loss or the learning rate are scaled by anything, or where that can't be seen."""
    sums = [e for e, _ in _sums(run)]
    if not sums or any(_averages(e) for e in sums) or _scaled(run, sums):
        return
    for event in backwards(run):
        loss = event.subject
        plain = isinstance(loss, Node) and (loss.op == "mean" or loss.op.endswith(("_loss", "entropy", "_logits")))
        if not plain or loss.options.get("reduction", "mean") != "mean":
            return
    steppers = [o for o in run.objects if is_optimizer(o)]
    if any(o.place is None or any(isinstance(n, ast.Div) for n in ast.walk(o.place[0])) for o in steppers):
        return
    if any(isinstance(o.get("lr", 1), Node) or o.name.startswith(SCALE_FREE) for o in steppers):
        return
    if sums[0].place is not None and steppers:
        text = "the gradients of all ranks are added up and not divided by their number: the update is that much larger"
        yield Answer(sums[0].place, text, ())


def _averages(event: Event) -> bool:
    given: Value = event.get("op", 1)
    return given is not None and "SUM" not in repr(given)


def _scaled(run: Rehearsing, sums: list[Event]) -> bool:
    """True where something that holds gradients, also those that are put together, is scaled or not understood."""
    if any(e.name in SCALES and any(n.op == "grad" for n in ancestors(e.subject)) for e in run.tape):
        return True
    table = users(run)
    reduced = [n for e in sums for n in ancestors(e.args[:1])]
    for node in reduced:
        if node.op in SCALES or (node.op not in ("grad", "param") and node.op not in STRUCTURE):
            return True
        if node.op != "param" and any(u.op in SCALES or u.op in ("call", "opaque") for u in table.get(id(node), ())):
            return True
    grads = [n for n in run.nodes if n.op == "grad"]
    return any(u.op in SCALES for g in grads for u in table.get(id(g), ()))


def saved_by_all(run: Rehearsing) -> Iterator[Answer]:
    """A file of one name that every rank writes: no test on the rank stands before it, and the name holds none."""
    if not any(e.full.endswith("init_process_group") for e in run.tape):
        return
    told: set[int] = set()
    for event in run.tape:
        if event.full != "torch.save" or event.place is None or id(event.place[0]) in told or not _by_ranks(run):
            continue
        path = event.get("f", 1)
        if any(isinstance(t, Node) and _of_rank(t) for t in event.tests) or path is None or _differs(path):
            continue
        if any(_left_by_rank(p) for p in (*event.stack, event.place)):
            continue
        told.add(id(event.place[0]))
        yield Answer(event.place, "every rank writes this file at the same time")


def _by_ranks(run: Rehearsing) -> bool:
    """True where the number of this process is known to be one of several."""
    return any(
        (n.op == "argument" and n.name.startswith("rank "))
        or n.op == "get_rank"
        or (n.op == "option" and n.name in ("RANK", "LOCAL_RANK"))
        for n in run.nodes
    )


def _differs(path: Value) -> bool:
    """True for a path that may hold the number of the process."""
    outer = list(ancestors(path))
    nodes = [*outer, *(n for o in outer for n in ancestors(o.attributes.get(WRITTEN, ())))]
    if any(n.op in PROCESSES for n in nodes):
        return True
    return any(n.op in ("unknown", "opaque", "call") or "rank" in f"{n.name} {n.inputs}".lower() for n in nodes)


def _left_by_rank(place: Place) -> bool:
    """True in a function that some ranks leave by a test, or whose decorator may keep them out."""
    if any("grad" not in (w := ast.unparse(d)) and "inference" not in w
           for d in getattr(place[1].node, "decorator_list", [])):  # fmt: skip
        return True
    tests = (n for n in place[1].nodes if isinstance(n, ast.If) and "rank" in ast.unparse(n.test).lower())
    return any(isinstance(s, ast.Return) for t in tests for s in ast.walk(t))
