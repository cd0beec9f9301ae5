"""Data sets that give no sample on one path, and loaders that put together what they get."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import last_name
from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import External, Function, Obj, Value
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.transforms import base
from trainwreck.code.scopes import Scope


def handed_out(run: Rehearsing) -> Iterator[Answer]:
    """``return None`` (or no return) in ``__getitem__``, and batches that are stacked from whatever comes."""
    told: set[int] = set()
    for loader in run.objects:
        if loader.name != "DataLoader" or "?" in loader.options or not _stacks(loader.options.get("collate_fn")):
            continue
        dataset = base(loader.get("dataset", 0))
        getter = dataset.cls.find("__getitem__") if isinstance(dataset, Obj) and dataset.cls is not None else None
        if not isinstance(getter, Function) or id(getter) in told or loader.get("batch_size", 1, 1) is None:
            continue
        told.add(id(getter))
        nothing = _nothing(run, getter.scope)
        if nothing is not None:
            text = "the data set gives None for such a sample, and the loader stacks all that it gets"
            yield Answer((nothing, getter.scope), text, (loader.place,) if loader.place is not None else ())


def _stacks(collate: Value) -> bool:
    """True for the default, and for a function that looks at no sample before it stacks them."""
    if collate is None or (isinstance(collate, External) and collate.name == "default_collate"):
        return True
    if not isinstance(collate, Function) or not isinstance(collate.node, ast.FunctionDef):
        return False
    body = list(ast.walk(collate.node))
    looks = (ast.If, ast.IfExp, ast.Compare, ast.Try)
    calls = [last_name(n.func) for n in body if isinstance(n, ast.Call)]
    chosen = any(isinstance(n, ast.comprehension) and n.ifs for n in body)
    return (
        "default_collate" in calls
        and "filter" not in calls
        and not chosen
        and not any(isinstance(n, looks) for n in body)
    )


def _nothing(run: Rehearsing, scope: Scope) -> ast.AST | None:
    """Where a method that gives a sample gives None instead."""
    returns = [n for n in run.project.within(scope, ast.Return) if isinstance(n, ast.Return)]
    given = [n for n in returns if not _none(n.value)]
    if not given:
        return None
    for node in returns:
        if _none(node.value):
            return node
    last = scope.node.body[-1] if isinstance(scope.node, ast.FunctionDef) else None
    return last if isinstance(last, ast.If) and not last.orelse else None


def _none(value: ast.expr | None) -> bool:
    return value is None or (isinstance(value, ast.Constant) and value.value is None)
