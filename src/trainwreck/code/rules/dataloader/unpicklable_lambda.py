"""A lambda or a function defined inside a function goes to worker processes that are spawned.

What: ``collate_fn=lambda …``, ``worker_init_fn=lambda …`` or a transform defined locally, with workers that start
by ``spawn`` (the default on macOS and Windows, and everywhere from Python 3.14 not ``fork``).
Why it matters: the loader is pickled for the workers, and such functions can't be.
When it is fine: with ``num_workers=0`` or the ``fork`` start method.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.calls import Call, last_name
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.workers import local_functions
from trainwreck.code.rule import guess, sighting
from trainwreck.code.scopes import Scope
from trainwreck.code.seek import LOADERS, loaders
from trainwreck.code.surface import Surface
from trainwreck.core.evidence import Evidence

SURFACES = (r"[Cc]an't (pickle|get) (local object|attribute|<function)", r"<lambda>")
ERROR = "AttributeError: Can't pickle local object 'main.<locals>.<lambda>'"
BAD = """
from torch.utils.data import DataLoader
def main(data):
    key = sorted(data, key=lambda d: d[0])
    loader = DataLoader(data, num_workers=2, multiprocessing_context="spawn",
                        collate_fn=lambda batch: batch)  # expect
    for x in loader:
        pass
"""
GOOD = """
from torch.utils.data import DataLoader
def collate(batch):
    return sorted(batch, key=lambda b: len(b))
def main(data):
    loader = DataLoader(data, num_workers=2, multiprocessing_context="spawn", collate_fn=collate)
    plain = DataLoader(data, collate_fn=lambda batch: batch)
    for x in loader:
        pass
"""


def find(project: Project) -> Iterator[Evidence]:
    """Certain where the loader itself asks for spawned workers."""
    yield from further(__name__, project, _of_loaders(project), local_functions)


def _of_loaders(project: Project) -> Iterator[Evidence]:
    for call in project.calls(*LOADERS):
        context = call.argument("multiprocessing_context")
        workers = call.argument("num_workers")
        spawned = isinstance(context, ast.Constant) and context.value in ("spawn", "forkserver")
        if spawned and isinstance(workers, ast.Constant) and workers.value:
            for node in _functions(project, call):
                yield sighting(__name__, (node, call.scope), "this function can't be pickled for the spawned workers")


def trace(project: Project, surface: Surface) -> Iterator[Evidence]:
    for call in loaders(project, surface):
        for node in _functions(project, call):
            yield guess(__name__, (node, call.scope), "this function can't be pickled for the workers")
            return
    named = re.search(r"'([\w.]+)\.<locals>\.([\w<>]+)", surface.message)
    if named is None:
        return
    outer, inner = named.group(1).rsplit(".", 1)[-1], named.group(2)
    for function in project.functions:
        if function.name != outer:
            continue
        for child in function.children:
            if child.name == inner:
                yield guess(__name__, (child.node, child), "this local function can't be pickled")
                return
        for node in _lambdas(project, function):
            yield guess(__name__, (node, function), "this lambda can't be pickled")
            return


def _functions(project: Project, call: Call) -> Iterator[ast.expr]:
    for name in ("collate_fn", "worker_init_fn"):
        value = call.argument(name)
        if isinstance(value, ast.Lambda):
            yield value
        elif value is not None:
            for binding in project.bindings(value, call.scope):
                if isinstance(binding.value, ast.Lambda) and binding.scope.kind == "function":
                    yield binding.value
            target = project.resolve(value, call.scope)
            if target is not None and target.parent is not None and target.parent.kind == "function":
                yield value


def _lambdas(project: Project, function: Scope) -> Iterator[ast.Lambda]:
    """Lambdas that are kept (assigned or handed to a constructor) before those that are used at once."""
    found = [n for n in project.within(function, ast.Lambda) if isinstance(n, ast.Lambda)]
    yield from sorted(found, key=lambda node: _used_at_once(project, node, function))


def _used_at_once(project: Project, node: ast.Lambda, function: Scope) -> bool:
    above = next((a for a in project.ancestors(node, function) if isinstance(a, ast.Call)), None)
    return above is not None and last_name(above.func) in ("sorted", "sort", "map", "filter", "min", "max", "apply")
