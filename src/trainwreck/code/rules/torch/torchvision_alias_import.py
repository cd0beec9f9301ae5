"""A module of torchvision imported under an alias of its own name.

What: `import torchvision.models as models` (datasets, transforms).
Why it matters: nothing breaks: `from torchvision import models` is the plain way.
When it is fine: always; it is a matter of style.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code import edits
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.core.evidence import Evidence

WORDS = ("torchvision",)
BAD = """
import torchvision.models as models  # expect
import torchvision.transforms as transforms  # expect
"""
GOOD = """
import torchvision.transforms as T
from torchvision import models
"""


MODULES = ("datasets", "models", "transforms")


def find(project: Project) -> Iterator[Evidence]:
    for walked in project.walked.values():
        for name in MODULES:
            for binding in walked.top.bindings.get(name, ()):
                node = binding.node
                if binding.target != f"torchvision.{name}" or not isinstance(node, ast.Import) or len(node.names) != 1:
                    continue
                text = f"`from torchvision import {name}` says the same"
                fix = edits.replace(node, walked.top, f"from torchvision import {name}", text, safe=True)
                yield sighting(__name__, (node, walked.top), text, fix=fix)
