"""Cross-validation: is the fold that is judged in each turn left out of the training of that turn?"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.facts import names
from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Event, Node, Obj, Place, Turn
from trainwreck.code.rehearsal.graph import near, parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.evaluation import inputs_of
from trainwreck.code.rehearsal.questions.gradients import reached
from trainwreck.code.rehearsal.questions.paths import Path, Step, evaluated, paths
from trainwreck.code.rehearsal.questions.refits import scaled
from trainwreck.code.rehearsal.questions.splits import learned_without_targets
from trainwreck.core.row import Row

MAX_WAYS = 16


class Fold(Row):
    """What one turn of a loop judges: the rows that its own number selects, and what it learned from before."""

    turn: Turn
    held: Path
    step: Step
    taught: list[Path]
    event: Event


def not_left_out(run: Rehearsing) -> Iterator[Answer]:
    """Each turn trains a network on all rows, and judges it on the fold of that turn."""
    for fold in _folds(run):
        mine = [p for p in fold.taught if p.root is fold.held.root]
        if all(learned_without_targets(run, p) for p in mine):
            continue
        if mine and all(all(_batch(s, fold.turn) for s in p.steps) for p in mine):
            place = _inside(fold.turn, fold.event)
            if place is not None:
                text = "each turn judges one fold, and trains on all rows: the fold is among them"
                yield Answer(place, text, (fold.step.place,) if fold.step.place is not None else ())
                return


def scaled_before(run: Rehearsing) -> Iterator[Answer]:
    """The rows of every fold are scaled with a mean or spread of all rows, which was taken before the loop."""
    for fold in _folds(run):
        before = {id(n) for n in fold.held.nodes}
        for path in fold.taught:
            if path.root is not fold.held.root or all(_batch(s, fold.turn) for s in path.steps):
                continue
            for _, summary in scaled(path):
                outside = not any(t.node is fold.turn.node for t in summary.turns) and summary.place is not None
                whole = any(id(i) in before for i in summary.inputs if isinstance(i, Node))
                if outside and whole and summary.place is not None and _not_yet_cut(summary, fold):
                    ways = (*summary.stack, summary.place)
                    place = next((p for p in ways if p[1] is fold.turn.scope), summary.place)
                    text = "this is computed from all rows, and each turn of the loop judges a part of them"
                    yield Answer(place, text, (fold.step.place,) if fold.step.place is not None else ())
                    return


def _not_yet_cut(summary: Node, fold: Fold) -> bool:
    """True where the statistic is of the array before the fold is cut out of it."""
    nodes = list(fold.held.nodes)
    cut = next((n for n, node in enumerate(nodes) if node.place is not None and node.place == fold.step.place), None)
    if cut is None:
        return False
    return any(n is i for n in nodes[:cut] for i in summary.inputs)


def _folds(run: Rehearsing) -> list[Fold]:
    if "folds" not in run.memo:
        run.memo["folds"] = list(_found(run))
    found: list[Fold] = run.memo["folds"]
    return found


def _found(run: Rehearsing) -> Iterator[Fold]:
    learned = [e for e in run.tape if e.name == "backward" and e.turns]
    if not learned:
        return
    loops = {id(t.node): t.node for e in learned for t in e.turns if isinstance(t.node, ast.For)}
    selecting = {key for key, loop in loops.items() if isinstance(loop, ast.For) and _selects(loop)}
    for event, node in evaluated(run) if selecting else ():
        for turn in event.turns:
            if id(turn.node) not in selecting or not isinstance(turn.node, ast.For):
                continue
            if not isinstance(event.subject, Obj):
                continue
            before = [b for b in learned if b.serial < event.serial and any(t is turn for t in b.turns)]
            if not before:
                continue
            own = {id(p) for p in run.parameters(event.subject)[0]}
            before = [b for b in before if any(id(p) in own for p in reached(b))]
            target = names(turn.node.target)
            for held in paths(run, node)[:MAX_WAYS] if before else ():
                step = next((s for s in held.steps if not _batch(s, turn) and _of_turn(s, target)), None)
                if step is not None:
                    yield Fold(turn, held, step, _data(run, turn, event.subject), before[-1])


def _selects(loop: ast.For) -> bool:
    """True for a loop whose number or element picks rows: in an index, or in a comparison that is kept."""
    target = names(loop.target)
    for node in (n for statement in loop.body for n in ast.walk(statement)):
        picks: ast.AST | None = node.slice if isinstance(node, ast.Subscript) else None
        if isinstance(node, ast.Assign) and any(isinstance(n, ast.Compare) for n in ast.walk(node.value)):
            picks = node.value
        if picks is not None and names(picks) & target:
            return True
    return False


def _data(run: Rehearsing, turn: Turn, module: Obj) -> list[Path]:
    """The ways of the data that a network was given in this turn to learn from."""
    train, _ = inputs_of(run)
    return [path for event, path in train if event.subject is module and any(t is turn for t in event.turns)]


def _batch(step: Step, turn: Turn) -> bool:
    """True for rows that a loop inside the turn picks, one batch after another."""
    if step.key in (("element",), ("index",)):
        return True
    given = step.index.args if isinstance(step.index, Obj) else (step.index,)
    picks = [n for v in given for i in parts(v) for n in near(i, 3)]
    return any(any(t is turn for t in n.turns) and n.turns[-1] is not turn for n in picks)


def _of_turn(step: Step, target: set[str]) -> bool:
    """True for rows that the number of the turn selects: ``x[folds == k]``, ``x[held]``."""
    given = step.index.args if isinstance(step.index, Obj) else (step.index,)
    places = [n.place for v in given for i in parts(v) for n in near(i, 5) if n.place is not None]
    places += [step.place] if step.place is not None else []
    return any(names(p[0]) & target for p in places)


def _inside(turn: Turn, event: Event) -> Place | None:
    """The call in the loop that trains."""
    inside = {id(n) for n in ast.walk(turn.node)}
    return next((p for p in (*event.stack, event.place) if p is not None and id(p[0]) in inside), None)


__all__ = ["not_left_out", "scaled_before"]
