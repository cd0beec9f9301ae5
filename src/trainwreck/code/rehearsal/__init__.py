"""The program rehearsed: run in the mind on values that are not known, so that what it computes can be asked about.

Nothing of the program is executed. An interpreter of Python's syntax runs the script from its entry: functions and
classes of the program really run (with their arguments, closures, loops and branches), those of libraries are looked up
in tables. What remains is a *tape* of what was done in order (``backward``, ``step``, ``zero_grad``, ``train``) and a
*graph* of every tensor and number with what it was computed from. However a program is written - a method of a trainer,
a closure, a dict of optimizers, a list of losses - the tape and the graph of one training step look the same.

Loops whose number of turns is not known run twice: the first turn, and any other. Branches whose test is not known
run all, and what they leave is joined (``either``). What is not understood becomes a value that still knows what it
was made from; rules must not draw conclusions through it.
"""

from __future__ import annotations

import ast
import importlib
from contextlib import suppress

from trainwreck.code.project import Project
from trainwreck.code.rehearsal.domain import Class, Function
from trainwreck.code.rehearsal.rehearsing import Rehearsing
from trainwreck.code.rehearsal.state import Spent
from trainwreck.code.scopes import Scope

__all__ = ["Rehearsing", "rehearsals"]

MAX_ENTRIES = 6
"""Scripts and lone functions that are rehearsed in one program."""
LIBRARIES = (
    "containers", "options", "python", "modules", "training", "data", "tensors", "distributions", "records",
    "frameworks", "lightning", "processes", "counting", "matching", "arithmetic",
)  # fmt: skip
"""The modules that hold the tables, in the order in which they are read."""
TRAINS = ("backward(", "autograd.grad(", "training_step(", "compute_loss(", ".grad = ")


def rehearsals(project: Project) -> list[Rehearsing]:
    """The rehearsals of the program's entries: each script that trains, and each function with a backward that none
    of them reached. Made once for a program."""
    if "rehearsals" not in project.memo:
        project.memo["rehearsals"] = []
        project.memo["rehearsals"] = _all(project)
    found: list[Rehearsing] = project.memo["rehearsals"]
    return found


def _all(project: Project) -> list[Rehearsing]:
    _fill_tables()
    modules = [walked.top for walked in project.walked.values() if _of_interest(walked.top)]
    if not modules:
        return []
    made: list[Rehearsing] = []
    executed: set[int] = set()
    entries = [top for walked in project.walked.values() if _is_script(top := walked.top)]
    entries = [top for top in entries if _of_interest(top) or any(_imports(top, m) for m in modules)]
    for top in entries[:MAX_ENTRIES]:
        run = Rehearsing(project)
        with suppress(Spent, RecursionError):
            run.module_frame(top, "__main__")
        executed |= run.executed
        made.append(run)
    made += _alone(project, modules, {obj.cls.scope.node for run in made for obj in run.objects if obj.cls is not None})
    for scope in project.functions:
        if len(made) >= MAX_ENTRIES:
            break
        if id(scope.node) in executed or not _trains(scope) or scope.owner is not None:
            continue
        run = Rehearsing(project)
        with suppress(Spent, RecursionError):
            frame = run.module_frame(_top(scope), "module")
            function = frame.names.get(scope.name)
            if isinstance(function, Function) and function.node is scope.node:
                run.run(function, [], {}, None)
        executed |= run.executed
        made.append(run)
    return made


def _alone(project: Project, modules: list[Scope], built: set[ast.AST]) -> list[Rehearsing]:
    """Lightning modules that no script makes: often they have a file of their own, and a command line starts them."""
    from trainwreck.code.rehearsal.library.lightning import alone

    made: list[Rehearsing] = []
    for top in modules:
        for scope in top.children:
            if len(made) >= MAX_ENTRIES or scope.kind != "class" or scope.node in built:
                continue
            if not any(child.name == "training_step" for child in scope.children):
                continue
            run = Rehearsing(project)
            with suppress(Spent, RecursionError):
                cls = run.module_frame(top, "module").names.get(scope.name)
                if isinstance(cls, Class) and alone(run, cls):
                    made.append(run)
    return made


def _fill_tables() -> None:
    """The handlers of libraries note themselves when their modules are imported."""
    for name in LIBRARIES:
        importlib.import_module(f"trainwreck.code.rehearsal.library.{name}")


def _of_interest(top: Scope) -> bool:
    return any(word in top.module.text for word in TRAINS)


def _imports(top: Scope, other: Scope) -> bool:
    name = other.module.path.removesuffix(".py").rpartition("/")[2]
    return name in top.module.text


def _trains(scope: Scope) -> bool:
    return any(
        isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and n.func.attr == "backward" for n in scope.nodes
    )


def _top(scope: Scope) -> Scope:
    while scope.parent is not None:
        scope = scope.parent
    return scope


def _is_script(top: Scope) -> bool:
    """True for a file that does something when it is run, beyond definitions."""
    for statement in top.module.tree.body:
        if isinstance(statement, ast.If) and "__main__" in ast.dump(statement.test):
            return True
        if isinstance(statement, ast.For | ast.While | ast.With):
            return True
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
            return True
    return False
