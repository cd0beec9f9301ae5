"""Weights of several networks (clients, folds, checkpoints) that are put together: does an average come out?"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Event, Items, Node, Obj, Place, Value, is_module
from trainwreck.code.rehearsal.graph import ancestors, parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.gradients import held, steps
from trainwreck.code.rehearsal.trial.bench import Bench, Unknown

LINEAR = frozenset("add sub mul div neg sum mean stack float double to either data detach clone lerp".split())
"""What weights are put together by; all else makes something new of them."""
COUNTS = frozenset(["len", "size", "numel"])
WEIGHTS = frozenset(["param", "state"])
ZEROS = frozenset(["zeros_like", "zeros", "new_zeros"])
MOVED = frozenset("float double to either data detach clone".split())
MOVES = frozenset(["add_", "sub_"])
SLIGHT = 1e-6
FAR = 60
FEWEST, MOST = 40, 400
"""Between these a number of samples is drawn where the program counts them."""


def _closed(value: Value, depth: int = 0) -> Value:
    """The same sum over lists of which only the first elements are known, as long as these: an average does not depend
    on how many there are."""
    if isinstance(value, Items):
        return tuple(_closed(i, depth + 1) for i in value.items)
    if isinstance(value, tuple):
        return tuple(_closed(i, depth + 1) for i in value)
    if not isinstance(value, Node) or value.op in WEIGHTS or value.op not in LINEAR or depth > FAR:
        return value
    return replace(value, inputs=tuple(_closed(i, depth + 1) for i in value.inputs))


def not_an_average(run: Rehearsing) -> Iterator[Answer]:
    """Worked out with weights that are equal in all networks: what is written back has to be equal to them."""
    told: set[int] = set()
    for event, value in _written_back(run):
        found = _sources(value)
        place = _joined(value, [k for k, p in found.items() if p is not event.subject]) or value.place or event.place
        if len({id(n) for n in found.values()}) < 2 or place is None or event.place is None:
            continue
        if id(event.place[0]) in told:
            continue
        told.add(id(event.place[0]))
        shares = [_share(value, dict.fromkeys(found, 1.0), seed) for seed in (1, 2)]
        if None not in shares and all(s is not None and abs(s - 1) > SLIGHT for s in shares):
            text = "the shares of the networks do not add up to one: equal weights would come out as other ones"
            yield Answer(place, text, (event.place,))


def led_away(run: Rehearsing) -> Iterator[Answer]:
    """Worked out with weights of zero and others of one that they are to come nearer to: they go the other way."""
    for event, value in _written_back(run):
        found, own = _sources(value), event.subject
        if not isinstance(own, Node) or not any(p is own for p in found.values()):
            continue
        given = {key: float(p is not own) for key, p in found.items()}
        moved = [_share(value, given, seed) for seed in (1, 2)]
        place = _joined(value, list(found)) or event.place
        if any(given.values()) and all(m is not None and m < -SLIGHT for m in moved) and place is not None:
            text = "these weights are moved away from the others that they are to come nearer to"
            yield Answer(place, text, (event.place,) if event.place is not None else ())
            return


def of_one_network(run: Rehearsing) -> Iterator[Answer]:
    """Weights that were taken from one network at several times of its training, each time without a copy: all of them
    are what the network has last."""
    for event, value in _written_back(run):
        by_param: dict[int, list[Node]] = {}
        for taken, param in _sources(value).items():
            by_param.setdefault(id(param), []).append(_node(value, taken))
        for found in by_param.values():
            ordered = sorted((n for n in found if n.op == "state"), key=lambda n: n.serial)
            if len(ordered) < 2:
                continue
            param = ordered[0].inputs[0]
            used = [n.serial for n in ancestors(value) if any(p is ordered[0] for p in parts(n.inputs))]
            read = min(used, default=0)  # what was added up before the next step holds the weights as they were
            between = (s for s in steps(run) if ordered[0].serial < s.serial < min(ordered[-1].serial, read))
            if any(p is param for s in between for p in held(s)):
                place = _second_name(run, param) or ordered[0].place
                if place is not None:
                    text = "all of these are the weights of one network, which goes on being trained: none is a copy"
                    yield Answer(place, text, (event.place,) if event.place is not None else ())
                    return


def never_brought_back(run: Rehearsing) -> Iterator[Answer]:
    """Copies of a network are trained in a loop, the network itself is evaluated, and nothing of what the copies have
    learned comes back to it."""
    moved = {id(p): s for s in steps(run) for p in held(s)}
    for copy in run.objects:
        whole = copy.copy_of
        if not is_module(copy) or not isinstance(whole, Obj) or not copy.turns or len(copy.turns) < 1:
            continue
        mine, its = run.parameters(copy)[0], run.parameters(whole)[0]
        if not mine or not all(id(p) in moved for p in mine) or any(id(p) in moved for p in its):
            continue
        asked = [e for e in run.tape if e.name == "forward" and not e.grad_mode]
        judged = [e for e in asked if e.subject is whole and e.turns and e.serial > moved[id(mine[0])].serial]
        if not judged or any(e.subject is copy or getattr(e.subject, "copy_of", None) is whole for e in asked):
            continue
        learned = {id(p) for o in run.objects if o.copy_of is whole for p in run.parameters(o)[0]}
        writes = [w for p in its for w in p.writes] + [e for e in run.tape if _loads(e) and e.subject is whole]
        if any(id(n) in learned for w in writes for a in w.args for v in parts(a) for n in ancestors(v)):
            continue
        place = _dropped(run, copy, whole)
        if place is not None:
            text = "what the copies learn is never brought back: the network that is judged stays as it was"
            yield Answer(place, text, (judged[0].place,) if judged[0].place is not None else ())
            return


def _written_back(run: Rehearsing) -> Iterator[tuple[Event, Node]]:
    """What is copied into parameters, that is no parameter as it is."""
    for node in run.nodes:
        if node.op != "param":
            continue
        for event in node.writes:
            value = event.args[0] if event.name == "copy_" and event.args else _moved(run, node, event)
            if isinstance(value, Node) and value.op in LINEAR:
                yield event, value
    for event in run.tape:
        if _loads(event) and event.args:
            yield from ((event, value) for value in parts(event.args[0]) if value.op in LINEAR)


def _moved(run: Rehearsing, param: Node, event: Event) -> Node | None:
    """What ``p.add_(share * (q - p))`` makes of weights that nothing else is written into."""
    if event.name not in MOVES or not event.args or event.place is None:
        return None
    if any(
        w.name != "requires_grad" and w.place is not None and w.place[0] is not event.place[0] for w in param.writes
    ):
        return None
    return Node(event.name[:-1], (param, *event.args), dict(event.options), event.place, serial=event.serial)


def _loads(event: Event) -> bool:
    return event.name == "load_state_dict" and is_module(event.subject)


def _sources(value: Node) -> dict[int, Node]:
    """The weights (by ``id`` of the value) that a sum is put together from, with the parameter behind each; nothing
    where anything else than sums and shares is made of them."""
    found: dict[int, Node] = {}
    for node in ancestors(value, through=lambda n: n.op in LINEAR):
        if node.op in WEIGHTS:
            first = node.inputs[0] if node.op == "state" and node.inputs else node
            if isinstance(first, Node) and first.op == "param":
                found[id(node)] = first
    return found


def _joined(value: Node, keys: list[int]) -> Place | None:
    """Where all of these come together first on the way to ``value``."""
    place, wanted = None, set(keys)
    for node in ancestors(value, through=lambda n: n.op in LINEAR):
        if node.op in LINEAR - MOVED and wanted:
            behind = {id(n) for n in ancestors(node, through=lambda n: n.op in LINEAR)}
            place = (node.place or place) if wanted <= behind else place
    return place


def _node(value: Node, key: int) -> Node:
    return next(n for n in ancestors(value) if id(n) == key)


def _share(value: Node, given: dict[int, float], seed: int) -> float | None:
    """What comes out for these weights, by the ``id`` of their values."""
    import numpy as np

    random = np.random.default_rng(seed)
    counts: dict[int, float] = {}

    def leaf(node: Node) -> object:
        if node.op in ZEROS:
            return 0.0
        if node.op in COUNTS:
            return counts.setdefault(id(node), float(random.integers(FEWEST, MOST)))
        return None

    try:
        out = Bench({key: np.asarray(number) for key, number in given.items()}, leaf).work(_closed(value))
    except Unknown:
        return None
    return float(out.reshape(-1)[0]) if out.size else None


def _second_name(run: Rehearsing, param: Value) -> Place | None:
    """Where the network gets a second name in the function that trains it: a copy was meant."""
    for place, obj in run.memo.get("aliases", ()):
        node, scope = place
        handed = isinstance(node, ast.Assign) and isinstance(node.value, ast.Name) and node.value.id in scope.params
        kept = isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Attribute)  # a part of another network
        if (
            handed
            and not kept
            and isinstance(obj, Obj)
            and is_module(obj)
            and any(p is param for p in run.parameters(obj)[0])
        ):
            return place[0], place[1]
    return None


def _dropped(run: Rehearsing, copy: Obj, whole: Obj) -> Place | None:
    """Where the weights of the network are given out in place of the copy's, or what a function makes of them falls on
    the floor."""
    for event in run.tape:
        if event.name != "state_dict" or event.subject is not whole or event.place is None or copy.place is None:
            continue
        if event.place[1] is copy.place[1] and event.serial > copy.serial:
            return event.place
    if not any(e.name == "state_dict" and e.subject is copy for e in run.tape):
        return None
    for scope in run.project.scopes:
        for node in run.project.within(scope, ast.Expr):
            called = node.value if isinstance(node, ast.Expr) else None
            if not isinstance(called, ast.Call) or not isinstance(called.func, ast.Name) or not called.args:
                continue
            function = next((f for f in run.project.functions if f.name == called.func.id), None)
            gives = function is not None and any(v is not None for v in function.returns)
            if gives and function is not None and id(function.node) in run.executed:
                return node, scope
    return None


__all__ = ["led_away", "never_brought_back", "not_an_average", "of_one_network"]
