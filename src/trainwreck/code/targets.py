"""Which releases the program is meant for: pins in requirements, lock files, environments, notebooks and scripts.

Nothing of the machine that checks is looked at: its packages are not those of the program.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from trainwreck.catalogue import specifiers
from trainwreck.catalogue.releases import Bracket, History, State, Table, table
from trainwreck.code.beside import texts
from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.core.row import Row

SAME = {"pytorch-lightning": "lightning"}
"""Distributions whose table has another name."""
MAX_BYTES = 8 << 20
"""A larger list of packages is none that a person keeps; lock files stay far below."""
_REQUIREMENT = pattern(
    r"^\s*([A-Za-z][\w.-]*)\s*(?:\[[^\]]*\])?\s*((?:[=~!<>]=?=?\s*v?[\w.*+]+[\s,]*)+)?(?:[;#@\\-].*)?$"
)
_INSTALL = pattern(r"\b(?:pip3?|uv(?:\s+pip)?|conda|mamba|poetry)\s+(?:install|add)\s+(.*)")
_WORD = pattern(r"""["']?([A-Za-z][\w.-]*)(?:\[[^\]]*\])?((?:[=~!<>]=?=?v?\d[\w.*+]*,?)*)["']?$""")
_CONDA = pattern(r"""\s*-\s*["']?(?:[\w-]+::)?([A-Za-z][\w.-]*)(?:\[[^\]]*\])?\s*([=~!<>]{1,3}[\w.*,<>=! ]+)["']?$""")
_LOCKED = pattern(r"^\s*\[\[package\]\]\s*$")


class Pin(Row):
    """One condition on a package. ``rank``: how far the place decides (lower wins)."""

    package: str
    specifier: str
    path: str
    line: int
    text: str
    rank: int


class Aim(Row):
    """The releases of a package that one file of the program is for. ``pin`` is None where nothing says it."""

    table: Table
    allowed: Sequence[Bracket]
    pin: Pin | None

    @property
    def newest(self) -> Bracket:
        return self.allowed[-1]

    def state(self, history: History) -> State:
        """Of something in the newest release that is allowed: what an installer takes."""
        return history.state(self.newest)

    def everywhere(self, history: History) -> bool:
        """True if no allowed release has it."""
        return all(history.state(at) in ("gone", "not yet") for at in self.allowed)

    @property
    def said(self) -> str:
        """The pin as people write it, "" where there is none."""
        if self.pin is None:
            return ""
        specifier = self.pin.specifier
        return f"{self.pin.package}{specifier if not specifier[:1].isdigit() else '==' + specifier}"


def aim(project: Project, package: str, path: str) -> Aim | None:
    """The releases of ``package`` (a table's name) that the file ``path`` is for. None if that can't be said."""
    home = table(package)
    if home is None:
        return None
    key = f"aim {package} {_folder(path)} {path if path.endswith('.ipynb') else ''}"
    if key not in project.memo:
        project.memo[key] = _aim(project, home, path)
    found: Aim | None = project.memo[key]
    return found


def _aim(project: Project, home: Table, path: str) -> Aim | None:
    pin = pin_for(project, home.package, path)
    if pin is None:
        return Aim(home, [(i, i) for i in range(len(home.releases))], None) if project.assume_newest else None
    allowed = home.allowed(pin.specifier)
    return Aim(home, allowed, pin) if allowed else None


def pin_for(project: Project, package: str, path: str) -> Pin | None:
    """The condition on ``package`` that counts for the file ``path``: the nearest, and of those the strictest place."""
    given = project.targets.get(package) or next(
        (v for k, v in project.targets.items() if SAME.get(k) == package), None
    )
    if given:
        return Pin(package, given if given[0] in "=<>~!^" else f"=={given}", "--target", 0, f"{package}=={given}", 0)
    folder = _folder(path)
    fitting = [
        (0 if p.path == path else 1, -len(_folder(p.path)), p.rank, n, p)
        for n, p in enumerate(pins(project))
        if p.package == package and (p.path == path or _above(_folder(p.path), folder)) and (p.rank or p.path == path)
    ]
    return min(fitting)[-1] if fitting else None


def _above(folder: str, other: str) -> bool:
    return not folder or other == folder or other.startswith(folder + "/")


def _folder(path: str) -> str:
    folder = path.rpartition("/")[0]
    return folder.removesuffix("/requirements") if folder != "requirements" else ""


def pins(project: Project) -> Sequence[Pin]:
    """Every condition on a package in the files of the program."""
    if "pins" not in project.memo:
        project.memo["pins"] = list(_pins(project))
    found: Sequence[Pin] = project.memo["pins"]
    return found


def _pins(project: Project) -> Iterator[Pin]:
    for path, text in texts(project, ("requirements", "lock", "toml", "environment", "shell")):
        base = path.rsplit("/", 1)[-1].lower()
        if base.endswith((".sh", ".bash", ".slurm", ".sbatch")) or base == "dockerfile":
            yield from installed(path, text.split("\n"), rank=4)
        elif base.endswith(".lock"):
            yield from _lock(path, text)
        elif base.endswith(".toml"):
            yield from _toml(path, text)
        elif base.endswith((".yml", ".yaml")):
            yield from _environment(path, text)
        else:
            yield from _requirements(path, text, 2)
    for path, walked in project.walked.items():
        if path.endswith(".ipynb"):
            yield from installed(path, walked.top.module.lines, rank=0)


def _pin(name: str, specifier: str, path: str, line: int, text: str, rank: int) -> Pin:
    package = name.lower().replace("_", "-")
    return Pin(SAME.get(package, package), specifier.replace(" ", "").strip(","), path, line, text.strip()[:100], rank)


def _requirements(path: str, text: str, rank: int) -> Iterator[Pin]:
    for number, line in enumerate(text.split("\n"), 1):
        found = _REQUIREMENT.match(line.split(" #", 1)[0].rstrip())
        if found and found[2]:
            yield _pin(found[1], found[2], path, number, line, rank)


def installed(path: str, lines: Sequence[str], rank: int) -> Iterator[Pin]:
    """``pip install name==version`` in a shell script or in the cells of a notebook."""
    for number, line in enumerate(lines, 1):
        found = _INSTALL.search(line) if "install" in line or " add " in line else None
        if found is None or line.lstrip().startswith("#"):
            continue
        for word in re.split(r"\s+", found[1].split("&&")[0].split(";")[0]):
            match = _WORD.match(word.strip())
            if match and match[2]:
                yield _pin(match[1], match[2], path, number, line, rank)


def _lock(path: str, text: str) -> Iterator[Pin]:
    name = ""
    for number, line in enumerate(text.split("\n"), 1):
        if _LOCKED.match(line):
            name = ""
        elif found := re.match(r'name\s*=\s*"([\w.-]+)"', line):
            name = found[1]
        elif name and (found := re.match(r'version\s*=\s*"([\w.+-]+)"', line)):
            yield _pin(name, f"=={found[1]}", path, number, line, 1)
            name = ""


def _toml(path: str, text: str) -> Iterator[Pin]:
    """Dependencies of pyproject.toml: PEP 621 lists, and Poetry's tables."""
    poetry = False
    for number, line in enumerate(text.split("\n"), 1):
        if line.startswith("["):
            poetry = "poetry" in line and "dependencies" in line
        elif poetry and (found := re.match(r'\s*"?([\w.-]+)"?\s*=\s*(?:\{.*?version\s*=\s*)?"([^"]+)"', line)):
            specifier = found[2] if not found[2][:1].isdigit() else f"=={found[2]}"
            if specifier != "*":
                yield _pin(found[1], specifier, path, number, line, 3)
        else:
            for item in re.findall(r"""["']([A-Za-z][\w.-]*(?:\[[^\]]*\])?\s*[=~!<>][^"';]*)""", line):
                match = _REQUIREMENT.match(item)
                if match and match[2] and not poetry:
                    yield _pin(match[1], match[2], path, number, line, 3)


def _environment(path: str, text: str) -> Iterator[Pin]:
    if "dependencies:" not in text:
        return
    for number, line in enumerate(text.split("\n"), 1):
        found = _CONDA.match(line.split(" #", 1)[0].rstrip())
        if found:
            specifier = re.sub(r"^=([\d.]+)(=.*)?$", r"==\1.*", found[2].strip())
            yield _pin(found[1], specifier, path, number, line, 2)


def brackets(aims: Mapping[str, Aim]) -> Mapping[str, Bracket]:
    return {name: item.newest for name, item in aims.items()}


def version_of(project: Project, package: str, path: str) -> tuple[specifiers.Version | None, Pin | None]:
    """For packages without a table (torch): the exact version if one is pinned, and the pin."""
    pin = pin_for(project, package, path)
    return (specifiers.exact(pin.specifier), pin) if pin is not None else (None, None)
