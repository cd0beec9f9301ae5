"""A learning rate that each turn works out, and that no optimizer is ever given."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.calls import last_name
from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Event, Node, Place
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.gradients import steps
from trainwreck.code.rehearsal.questions.own_updates import MOVES
from trainwreck.code.rehearsal.questions.schedules import schedules
from trainwreck.code.scopes import Scope

RATE = re.compile(r"(^|_)(lr|lrate|learning_rate)(_|$)|^rate$")
SHOWN = frozenset("print info debug warning log write add_scalar append set_postfix set_description format".split())
"""Calls that only show or keep what they are given."""


def unset(run: Rehearsing) -> Iterator[Answer]:
    """``lr = rate_at(step)`` in the loop of a step, and the name is read nowhere but in what is printed.

    Not asked where anything sets a rate or a schedule is built: then this one may be for show."""
    if any(e.name == "set_rate" for e in run.tape) or schedules(run) or _written_somewhere(run):
        return
    told: set[int] = set()
    for step in steps(run) or _by_hand(run):
        for turn in step.turns:
            for name, place in _worked_out(run, turn.node, turn.scope):
                if id(place[0]) not in told and not _read(turn.scope, name):
                    told.add(id(place[0]))
                    text = f"{name} is worked out here in each turn, and the optimizer never gets it: its rate stays"
                    yield Answer(place, text, (step.place,) if step.place is not None else ())


def _by_hand(run: Rehearsing) -> list[Event]:
    """Where a class of the program moves the weights, whose rate is an attribute that only ``__init__`` sets."""
    found = [e for e in run.tape if e.name in MOVES and isinstance(e.subject, Node) and e.subject.op == "param"]
    rated = [e for e in found if e.turns and e.place is not None and e.place[1].owner is not None]
    return rated if len(rated) == len(found) and not _set_outside(run) else []


def _set_outside(run: Rehearsing) -> bool:
    """True where anything but the making of an object sets a rate: ``opt.lr = rate``."""
    for scope in run.project.scopes:
        for node in scope.nodes if scope.name != "__init__" else ():
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and RATE.search(node.attr):
                return True
    return False


def _written_somewhere(run: Rehearsing) -> bool:
    """True if the program has a way to set a rate that the rehearsal didn't come to: ``group["lr"] = ...``."""
    for walked in run.project.walked.values():
        for node in ast.walk(walked.top.module.tree):
            if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
                if isinstance(node.slice, ast.Constant) and node.slice.value == "lr":
                    return True
            elif isinstance(node, ast.Call) and last_name(node.func) == "update" and "lr" in ast.unparse(node):
                return True
    return False


def _worked_out(run: Rehearsing, loop: ast.AST, scope: Scope) -> Iterator[tuple[str, Place]]:
    """The rates that a loop gets from a function of the program: in its body, or as what it goes through."""
    found: list[tuple[ast.expr, ast.expr, ast.AST]] = []
    if isinstance(loop, ast.For):
        found.append((loop.target, loop.iter, loop.iter))
    for statement in getattr(loop, "body", ()):
        if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            found.append((statement.targets[0], statement.value, statement))
    for target, value, at in found:
        names = [n.id for n in ast.walk(target) if isinstance(n, ast.Name) and RATE.search(n.id)]
        calls = [n for n in ast.walk(value) if isinstance(n, ast.Call)]
        own = any(run.project.resolve(c.func, scope) is not None for c in calls)
        if len(names) == 1 and own:
            yield names[0], (at, scope)


def _read(scope: Scope, name: str) -> bool:
    """True if something other than showing reads the name."""
    shown = {
        id(inner)
        for node in scope.nodes
        if isinstance(node, ast.Call) and last_name(node.func) in SHOWN
        for inner in ast.walk(node)
    }
    own = any(isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Load) and id(n) not in shown
              for n in scope.nodes)  # fmt: skip
    inner = any(_read_inside(child, name) for child in scope.children)
    return own or inner or any(isinstance(n, ast.Global | ast.Nonlocal) and name in n.names for n in scope.nodes)


def _read_inside(scope: Scope, name: str) -> bool:
    """True where a function within reads the name, and not one of its own."""
    if scope.kind == "function" and name in scope.bindings:
        return False
    reads = (n for n in scope.nodes if isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Load))
    return any(True for _ in reads) or any(_read_inside(child, name) for child in scope.children)
