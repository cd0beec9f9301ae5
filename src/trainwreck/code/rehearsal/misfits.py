"""Shapes that do not fit: those that met in a rehearsal, and those of code that no rehearsal came to."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code import shapes
from trainwreck.code.calls import Call
from trainwreck.code.project import Project
from trainwreck.code.rehearsal import rehearsals
from trainwreck.code.rehearsal.domain import Obj
from trainwreck.code.rehearsal.state import MAX_STEPS
from trainwreck.code.shapes.domain import Clash


def clashes(project: Project, *kinds: str) -> Iterator[Clash]:
    """Every certain clash of the program (of these kinds), each place once."""
    if "misfits" not in project.memo:
        project.memo["misfits"] = list(_clashes(project))
    for clash in project.memo["misfits"]:
        if not kinds or clash.kind in kinds:
            yield clash


def _clashes(project: Project) -> Iterator[Clash]:
    told: set[int] = set()
    # a loss that broadcasts is asked for by itself (questions.broadcasts): it knows where the axis was made
    met = [clash for run in rehearsals(project) for clash in run.clashes if clash.kind != "loss-broadcast"]
    for clash in (*met, *shapes.clashes(project, _rehearsed(project))):
        node = clash.place.node if isinstance(clash.place, Call) else clash.place[0]
        if id(node) not in told and hasattr(node, "lineno"):
            told.add(id(node))
            yield clash


def _rehearsed(project: Project) -> set[ast.AST]:
    """Modules, functions and layers that a rehearsal came to; nothing of one that was not brought to its end."""
    whole = [run for run in rehearsals(project) if run.steps <= MAX_STEPS]
    reached: set[ast.AST] = {frame.scope.node for run in whole for frame in run.modules.values()}
    called = (e.subject for run in whole for e in run.tape if e.name == "forward" and isinstance(e.subject, Obj))
    reached |= {obj.place[0] for obj in called if obj.place is not None}
    executed = {number for run in whole for number in run.executed}
    return reached | {scope.node for scope in project.functions if id(scope.node) in executed}
