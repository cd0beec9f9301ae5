"""What the lists of requirements of a project ask for: names with their conditions, where each is written."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from trainwreck.code.beside import texts
from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project

_LINE = pattern(r"^\s*([A-Za-z][\w.-]*)\s*(?:\[[^\]]*\])?\s*([=~!<>][^;#]*|@[^;#]*)?(?:;.*)?$")
_CONDA = pattern(r"""^\s*-\s*["']?(?:[\w-]+::)?([A-Za-z][\w.-]*)(?:\[[^\]]*\])?\s*([=~!<>][^"'#]*)?["']?\s*$""")
_SIDE = pattern(r"test|dev|doc|lint|example|bench|ci\b|build", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Requirement:
    """One line of a list. ``name`` is normalised (PEP 503); ``kind``: requirements, environment or pyproject."""

    name: str
    written: str
    specifier: str
    path: str
    line: int
    column: int
    kind: str
    marked: bool = False
    """It holds only for some versions of Python or some platforms."""


def requirements(project: Project) -> Sequence[Requirement]:
    """All requirements of lists for the program itself; those for tests, documentation and development left out."""
    if "requirements" not in project.memo:
        project.memo["requirements"] = list(_all(project))
    found: Sequence[Requirement] = project.memo["requirements"]
    return found


def complete(project: Project, folder: str) -> bool:
    """False where a list includes another one, or is built by a program, so that more may be required."""
    for path, text in texts(project, ("requirements", "environment", "toml")):
        if path.rpartition("/")[0] == folder and re.search(
            r"^\s*-[rce]\s|^\s*dynamic\s*=.*dependencies|git\+", text, re.M
        ):
            return False
    return not any(p == f"{folder}/setup.py".lstrip("/") for p in project.walked)


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _all(project: Project) -> Iterator[Requirement]:
    for path, text in texts(project, ("requirements",)):
        if not _SIDE.search(path.rsplit("/", 1)[-1]):
            yield from _plain(path, text)
    for path, text in texts(project, ("environment",)):
        if "dependencies:" in text:
            yield from _listed(path, text)
    for path, text in texts(project, ("toml",)):
        yield from _pyproject(path, text)


def _plain(path: str, text: str) -> Iterator[Requirement]:
    for number, line in enumerate(text.split("\n"), 1):
        row = line.split(" #", 1)[0].rstrip().rstrip("\\").rstrip()
        row = re.sub(r"\s+--hash=\S+", "", row)
        found = _LINE.match(row)
        if found:
            specifier = (found[2] or "").strip()
            yield Requirement(
                normal(found[1]), found[1], specifier, path, number, found.start(1) + 1, "requirements", ";" in row
            )


def _listed(path: str, text: str) -> Iterator[Requirement]:
    inside = False
    for number, line in enumerate(text.split("\n"), 1):
        if re.match(r"\S", line) and not line.startswith("#"):
            inside = line.startswith(("dependencies:", "- ")) and (inside or line.startswith("dependencies:"))
        found = _CONDA.match(line.split(" #", 1)[0].rstrip()) if inside else None
        if found and not line.rstrip().endswith(":"):
            specifier = re.sub(r"^=([\d.]+)(=.*)?$", r"==\1.*", (found[2] or "").strip())
            yield Requirement(normal(found[1]), found[1], specifier, path, number, found.start(1) + 1, "environment")


def _pyproject(path: str, text: str) -> Iterator[Requirement]:
    import tomllib

    try:
        data = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError, ValueError):
        return
    section = data.get("project")
    items = section.get("dependencies") if isinstance(section, dict) else None
    lines = text.split("\n")
    for item in items if isinstance(items, list) else ():
        found = _LINE.match(item) if isinstance(item, str) else None
        if found is None:
            continue
        place = next(((n, at + 1) for n, row in enumerate(lines, 1) if (at := row.find(item)) >= 0), (1, 1))
        yield Requirement(normal(found[1]), found[1], (found[2] or "").strip(), path, *place, "pyproject", ";" in item)
