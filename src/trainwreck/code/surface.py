"""Where a failure surfaced in the program: its frames mapped to the files that we have."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from trainwreck.code.calls import Call
from trainwreck.code.project import Project
from trainwreck.code.scopes import Scope
from trainwreck.core.row import Row

if TYPE_CHECKING:
    from trainwreck.core.failure import Failure, Frame


class Spot(Row):
    """One frame of the program's own code: its line, the function, and the innermost statement there."""

    frame: Frame
    scope: Scope
    statement: ast.stmt
    line: int


class Surface(Row):
    """A failure seen from the code. ``spots`` run from the innermost frame of the program outwards."""

    failure: Failure
    message: str
    spots: Sequence[Spot]

    def calls(self, project: Project) -> Iterator[Call]:
        """Calls on the failing lines, innermost frame first."""
        for spot in self.spots:
            for node in ast.walk(spot.statement):
                if isinstance(node, ast.Call) and _on(node, spot.line):
                    yield Call(node, spot.scope)
                if isinstance(spot.statement, ast.For | ast.While | ast.With) and node is spot.statement:
                    continue

    @property
    def scopes(self) -> list[Scope]:
        return [spot.scope for spot in self.spots]


def surfaces(project: Project, failures: Sequence[Failure]) -> list[Surface]:
    """The failures with the parts of the program that their frames name; failures without frames included."""
    found = []
    for failure in failures:
        chain = [failure]
        while chain[-1].cause is not None and len(chain) < 20:
            chain.append(chain[-1].cause)
        message = "\n".join(f"{f.type}: {f.message}" for f in reversed(chain))
        spots: list[Spot] = []
        for part in reversed(chain):
            for frame in reversed(part.frames):
                if frame.user and (spot := locate(project, frame)) is not None:
                    spots.append(spot)
        found.append(Surface(failure, message, spots))
    return found


def locate(project: Project, frame: Frame) -> Spot | None:
    """The place of ``frame`` in the program: by the end of its path and its quoted line, else by the line alone."""
    wanted = frame.text.strip()
    best: tuple[int, Scope] | None = None
    for path, walked in project.walked.items():
        lines = walked.top.module.lines
        here = lines[frame.line - 1].strip() if 0 < frame.line <= len(lines) else None
        same = here is not None and (not wanted or here == wanted or wanted.startswith(here) or here.startswith(wanted))
        score = _common_tail(path, frame.path) * 2 + (3 if wanted and same else 0)
        if _common_tail(path, frame.path) and same and (best is None or score > best[0]):
            best = (score, walked.top)
    line = frame.line
    if best is None and wanted:
        for walked in project.walked.values():
            hits = [n for n, text in enumerate(walked.top.module.lines, 1) if text.strip() == wanted]
            if len(hits) == 1:
                best, line = (1, walked.top), hits[0]
                break
    if best is None:
        return None
    top = best[1]
    statement = statement_at(top.module.tree, line)
    if statement is None:
        return None
    return Spot(frame, scope_at(top, line), statement, line)


def _common_tail(one: str, other: str) -> int:
    a, b = one.replace("\\", "/").split("/"), other.replace("\\", "/").split("/")
    count = 0
    for x, y in zip(reversed(a), reversed(b), strict=False):
        if x != y:
            break
        count += 1
    return count


def statement_at(tree: ast.Module, line: int) -> ast.stmt | None:
    """The innermost statement that covers ``line``."""
    found: ast.stmt | None = None
    todo: list[ast.AST] = [tree]
    while todo:
        node = todo.pop()
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.stmt) and _on(child, line):
                found = child
                todo = [child]
                break
            if not isinstance(child, ast.expr) and not isinstance(child, ast.stmt):
                todo.append(child)
    return found


def scope_at(top: Scope, line: int) -> Scope:
    """The innermost function or class that covers ``line``."""
    at = top
    while True:
        inner = next((c for c in at.children if _on(c.node, line)), None)
        if inner is None:
            return at
        at = inner


def _on(node: ast.AST, line: int) -> bool:
    start = int(getattr(node, "lineno", 0))
    return start <= line <= int(getattr(node, "end_lineno", start) or start)
