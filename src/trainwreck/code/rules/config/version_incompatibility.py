"""Releases that cannot work together.

What: torchvision or torchaudio pinned to a release that was built for another torch; NumPy 2 beside a torch older than
2.3.
Why it matters: the extension modules do not load, or fail at the first operator ("operator torchvision::nms does not
exist", "A module that was compiled using NumPy 1.x cannot be run in NumPy 2").
When it is fine: where one of the two is not pinned to one release.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.catalogue import specifiers
from trainwreck.catalogue.tables import settings_table
from trainwreck.code.project import Project
from trainwreck.code.settings.requirements import Requirement, requirements
from trainwreck.code.settings.told import told
from trainwreck.code.settings.tree import Place
from trainwreck.code.triggers import BESIDE
from trainwreck.core.evidence import Evidence

WORDS = (BESIDE,)
BAD = (
    """
#--- requirements.txt
torch==2.3.1
torchvision==0.19.0  # expect
""",
    """
#--- requirements.txt
numpy==2.0.1  # expect
torch==2.1.2+cu118
torchaudio==2.2.0  # expect
""",
)
GOOD = """
#--- requirements.txt
torch==2.4.1+cu121
torchvision==0.19.1
torchaudio==2.4.1
numpy==2.0.1
#--- other/requirements.txt
torch>=2.0
torchvision==0.19.0
numpy>=2
"""
NUMPY_2 = (2, 3)
"""The first torch that was built for NumPy 2 (release notes of 2.3)."""


def find(project: Project) -> Iterator[Evidence]:
    by_file: dict[str, dict[str, Requirement]] = {}
    for item in requirements(project):
        by_file.setdefault(item.path, {}).setdefault("torch" if item.name == "pytorch" else item.name, item)
    for here in by_file.values():
        torch = here.get("torch")
        version = specifiers.exact(torch.specifier) if torch is not None else None
        if torch is None or version is None or len(version) < 2:
            continue
        for name in ("torchvision", "torchaudio", "numpy"):
            other = here.get(name)
            theirs = specifiers.exact(other.specifier) if other is not None else None
            if other is not None and theirs is not None and len(theirs) >= 2:
                wrong = _wrong(name, version, theirs)
                if wrong:
                    place = Place(other.path, other.line, other.column, other.column + len(other.written))
                    proof = [(torch.path, torch.line, f"torch{torch.specifier}")]
                    text = f"{name}{other.specifier} does not go with torch{torch.specifier}: {wrong}"
                    yield told(__name__, place, text, proof=proof, key=name)


def _wrong(name: str, torch: specifiers.Version, other: specifiers.Version) -> str:
    release = f"{torch[0]}.{torch[1]}"
    if name == "numpy":
        return "it was built for NumPy 1; numpy<2" if other[0] >= 2 and torch[:2] < NUMPY_2 else ""
    if name == "torchaudio":
        return f"it needs torchaudio {release}" if torch[:2] != other[:2] and torch[0] >= 2 else ""
    wanted = settings_table("packages")["torchvision"].get(release)
    return f"it needs torchvision {wanted}" if wanted is not None and wanted != f"{other[0]}.{other[1]}" else ""
