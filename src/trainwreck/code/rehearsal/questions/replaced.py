"""Is a layer whose weights were loaded put aside for a fresh one that nothing trains?"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Event, Node, Obj, Value, candidates, is_module
from trainwreck.code.rehearsal.graph import ancestors, parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.gradients import held, steps


def replaced(run: Rehearsing) -> Iterator[Answer]:
    """After loading, a layer is made anew; no optimizer ever holds it, and the network is run with it."""
    loads = [e for e in run.tape if e.name == "load_state_dict" and is_module(e.subject) and not e.maybe]
    trained = {id(p) for e in steps(run) for p in held(e)}
    if not loads or not trained:
        return
    for event in run.tape:
        if event.name != "set" or event.place is None or event.maybe or len(event.args) < 2:
            continue
        old, new = event.options.get("old"), event.args[1]
        before = next((e for e in reversed(loads) if e.serial < event.serial and e.subject is event.subject), None)
        if before is None or not isinstance(old, Obj) or not isinstance(new, Obj) or old is new:
            continue
        if old.serial > before.serial or new.serial < before.serial or not is_module(new) or new.kind != old.kind:
            continue
        params = run.parameters(new)[0]
        fresh = bool(params) and not any(id(p) in trained or _filled(run, p.writes, event) for p in params)
        again = any(e.serial > event.serial and e.subject is event.subject and not _own(run, e, event) for e in loads)
        if fresh and _runs(run, new) and not again:
            text = "this layer is made anew after its weights were loaded, and nothing trains it"
            yield Answer(event.place, text, (before.place,) if before.place is not None else ())
            return


def thrown_away(run: Rehearsing) -> Iterator[Answer]:
    """After training, a layer is made anew or drawn anew; nothing trains it again, and the network is run or saved with
    it."""
    told: set[int] = set()
    for event, before, after in _renewals(run):
        place = event.place
        if place is None or event.maybe or event.turns or id(place[0]) in told or not before:
            continue
        learned = [s for s in steps(run) if s.serial < event.serial and any(p is b for p in held(s) for b in before)]
        learned += [w for b in before for w in b.writes if w.name == "load_state_dict" and w.serial < event.serial]
        later = [s for s in steps(run) if s.serial > event.serial and any(p is a for p in held(s) for a in after)]
        later_on = [e for e in run.tape if e.serial > event.serial and e.name in ("forward", "state_dict")]
        used = any(_holds(run, e.subject, after) for e in later_on)
        if learned and not later and used and not any(_filled(run, p.writes, event) for p in after):
            told.add(id(place[0]))
            text = "this layer was trained before, and starts anew here: nothing trains it again"
            yield Answer(place, text, tuple(p for p in (learned[-1].place,) if p is not None))


def drawn_anew(run: Rehearsing) -> Iterator[Answer]:
    """Most of the weights that were loaded into a network are drawn anew afterwards."""
    for load in [e for e in run.tape if e.name == "load_state_dict" and is_module(e.subject) and not e.maybe]:
        given = [n for n in run.nodes if n.op == "param" and any(w is load for w in n.writes)]
        lost = []
        for param in given:
            later = [w for w in param.writes if w.serial > load.serial]
            first = next((w for w in later if w.full.startswith("torch.nn.init") and not w.maybe), None)
            if first is not None and not any(w.name in ("load_state_dict", "copy_") for w in later):
                lost.append((param, first))
        weights = [p for p in given if not p.shape.open and len(p.shape.dims) > 1]
        large = [p for p, _ in lost if not p.shape.open and len(p.shape.dims) > 1]
        if len(large) > 1 and 2 * len(large) > len(weights) and lost[0][1].place is not None:
            text = "the weights that were loaded before are drawn anew here"
            yield Answer(lost[0][1].place, text, tuple(p for p in (load.place,) if p is not None))
            return


def left_aside(run: Rehearsing) -> Iterator[Answer]:
    """Weights are loaded into one network, and another one of its class, made afterwards, is trained."""
    for load in [e for e in run.tape if e.name == "load_state_dict" and is_module(e.subject) and not e.maybe]:
        owners = (o for o in run.objects if is_module(o) and o.cls is not None and _has(run, o, load.subject))
        whole = next(owners, None)
        if whole is None or load.place is None:
            continue
        used = [e for e in run.tape if e.serial > load.serial and e.name in ("forward", "state_dict", "deepcopy")
                and (e.subject is whole or _has(run, whole, e.subject))]  # fmt: skip
        copies = any(o.copy_of is whole for o in run.objects)
        read = {id(i) for n in run.nodes if n.serial > load.serial and n.op != "param" for i in n.inputs}
        if used or copies or any(id(p) in read for p in run.parameters(whole)[0]):
            continue
        for other in run.objects:
            if other.cls is not whole.cls or other.serial < load.serial or other.place is None or other.maybe:
                continue
            params = run.parameters(other)[0]
            learns = any(p is q for s in steps(run) if s.serial > load.serial for q in held(s) for p in params)
            if learns and other.place[1] is load.place[1]:
                text = "another network is made here: the one that was given the weights is never used"
                yield Answer(other.place, text, (load.place,))
                return


def _has(run: Rehearsing, module: Obj, part: Value) -> bool:
    return module is part or any(inner is part for _, inner in run.submodules(module, deep=True))


def _renewals(run: Rehearsing) -> Iterator[tuple[Event, list[Node], list[Node]]]:
    """Events that renew a layer, with its parameters before and after."""
    for event in run.tape:
        if event.name == "set" and len(event.args) > 1:
            old, new = event.options.get("old"), event.args[1]
            both = isinstance(old, Obj) and isinstance(new, Obj) and is_module(new) and new.kind == old.kind
            if both and old is not new and new.copy_of is None:
                yield event, run.parameters(old)[0], run.parameters(new)[0]
        elif event.name == "reset_parameters" and is_module(event.subject):
            found = run.parameters(event.subject)[0]
            yield event, found, found


def _holds(run: Rehearsing, module: Obj, params: list[Node]) -> bool:
    return is_module(module) and any(p is q for p in run.parameters(module)[0] for q in params)


def _own(run: Rehearsing, load: Event, event: Event) -> bool:
    """True for a state that the network itself had after ``event``."""
    own = {id(p) for p in run.parameters(load.subject)[0]}
    behind = [
        n
        for one in candidates(load.get("state_dict", 0))
        for n in ancestors(one, through=lambda n: n.op != "param")
        if n.op == "param"
    ]
    made = any(n.serial > event.serial for one in candidates(load.get("state_dict", 0)) for n in parts(one))
    return made and bool(behind) and all(id(p) in own for p in behind)


def _filled(run: Rehearsing, writes: list[Event], event: Event) -> bool:
    """True where something is written into the new layer later."""
    later = [w for w in writes if w.serial > event.serial and w.name != "requires_grad"]
    return any(w.name != "load_state_dict" or not _own(run, w, event) for w in later)


def _runs(run: Rehearsing, layer: Obj) -> bool:
    return any(e.name == "forward" and e.subject is layer for e in run.tape)
