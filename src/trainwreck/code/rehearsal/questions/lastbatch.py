"""Does a figure of an evaluation speak of all batches, or of the last one alone?"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import last_name, written
from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Event, Node, Obj, Place, Turn
from trainwreck.code.rehearsal.graph import ancestors, parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.gradients import backwards
from trainwreck.code.rehearsal.questions.modes import inside_another
from trainwreck.code.rehearsal.questions.roles import users
from trainwreck.code.rehearsal.questions.selection import direction
from trainwreck.core.row import Row

SIZES = frozenset(["len", "size", "numel", "nelement", "attribute"])
"""What says how many there are, not what the network gave for them."""


class Round(Row):
    """One way through a loop of evaluation: its last turn, and what the network gave in its first and last turn."""

    turn: Turn
    outer: tuple[Turn, ...]
    first: Node
    last: Node
    forward: Event


def last_batch_only(run: Rehearsing) -> Iterator[Answer]:
    """A share of hits, a loss, an error that is used after the loop and that only its last turn went into."""
    told: set[int] = set()
    for walk in _rounds(run):
        if id(walk.turn.node) in told or _stops(walk.turn.node) or _single(walk):
            continue
        early, late = _descendants(run, walk.first), _descendants(run, walk.last)
        after = [n for n in run.nodes if n.serial > walk.last.serial and _behind(n, walk)]
        figures = [n for n in after if id(n) in late and n.op not in SIZES and _figure(n, walk) is not None]
        if not figures or any(id(n) in early and direction(n) is not None for n in after):
            continue
        figure = figures[0]
        if id(figure) in early:
            continue
        told.add(id(walk.turn.node))
        text = "only the last batch goes into this: each turn of the loop throws away what the one before gave"
        place = _place(run, figure, walk)
        proof = (figure.place,) if figure.place is not None and figure.place is not place else ()
        yield Answer(place, text, proof)


def first_batch_only(run: Rehearsing) -> Iterator[Answer]:
    """A loop of evaluation that sums up and gives its result back in its first turn."""
    told: set[int] = set()
    for event in _evaluations(run):
        loop, scope = event.turns[-1].node, event.turns[-1].scope
        if not isinstance(loop, ast.For) or id(loop) in told or event.place is None:
            continue
        leaves = next((s for s in loop.body if isinstance(s, ast.Return) and s.value is not None), None)
        gathers = any(isinstance(n, ast.AugAssign) or _appends(n) for s in loop.body for n in ast.walk(s))
        if leaves is None or not gathers or not any(_judged(n, event) for n in run.nodes):
            continue
        told.add(id(loop))
        yield Answer((leaves, scope), "this leaves the loop in its first turn: only the first batch counts")


def _judged(node: Node, forward: Event) -> bool:
    inside = bool(node.turns) and node.turns[-1].node is forward.turns[-1].node
    return inside and node.serial > forward.serial and direction(node) is not None


def _appends(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in (
        "append", "extend", "update"
    )  # fmt: skip


def _evaluations(run: Rehearsing) -> list[Event]:
    """Calls of networks in loops, outside of autograd or in evaluation mode, from turns that learn nothing."""
    if "evaluations" not in run.memo:
        run.memo["evaluations"] = list(_looked_for(run))
    found: list[Event] = run.memo["evaluations"]
    return found


def _looked_for(run: Rehearsing) -> Iterator[Event]:
    forwards = [e for e in run.tape if e.name == "forward"]
    learning = {id(t) for b in backwards(run) for t in b.turns}
    for event in forwards:
        quiet = not event.grad_mode or event.state.get("training") is False
        if not quiet or not event.turns or not isinstance(event.result, Node) or inside_another(run, event):
            continue
        if id(event.turns[-1]) not in learning and isinstance(event.turns[-1].node, ast.For | ast.While):
            yield event


def _rounds(run: Rehearsing) -> Iterator[Round]:
    begun: dict[tuple[int, ...], Event] = {}
    ended: dict[tuple[int, ...], Event] = {}
    passes: dict[tuple[int, ...], Turn] = {}
    for event in _evaluations(run):
        turn = event.turns[-1]
        place = id(event.place[0]) if event.place is not None else 0
        where = (place, id(turn.node), *(id(p[0]) for p in event.stack), *(id(t) for t in event.turns[:-1]))
        if turn.index == 0 or where not in passes:
            passes[where] = turn  # a comprehension around it has no turns: each pass begins with a first turn
        key = (*where, id(passes[where]))
        begun.setdefault(key, event)
        ended[key] = event
    for key, first in begun.items():
        last = ended[key]
        same_data = all(any(a is b for b in first.args) for a in last.args)
        if last.turns[-1] is not first.turns[-1] and not same_data:
            yield Round(last.turns[-1], last.turns[:-1], first.result, last.result, last)


def _descendants(run: Rehearsing, start: Node) -> set[int]:
    """``id`` of all that was computed from ``start``, not from how large it is."""
    table = users(run)
    found, todo = {id(start)}, [start]
    while todo:
        for user in table.get(id(todo.pop()), ()):
            if id(user) not in found and user.op not in SIZES:
                found.add(id(user))
                todo.append(user)
    return found


def _behind(node: Node, walk: Round) -> bool:
    """True for what is computed after the loop, in the same turns of the loops around it."""
    return node.turns[: len(walk.outer)] == walk.outer and not any(t.node is walk.turn.node for t in node.turns)


def _figure(node: Node, walk: Round) -> Node | None:
    """The value by which ``node`` is a result of the loop: one of the last turn, or itself."""
    given = [p for item in node.inputs for p in parts(item) if _inside(p, walk)]
    return next((p for p in given if direction(p) is not None), node if direction(node) is not None else None)


def _inside(node: Node, walk: Round) -> bool:
    return any(t is walk.turn for t in node.turns)


def _place(run: Rehearsing, figure: Node, walk: Round) -> Place:
    """The statement that throws the earlier turns away: in the loop, or the one that should stand in it."""
    inner = _figure(figure, walk)
    given = next((p for item in figure.inputs for p in parts(item) if _inside(p, walk)), None)
    shown = inner if inner is not None and inner is not figure else given
    loop, scope = walk.turn.node, walk.turn.scope
    outside = figure.place
    if inner is figure and outside is not None and outside[1] is scope and _gathers(run, outside):
        return (run.project.statement(*outside), scope)
    if shown is None or shown.place is None:
        return outside or (loop, scope)
    inside = {id(n) for n in ast.walk(loop)}
    place = next((p for p in (*shown.stack, shown.place) if id(p[0]) in inside), shown.place)
    statement = run.project.statement(*place)
    return (_reset(loop, statement) or statement, place[1])


def _gathers(run: Rehearsing, place: Place) -> bool:
    statement = run.project.statement(*place)
    return isinstance(statement, ast.AugAssign) or any(_appends(n) for n in ast.walk(statement))


def _reset(loop: ast.AST, statement: ast.AST) -> ast.stmt | None:
    """The statement of the loop that empties what ``statement`` adds to."""
    name = ""
    if isinstance(statement, ast.AugAssign):
        name = written(statement.target)
    elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call) and _appends(statement.value):
        name = written(statement.value.func).rpartition(".")[0]
    for node in getattr(loop, "body", []):
        if (
            name
            and isinstance(node, ast.Assign)
            and any(name in written(t).strip("()").split(", ") for t in node.targets)
        ):
            return node
    return None


def _stops(loop: ast.AST) -> bool:
    return any(isinstance(n, ast.Break | ast.Yield | ast.Return) for n in ast.walk(loop))


def _single(walk: Round) -> bool:
    """True for a loader whose only batch may be all of the data, and where a single batch is asked for."""
    over = walk.turn.node.iter if isinstance(walk.turn.node, ast.For) else None
    if isinstance(over, ast.Call) and last_name(over.func) in ("islice", "range", "take"):
        counts = over.args[1:2] if last_name(over.func) == "islice" else over.args[:1]
        if counts and isinstance(counts[0], ast.Constant) and counts[0].value == 1:
            return True
    for node in ancestors(tuple(walk.forward.args)):
        if node.op == "batch" and isinstance(node.owner, Obj):
            size = node.owner.get("batch_size", 1)
            return size is not None and not isinstance(size, int)
    return False
