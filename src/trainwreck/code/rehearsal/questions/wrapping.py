"""Do the gradients of a network in ``DistributedDataParallel`` go through the wrapper that averages them?"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Event, Node, Obj, Place, Value, is_module
from trainwreck.code.rehearsal.graph import ancestors, parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.gradients import backwards, modules_under, steps
from trainwreck.code.rehearsal.questions.ranks import is_parallel, wraps
from trainwreck.code.scopes import Scope


def passed_by(run: Rehearsing) -> Iterator[Answer]:
    """The network inside the wrapper (or a part of it) is called for a loss that is learned from, the wrapper never."""
    if exchanged(run):
        return
    behind = {id(n) for b in backwards(run) if b.turns for n in ancestors(b.subject)}
    for wrap in wraps(run):
        inner, wrapper = wrap.subject, wrap.result
        if not isinstance(inner, Obj) or not isinstance(wrapper, Obj):
            continue
        outer = [e for e in run.tape if e.name == "forward" and e.subject is wrapper]
        if any(_goes_into(o.result, behind) for o in outer):
            continue
        mine = {id(m) for m in modules_under(inner)}
        mine_classes = {m.cls.scope for m in modules_under(inner) if m.cls is not None}
        for call in run.tape:
            if call.name != "forward" or call.serial < wrap.serial or id(call.subject) not in mine:
                continue
            if _goes_into(call.result, behind) and call.place is not None:
                text = "the network inside the wrapper is called: its gradients are not averaged over the ranks"
                yield Answer(_asked(call, mine_classes), text, (wrap.place,) if wrap.place is not None else ())
                return


def _goes_into(result: Value, behind: set[int]) -> bool:
    """True if a part of what a network gave is learned from."""
    return any(id(part) in behind for part in parts(result))


def _asked(call: Event, networks: set[Scope]) -> Place:
    """Where the training code asks for it: outside of the methods of the network."""
    for place in reversed((*call.stack, call.place)):
        if place is not None and place[1].owner not in networks:
            return place
    assert call.place is not None
    return call.place


def exchanged(run: Rehearsing) -> bool:
    """True if something is reduced over the ranks in a loop, beside the wrapper, that may be gradients or weights."""
    return any(e.full.endswith(("all_reduce", "reduce_scatter", "all_gather")) and e.turns and _learned(e)
               for e in run.tape)  # fmt: skip


def _learned(event: Event) -> bool:
    """True if what is exchanged may be a gradient or a weight."""
    nodes = [n for a in event.args for n in ancestors(a, through=_itself)]
    open_ends = ("grad", "param", "unknown", "opaque", "call", "argument")
    return not nodes or any(n.op in open_ends and not n.name.startswith("rank ") for n in nodes)


def _itself(node: Node) -> bool:
    """False for a number that was taken out of a tensor, and for what a layer gave: neither is a weight."""
    return node.op not in ("item", "eq", "argmax") and (node.op == "param" or not is_module(node.owner))


def joined_late(run: Rehearsing) -> Iterator[Answer]:
    """Parts that were put into the network, or set free, after it was wrapped: the wrapper doesn't know them."""
    if not is_parallel(run) or exchanged(run):
        return
    reached = {id(n) for b in backwards(run) if b.turns for n in b.state.get("reached", ())}
    for wrap in wraps(run):
        if not isinstance(wrap.subject, Obj):
            continue
        mine = list(modules_under(wrap.subject))
        again = [w for w in wraps(run) if w.serial > wrap.serial]
        for event in run.tape:
            if event.serial < wrap.serial or event.place is None or any(w.serial > event.serial for w in again):
                continue
            if event.name == "set" and any(event.subject is m for m in mine) and is_module(event.args[1]):
                new = [p for m in modules_under(event.args[1]) for p in run.own_parameters(m).values()]
                what = "this part is put into the network"
            elif event.name == "requires_grad" and event.args[:1] == (True,):
                held = [p for m in mine for p in run.own_parameters(m).values() if event in p.writes]
                new = [p for p in held if any(w.args[:1] == (False,) and w.serial < wrap.serial for w in p.writes)]
                what = "these weights are set free"
            else:
                continue
            if any(id(p) in reached for p in new):
                text = f"{what} after it was wrapped: its gradients are not averaged over the ranks"
                yield Answer(event.place, text, (wrap.place,) if wrap.place is not None else ())
                return


def never_synced(run: Rehearsing) -> Iterator[Answer]:
    """Every backward stands in ``no_sync()``, also that of the step."""
    if not is_parallel(run) or exchanged(run):
        return
    found: list[tuple[Event, Place]] = []
    for event in backwards(run):
        if event.place is None or not event.turns:
            continue
        inside = _no_sync(run, event)
        if inside is None:
            return
        found.append((event, inside))
    if found and any(s.turns for s in steps(run)):
        text = "every backward runs under no_sync: gradients are never averaged over the ranks"
        yield Answer(found[0][1], text, (found[0][0].place,) if found[0][0].place is not None else ())


def _no_sync(run: Rehearsing, event: Event) -> Place | None:
    for place in reversed((*event.stack, event.place)):
        if place is None:
            continue
        for above in run.project.ancestors(*place):
            for item in above.items if isinstance(above, ast.With) else ():
                call = item.context_expr
                if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "no_sync":
                    return call, place[1]
    return None


def averaged_late(run: Rehearsing) -> Iterator[Answer]:
    """Gradients that are reduced by hand after the step that used them."""
    if wraps(run) or not any(e.full.endswith("init_process_group") for e in run.tape):
        return
    for event in run.tape:
        if event.place is None or not event.turns or not event.full.endswith("all_reduce"):
            continue
        if not any(n.op == "grad" for a in event.args[:1] for n in ancestors(a)):
            continue
        turn = [t for t in event.turns if any(t in b.turns for b in backwards(run))]
        if not turn:
            return
        near = [e for e in run.tape if turn[-1] in e.turns and (e in backwards(run) or e in steps(run))]
        before = [e for e in near if e.serial < event.serial]
        after = [e for e in near if e.serial > event.serial]
        if not before or before[-1].name != "step" or any(e.name == "step" for e in after):
            return
        text = "gradients are averaged here after the step that has used them: the ranks drift apart"
        yield Answer(event.place, text, (before[-1].place,) if before[-1].place is not None else ())
        return
