"""Calls of a library's thing by its own name, whatever the program calls it after the import."""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.calls import Call
from trainwreck.code.project import Project


def calls_to(project: Project, package: str, *names: str) -> Iterator[Call]:
    """Calls of what ``package`` calls by one of ``names`` (``from x import DistributedDataParallel as Wrap``)."""
    key = f"known as {' '.join(names)}"
    if key not in project.memo:
        known = set(names)
        for scope in project.scopes:
            for bindings in scope.bindings.values():
                known |= {b.name for b in bindings if b.kind == "import" and b.target.rsplit(".", 1)[-1] in names}
        project.memo[key] = sorted(known)
    for call in project.calls(*project.memo[key]):
        full = project.called(call)
        if full.split(".", 1)[0] == package and full.rsplit(".", 1)[-1] in names:
            yield call
