"""Texts that are read off the frames of a network that learned with CTC: functions of the program, worked out for a
path of ours.

A symbol that stands in several frames in a row is one; a blank between two equal ones keeps them apart. So repeats are
merged first, and blanks are taken out then (Graves et al. 2006).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import last_name, written
from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Place
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.roles import trained
from trainwreck.code.scopes import Scope

MOST_PARAMETERS = 4
LARGEST = ("argmax", "max", "topk")


def repeats_not_kept_apart(run: Rehearsing) -> Iterator[Answer]:
    """A function that reads the best path of such a network merges equal symbols across a blank, or none at all."""
    blanks = {_blank(node) for node in trained(run) if node.op == "ctc_loss"}
    blank = blanks.pop() if len(blanks) == 1 else None
    if blank is None:
        return
    found: list[tuple[Scope, int]] = []
    for function in run.project.functions:
        calls = [n for n in function.nodes if isinstance(n, ast.Call)]
        if len(function.positional) <= MOST_PARAMETERS and any(last_name(c.func) in LARGEST for c in calls):
            count = _symbols(run, function, blank)
            found += [(function, count)] if count is not None else []
    read = any(count == RIGHT for _, count in found)  # what lists all frames beside that is no text
    for function, count in found:
        if count == MERGED or (count == RAW and not read):
            what = "blanks are taken out before repeats are merged" if count == MERGED else "repeats are never merged"
            text = f"{what}: a symbol that stands twice in a text can't be told from one that lasts"
            yield Answer(_where(function, count), text)
            return


RIGHT, MERGED, RAW = 3, 2, 5
"""Symbols of ``_path``: as they are meant, with the repeat lost, and with none merged."""


def _path(blank: int) -> list[int]:
    """Two frames of a symbol, a blank, the same symbol again, two frames of another one, two blanks."""
    one, other = (n for n in (1, 2, 3) if n != blank) if blank in (1, 2, 3) else (1, 2)
    return [one, one, blank, one, other, other, blank, blank]


def _blank(loss: Node) -> int | None:
    """The number of the blank."""
    given = loss.options.get("blank", loss.owner.get("blank", 0, 0) if loss.owner is not None else 0)
    return given if isinstance(given, int) and not isinstance(given, bool) else None


def _symbols(run: Rehearsing, function: Scope, blank: int) -> int | None:
    """How many symbols the function reads off our path; None where it gives something else."""
    import numpy as np

    from trainwreck.code.rehearsal.trial.steps import Steps, Unknown

    path = _path(blank)
    scores = np.eye(max(*path, 40) + 1)[path]
    length = len(path)
    for batch in (scores[None], scores, scores[:, None]):
        for lengths in (np.asarray([length]), length):
            others = [lengths, blank, length][: max(0, len(function.positional) - 1 - _defaults(function))]
            try:
                found = Steps(run.project).call(function, [batch, *others])
            except Unknown:
                continue
            count = _count(found)
            if count is not None:
                return count
    return None


def _defaults(function: Scope) -> int:
    return len(function.node.args.defaults) if isinstance(function.node, ast.FunctionDef) else 0


def _count(found: object) -> int | None:
    """The number of symbols of a text, if it is made of ours in their order: ``aab``, ``ab`` or ``aaabb``."""
    for _ in range(3):
        if isinstance(found, list | tuple) and len(found) == 1 and not isinstance(found[0], int):
            found = found[0]
    if hasattr(found, "tolist"):
        found = found.tolist()
    if not isinstance(found, list | tuple | str) or len(found) not in (RIGHT, MERGED, RAW):
        return None
    symbols = [str(s) for s in found]
    kinds = list(dict.fromkeys(symbols))
    expected = {RIGHT: (0, 0, 1), MERGED: (0, 1), RAW: (0, 0, 0, 1, 1)}[len(symbols)]
    return len(symbols) if len(kinds) == 2 and [kinds.index(s) for s in symbols] == list(expected) else None


def _where(function: Scope, count: int) -> Place:
    """Where the blanks are taken out; where that follows the comparison with the symbol before, where it is kept."""
    tests = [n for n in function.nodes if isinstance(n, ast.Compare) and isinstance(n.ops[0], ast.NotEq | ast.Eq)]
    sifted = [t for n in function.nodes if isinstance(n, ast.comprehension) for t in n.ifs]
    sifted += [n.slice for n in function.nodes if isinstance(n, ast.Subscript) and isinstance(n.slice, ast.Compare)]
    if sifted:
        return sifted[0], function
    if count == MERGED:
        loops = [n.target for n in function.nodes if isinstance(n, ast.For)]
        names = {n.id for t in loops for n in ast.walk(t) if isinstance(n, ast.Name)}
        kept = [n for n in function.nodes if isinstance(n, ast.Assign) and set(_names(n.value)) & names]
        held = [n for n in kept if any(written(n.targets[0]) in written(t) for t in tests)]
        tests = [t for t in tests if not any(isinstance(s, ast.Constant) for s in (t.left, *t.comparators))] or tests
        if held:
            return held[-1], function
    return (tests[0] if tests else function.node), function


def _names(node: ast.AST) -> Iterator[str]:
    return (n.id for n in ast.walk(node) if isinstance(n, ast.Name))
