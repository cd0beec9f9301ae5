"""A list of requirements names a module, not the distribution that brings it.

What: `sklearn`, `cv2`, `PIL`, `yaml` and the like in requirements.txt, pyproject.toml or `pip install`.
Why it matters: the installer finds nothing of that name, or a stub that ends with an error.
When it is fine: never for these names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainwreck.catalogue.tables import settings_table
from trainwreck.code.project import Project
from trainwreck.code.settings.index import of
from trainwreck.code.settings.requirements import normal, requirements
from trainwreck.code.settings.told import told
from trainwreck.code.settings.tree import Place
from trainwreck.core.evidence import Evidence

BAD = (
    """
#--- requirements.txt
torch
sklearn  # expect
""",
    """
#--- pyproject.toml
[project]
dependencies = [
  "torch>=2",
  "cv2",  # expect
]
""",
    """
#--- setup.sh
pip install torch PIL==9.0  # expect
""",
)
GOOD = """
#--- requirements.txt
torch
scikit-learn
opencv-python-headless
Pillow
PyYAML
#--- setup.sh
pip install -U scikit-learn
pip install -r requirements.txt
conda install yaml
"""


def find(project: Project) -> Iterator[Evidence]:
    instead = settings_table("packages")["instead"]
    for item in requirements(project):
        if item.name in instead and item.kind != "environment":
            place = Place(item.path, item.line, item.column, item.column + len(item.written))
            yield _told(item.written, instead[item.name], place)
    for _, commands in of(project).scripts:
        for command in commands:
            words = [a.text for a in command.args]
            if "pip" not in words[0] and "pip" not in words[1:3]:
                continue
            if "install" not in words:
                continue
            for arg in command.args[words.index("install") + 1 :]:
                name = re.split(r"[=<>~!\[]", arg.text)[0]
                if normal(name) in instead and "/" not in arg.text and not arg.text.startswith("-"):
                    yield _told(name, instead[normal(name)], arg.place)


def _told(name: str, wanted: str, place: Place) -> Evidence:
    return told(__name__, place, f"{name} is a module; its distribution is {wanted}", fix=f"write {wanted}", key=name)
