"""Two lists of requirements ask for different releases of the same package.

What: an exact pin in one list (requirements.txt, environment.yml, pyproject.toml) that the condition in another list of
the same directory does not allow, or two exact pins of one package in one list.
Why it matters: which release runs depends on the list that was installed last; pip refuses two pins in one list.
When it is fine: lists for tests, documentation or other platforms, and conditions that leave room for the pin.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.catalogue import specifiers
from trainwreck.code.project import Project
from trainwreck.code.settings.requirements import Requirement, requirements
from trainwreck.code.settings.told import told
from trainwreck.code.settings.tree import Place
from trainwreck.code.triggers import BESIDE
from trainwreck.core.evidence import Evidence, Severity

WORDS = (BESIDE,)
BAD = (
    """
#--- requirements.txt
torch==2.3.0
transformers==4.40.2
numpy>=1.20
#--- environment.yml
name: x
dependencies:
  - python=3.11
  - pip:
    - transformers==4.46.0  # expect
    - numpy==1.26
""",
    """
#--- requirements.txt
peft==0.10.0
accelerate
peft==0.11.1  # expect
""",
    """
#--- pyproject.toml
[project]
name = "x"
dependencies = ["torch>=2.4", "trl==0.9.6"]
#--- requirements.txt
torch==2.1.0  # expect
trl==0.9.6
""",
)
GOOD = """
#--- requirements.txt
torch==2.3.0+cu121
transformers>=4.40,<5
numpy
#--- requirements-dev.txt
torch==2.4.0
#--- environment.yml
dependencies:
  - pytorch=2.4
  - pip:
    - transformers==4.46.0
    - torch==2.3.0
#--- other/requirements.txt
torch==1.13.1
#--- marked/requirements.txt
numpy==1.26.4; python_version < "3.13"
numpy==2.1.0; python_version >= "3.13"
"""
LISTS = ("requirements.txt", "environment.yml", "environment.yaml", "pyproject.toml")
"""Names of the lists of a program itself; others are for other machines or purposes."""


def find(project: Project) -> Iterator[Evidence]:
    table: dict[tuple[str, str], list[Requirement]] = {}
    for item in requirements(project):
        folder, _, base = item.path.rpartition("/")
        if base in LISTS and item.specifier and not item.specifier.startswith("@"):
            table.setdefault((folder, item.name), []).append(item)
    for (_, name), every in table.items():
        # a line that stands there again says nothing new, and there may be thousands of them
        items = list({(i.path, i.specifier, i.marked, i.kind): i for i in reversed(every)}.values())[::-1]
        for number, late in enumerate(items):
            early = next((o for o in items[:number] if _quarrel(o, late)), None)
            if early is None:
                continue
            # the exact pin is the one to correct
            item, other = (late, early) if specifiers.exact(late.specifier) is not None else (early, late)
            place = Place(item.path, item.line, item.column, item.column + len(item.written))
            text = f"{name}{item.specifier} here, but {name}{other.specifier} in {other.path}"
            proof = [(other.path, other.line, f"{name}{other.specifier}")]
            severity: Severity | None = "critical" if other.path == item.path else None
            yield told(__name__, place, text, proof=proof, key=name, severity=severity)
            break


def _quarrel(one: Requirement, other: Requirement) -> bool:
    first, second = specifiers.exact(one.specifier), specifiers.exact(other.specifier)
    if one.marked or other.marked:
        return False  # a condition on Python or the platform chooses one of them
    if one.path == other.path:
        return first is not None and second is not None and first != second and one.kind == "requirements"
    if second is not None:
        return not specifiers.allows(one.specifier, second)
    return first is not None and not specifiers.allows(other.specifier, first)
