"""What a rule is, how rules are found, and how they say what they saw.

A rule is a module ``rules/<family>/<id with underscores>.py`` with one or more of

``find(project) -> Iterator[Evidence]``
    what is certain from the code alone (class direct);
``trace(project, surface) -> Iterator[Evidence]``
    given a failure whose message matches ``SURFACES``, where it was made, with the flow that shows it (circumstantial);
``locate(project, surface) -> Iterator[Evidence]``
    where this would be decided if something else shows that it is the cause. Adds no weight, only a place.

and ``BAD`` and ``GOOD``: code that must and must not be found (``# expect`` marks the line).
"""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from types import ModuleType

from trainwreck.code.calls import Call, written
from trainwreck.code.flow import Step
from trainwreck.code.project import Project
from trainwreck.code.scopes import Scope
from trainwreck.code.surface import Surface
from trainwreck.core.evidence import Evidence, EvidenceClass, Severity, Where
from trainwreck.core.fix import Fix
from trainwreck.core.program import Module
from trainwreck.core.row import Row

SIGN_PREFIX = "code-"

Find = Callable[[Project], Iterator[Evidence]]
Trace = Callable[[Project, Surface], Iterator[Evidence]]
Locate = Callable[[Project, Surface | None], Iterator[Evidence]]


class Rule(Row):
    """One rule module as loaded."""

    name: str
    sign: str
    find: Find | None
    trace: Trace | None
    locate: Locate | None
    surfaces: Sequence[str]
    bad: Sequence[str]
    good: Sequence[str]
    doc: str
    error: str

    def speaks_of(self, surface: Surface) -> bool:
        """True if the message is one that this fault is known to cause."""
        return any(re.search(pattern, surface.message, re.DOTALL) for pattern in self.surfaces)


@cache
def rules() -> Sequence[Rule]:
    """All rules, in the order of their names."""
    import trainwreck.code.rules as package

    found = []
    for family in pkgutil.iter_modules(package.__path__, package.__name__ + "."):
        if family.ispkg:
            holder = importlib.import_module(family.name)
            found += [rule(info.name) for info in pkgutil.iter_modules(holder.__path__, family.name + ".")]
    return tuple(sorted(found, key=lambda rule: rule.name))


@cache
def rule(name: str) -> Rule:
    """The rule of this module."""
    return _rule(importlib.import_module(name))


def _rule(module: ModuleType) -> Rule:
    return Rule(
        name=module.__name__,
        sign=sign_of(module.__name__),
        find=getattr(module, "find", None),
        trace=getattr(module, "trace", None),
        locate=getattr(module, "locate", None),
        surfaces=tuple(getattr(module, "SURFACES", ())),
        bad=_texts(getattr(module, "BAD", ())),
        good=_texts(getattr(module, "GOOD", ())),
        doc=module.__doc__ or "",
        error=getattr(module, "ERROR", ""),
    )


def _texts(value: str | Sequence[str]) -> Sequence[str]:
    return (value,) if isinstance(value, str) else tuple(value)


def sign_of(module_name: str) -> str:
    """``…rules.loss.some_fault`` emits ``code-some-fault``."""
    return SIGN_PREFIX + module_name.rsplit(".", 1)[-1].replace("_", "-")


Proven = tuple[str, int, str] | tuple[str, int, str, int]
"""(path, line, text) of a line that shows something, and in a notebook the cell."""
Proof = Iterable[Step | Call | tuple[str, int, str]]


def sighting(
    rule: str,
    place: Call | Step | tuple[ast.AST, Scope],
    text: str,
    *,
    cls: EvidenceClass = "direct",
    proof: Proof = (),
    fix: Fix | None = None,
    severity: Severity | None = None,
) -> Evidence:
    """What a rule saw: ``rule`` is its ``__name__``; ``proof`` the places that show it, from the fault onwards;
    ``fix`` how to correct it (see ``trainwreck.code.edits``); ``severity`` where it is not that of the id."""
    node, scope = (place.node, place.scope) if isinstance(place, Call | Step) else place
    path, line, column, cell = at(node, scope)
    chain = [_link(item, scope.module) for item in proof]
    own = (path, line) if cell is None else (path, line, cell)
    shown = list(dict.fromkeys(place_of(*link) for link in chain if (*link[:2], *link[3:]) != own))
    sentence = text + (f" (see {', '.join(shown[:4])})" if shown else "")
    value = {"proof": [list(link) for link in chain]} if chain else None
    where = Where("code", path=path, line=line, column=column, cell=cell)
    return Evidence(sign_of(rule), cls, sentence, where, value, until=until(node, scope), fix=fix, severity=severity)


def guess(rule: str, place: Call | Step | tuple[ast.AST, Scope], text: str, proof: Proof = ()) -> Evidence:
    """A sighting of a trace: likely, not proven."""
    return sighting(rule, place, text, cls="circumstantial", proof=proof)


def at(node: ast.AST, scope: Scope) -> tuple[str, int, int, int | None]:
    """(path, line, column, cell) of ``node``; in a notebook the line within its cell."""
    module = scope.module
    line = int(getattr(node, "lineno", 1))
    column = _characters(module, line, int(getattr(node, "col_offset", 0))) + 1
    if not module.cells:
        return module.path, line, column, None
    cell = bisect_right(module.cells, line)
    return module.path, line - module.cells[cell - 1] + 1 if cell else line, column, cell or None


def until(node: ast.AST, scope: Scope) -> tuple[int, int] | None:
    """The end of ``node``: its last line and the column after it. A block ends where its first line ends."""
    last, offset = getattr(node, "end_lineno", None), getattr(node, "end_col_offset", None)
    if last is None or offset is None:
        return None
    module = scope.module
    first = int(getattr(node, "lineno", last))
    if isinstance(getattr(node, "body", None), list):
        last, column = first, len(module.lines[first - 1].rstrip()) + 1 if first <= len(module.lines) else 1
    else:
        column = _characters(module, last, offset) + 1
    shift = at(node, scope)[1] - first
    return last + shift, column


def _characters(module: Module, line: int, offset: int) -> int:
    """``ast`` counts columns in bytes of UTF-8; people and editors count characters."""
    text = module.lines[line - 1] if 0 < line <= len(module.lines) else ""
    return offset if text.isascii() else len(text.encode()[:offset].decode("utf-8", "replace"))


def _link(item: Step | Call | tuple[str, int, str], own: Module) -> Proven:
    """(path, line, text), and in a notebook the cell. ``own``: the module that bare places may speak of."""
    if isinstance(item, tuple):
        (path, line, text), module = item, own
    else:
        path, line, text = item.scope.module.path, item.node.lineno, written(item.node)[:100]
        module = item.scope.module
    if path != module.path or not module.cells or not (cell := bisect_right(module.cells, line)):
        return path, line, text
    return path, line - module.cells[cell - 1] + 1, text, cell


def place_of(path: str, line: int, _: str, cell: int | None = None) -> str:
    """How a sentence names a line of a proof."""
    return f"{path}:{line}" if cell is None else f"{path}:cell {cell}:{line}"
