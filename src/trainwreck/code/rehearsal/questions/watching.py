"""Which figure decides what is kept, or when training stops: one of the training, where others were held out?"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from trainwreck.code.calls import written
from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Event, Node, Place
from trainwreck.code.rehearsal.graph import ancestors, parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.evaluation import KEEPS, branch_of, keeps_module, names_test, scores_of
from trainwreck.code.rehearsal.questions.gradients import backwards
from trainwreck.code.rehearsal.questions.modes import inside_another
from trainwreck.code.rehearsal.questions.paths import evaluated, paths, trained

COMPARES = frozenset(["gt", "lt", "ge", "le"])


def chosen_on_training(run: Rehearsing) -> Iterator[Answer]:
    """A best value of the training loss that decides what is kept, in a loop that evaluates on other data too.

    Silent where those data are called test data: these are to decide nothing."""
    learned = {id(b.subject) for b in backwards(run)}
    judged = [e for e in run.tape if _judges(run, e)]
    if not judged:
        return
    behind = {id(n) for e in judged if isinstance(e.result, Node) for n in [e.result]}
    epochs = {id(t) for b in backwards(run) for t in b.turns}
    told: set[int] = set()
    for node in run.nodes:
        test = node.attributes.get("?test")
        if node.op != "either" or not isinstance(test, Node) or test.op not in COMPARES or node.place is None:
            continue
        decided = branch_of(run, node)
        if decided is None or id(decided[0]) in told or not node.turns:
            continue
        branch = decided[0]
        body = " ".join(written(s) for s in branch.body).lower()
        scores = scores_of(test, node)
        if not scores or not (KEEPS.search(body) or keeps_module(branch) or _counts(branch)):
            continue
        inner = [list(ancestors(score)) for score in scores]
        if not all(any(id(n) in learned for n in found) for found in inner):
            continue
        if any(id(n) in behind for found in inner for n in found):
            continue
        around = [t for t in node.turns if id(t) in epochs] or list(node.turns)  # not that over a list of callbacks
        beside = [e for e in judged if list(e.turns[: len(around)]) == around]
        if beside and not any(names_test(p) for e in beside for p in (*e.stack, e.place) if p is not None):
            told.add(id(branch))
            text = "the training loss decides what is kept, though other data are evaluated in the same turn"
            place = _chosen_by_name(run, decided) or _told_to(node, decided) or decided
            yield Answer(place, text, tuple(p for p in (_asked(beside[0]),) if p is not None))


def chosen_on_the_trained(run: Rehearsing) -> Iterator[Answer]:
    """What is kept is decided by a score of the network on the rows that it learns from, though two other parts of
    the data are evaluated as well: one of them is to choose by.

    Silent where there is a single other part: that may be the last test, which is to decide nothing."""
    judged = _rows_of(run, evaluated(run))
    taught = {key for keys in _rows_of(run, trained(run)).values() for key in keys}
    others = {keys for keys in judged.values() if keys and not keys <= taught}
    if len(others) < OTHERS or not taught:
        return
    events = {id(n): e for e, _ in evaluated(run) for n in parts(e.result)}
    told: set[int] = set()
    for node in run.nodes:
        test = node.attributes.get("?test")
        if node.op != "either" or not isinstance(test, Node) or test.op not in COMPARES or not node.turns:
            continue
        decided = branch_of(run, node)
        if decided is None or id(decided[0]) in told:
            continue
        body = " ".join(written(s) for s in decided[0].body).lower()
        scores = scores_of(test, node)
        if not scores or not (KEEPS.search(body) or keeps_module(decided[0]) or _counts(decided[0])):
            continue
        asked = [events[id(n)] for score in scores for n in ancestors(score) if id(n) in events]
        found = [judged.get(id(e), frozenset()) for e in asked]
        if not any(found) or not all(keys <= taught for keys in found):
            continue
        told.add(id(decided[0]))
        first = next(e for e in asked if judged.get(id(e)))
        place = next((p for p in first.stack if p[1] is decided[1]), None) or first.place or decided
        yield Answer(place, "this scores the rows that are trained on, and decides what is kept", (decided,))


OTHERS = 2
"""Parts of the data beside those that are trained on: one to choose by, one for the last test."""


def _rows_of(run: Rehearsing, given: Iterable[tuple[Event, Node]]) -> dict[int, frozenset[object]]:
    """By ``id`` of the event: from which arrays the data come that it is given, and by which fixed parts of them."""
    found: dict[int, set[object]] = {}
    for event, node in given:
        keys = found.setdefault(id(event), set())
        keys |= {(id(p.root), tuple(s.key for s in p.fixed)) for p in paths(run, node)}
    return {event: frozenset(keys) for event, keys in found.items()}


def _counts(branch: ast.If) -> bool:
    """True where a count begins anew when the value is better and goes on when it isn't: the patience."""
    stored = [a for s in branch.body for a in ast.walk(s) if isinstance(a, ast.Assign)]
    zeros = {
        written(t)
        for a in stored
        for target in a.targets
        for t, v in (
            zip(target.elts, a.value.elts, strict=False)
            if isinstance(target, ast.Tuple) and isinstance(a.value, ast.Tuple)
            else [(target, a.value)]
        )
        if isinstance(v, ast.Constant) and v.value == 0
    }
    more = [a for s in branch.orelse for a in ast.walk(s) if isinstance(a, ast.AugAssign)]
    return any(written(a.target) in zeros for a in more)


def _told_to(node: Node, decided: Place) -> Place | None:
    """The call by which a function that decides is given the value: ``stopper(loss)``."""
    branch, scope = decided
    words = {n.id for n in ast.walk(getattr(branch, "test", branch)) if isinstance(n, ast.Name)}
    given = scope.kind == "function" and bool(words & set(scope.params) - {"self"})
    return node.stack[-1] if given and node.stack else None


def _chosen_by_name(run: Rehearsing, decided: Place) -> Place | None:
    """Of a callback that is told the name of the figure: where it is made with that name."""
    holder = decided[1].parent
    made = [o for o in run.objects if o.cls is not None and holder is not None and o.cls.scope is holder]
    named = [o for o in made if any(isinstance(a, str) and a for a in (*o.args, *o.options.values()))]
    reads = any(isinstance(n, ast.Subscript) and "self." in written(n.slice) for n in ast.walk(decided[1].node))
    return named[0].place if len(made) == len(named) == 1 and reads else None


def _judges(run: Rehearsing, event: Event) -> bool:
    quiet = event.name == "forward" and not event.grad_mode and event.state.get("training") is not True
    return quiet and len(event.turns) > 0 and isinstance(event.result, Node) and not inside_another(run, event)


def _asked(event: Event) -> Place | None:
    return event.stack[-1] if event.stack else event.place
