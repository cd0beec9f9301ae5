"""The script starts its work at import, and its workers import it again.

What: ``main()`` (or the training loop itself) stands at the top level without ``if __name__ == "__main__":`` while
worker processes start by ``spawn``.
Why it matters: every worker runs the whole script again; Python stops it, the loader reports a dead worker.
When it is fine: with forked workers or none.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import Call, last_name
from trainwreck.code.project import Project
from trainwreck.code.rule import guess, sighting
from trainwreck.code.scopes import Scope
from trainwreck.code.seek import LOADERS
from trainwreck.code.surface import Surface
from trainwreck.code.values import values
from trainwreck.core.evidence import Evidence

SURFACES = (
    r"An attempt has been made to start a new process before",
    r"DataLoader worker \(pid.*exited unexpectedly",
    r"freeze_support",
    r"EOFError|BrokenPipeError|ConnectionResetError|ForkingPickler",
)
ERROR = "RuntimeError: An attempt has been made to start a new process before the current process has finished"
BAD = """
from torch.utils.data import DataLoader
def main():
    for x in DataLoader([1, 2], num_workers=2, multiprocessing_context="spawn"):  # fails
        print(x)
main()  # expect
"""
GOOD = """
from torch.utils.data import DataLoader
def main():
    for x in DataLoader([1, 2], num_workers=2, multiprocessing_context="spawn"):
        print(x)
if __name__ == "__main__":
    main()
"""


def find(project: Project) -> Iterator[Evidence]:
    """Certain where the program itself asks for spawned workers."""
    for call in project.calls(*LOADERS):
        context = call.argument("multiprocessing_context")
        workers = values(project, call.argument("num_workers"), call.scope)
        spawned = any(k.value in ("spawn", "forkserver") for k in values(project, context, call.scope))
        if (spawned or _set_to_spawn(project)) and workers and all(k.value for k in workers):
            for place, scope in _starts(project):
                if scope.module is call.scope.module:
                    yield sighting(
                        __name__,
                        (place, scope),
                        "the work starts at import, also in every spawned worker",
                        proof=[call],
                    )
                    return
    for call in project.calls("spawn"):
        if project.called(call) != "torch.multiprocessing.spawn" or _says_fork(project, call):
            continue
        for place, scope in _starts(project):
            if scope.module is call.scope.module:
                text = "the processes are started at import, and each of them imports this file again"
                yield sighting(__name__, (place, scope), text, proof=[call])
                return


def _says_fork(project: Project, call: Call) -> bool:
    given = call.argument("start_method", 4)
    return given is not None and not any(k.value == "spawn" for k in values(project, given, call.scope))


def trace(project: Project, surface: Surface) -> Iterator[Evidence]:
    modules = {spot.scope.module.path for spot in surface.spots}
    for place, scope in _starts(project):
        if not modules or scope.module.path in modules:
            yield guess(__name__, (place, scope), "the work starts at import, also in every worker")
            return


def _set_to_spawn(project: Project) -> bool:
    return any(
        k.value in ("spawn", "forkserver")
        for call in project.calls("set_start_method", "get_context")
        for k in values(project, call.argument("method", 0), call.scope)
    )


def _starts(project: Project) -> Iterator[tuple[ast.AST, Scope]]:
    """Top-level statements outside a main guard that call into the project or loop over a loader."""
    for walked in project.walked.values():
        tree = walked.top.module.tree
        if any(isinstance(n, ast.If) and "__name__" in ast.dump(n.test) for n in tree.body):
            continue
        found: ast.stmt | None = None
        for statement in tree.body:
            if isinstance(
                statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Import | ast.ImportFrom
            ):
                continue
            for node in ast.walk(statement):
                if isinstance(node, ast.Call):
                    target = project.resolve(node.func, walked.top)
                    direct = project.called(Call(node, walked.top)) == "torch.multiprocessing.spawn"
                    if (target is not None and target.kind == "function" and _reaches_loader(project, target, 0)) or (
                        direct or (last_name(node.func) in LOADERS and found is None and isinstance(statement, ast.For))
                    ):
                        found = statement
            if (
                isinstance(statement, ast.For)
                and found is None
                and any(c.scope is walked.top for c in project.calls(*LOADERS))
            ):
                found = statement
        if found is not None:
            yield found, walked.top


def _reaches_loader(project: Project, function: Scope, depth: int) -> bool:
    if depth > 3:
        return False
    for node in project.within(function, ast.Call):
        assert isinstance(node, ast.Call)
        if last_name(node.func) in (*LOADERS, "Process", "Pool", "spawn", "map"):
            return True
        target = project.resolve(node.func, function)
        if target is not None and target.kind == "function" and _reaches_loader(project, target, depth + 1):
            return True
    return bool(Call) and False
