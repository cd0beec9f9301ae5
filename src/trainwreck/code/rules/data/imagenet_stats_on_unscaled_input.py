"""Statistics for 0..1 meet pixels of 0..255.

What: ``Normalize`` with values below 1 follows ``PILToTensor`` (or a plain cast to float) with nothing that scales
to 0..1.
Why it matters: inputs are hundreds of deviations off; training is unstable and pretrained weights are useless.
When it is fine: with ``ToTensor`` or ``ToDtype(scale=True)``.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import last_name, written
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.transforms import unscaled
from trainwreck.code.rule import sighting
from trainwreck.core.evidence import Evidence

BAD = (
    """
import torch
from torchvision import transforms as T
MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
tf = T.Compose([T.PILToTensor(), T.Lambda(lambda x: x.float()), T.Normalize(MEAN, STD)])  # expect
""",
    """
import torch
from torchvision.transforms import v2
tf = v2.Compose([v2.PILToTensor(), v2.ToDtype(torch.float32), v2.Normalize((0.5,), (0.5,))])  # expect
""",
)
GOOD = """
import torch
from torchvision import transforms as T
from torchvision.transforms import v2
a = T.Compose([T.ToTensor(), T.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])])
b = v2.Compose([v2.PILToTensor(), v2.ToDtype(torch.float32, scale=True), v2.Normalize((0.5,), (0.5,))])
c = T.Compose([T.PILToTensor(), T.ConvertImageDtype(torch.float), T.Normalize((0.5,), (0.5,))])
d = T.Compose([T.PILToTensor(), T.Lambda(lambda x: x.float() / 255), T.Normalize((0.5,), (0.5,))])
"""


def find(project: Project) -> Iterator[Evidence]:
    yield from further(__name__, project, _written(project), unscaled)


def _written(project: Project) -> Iterator[Evidence]:
    for call in project.calls("Compose"):
        items = call.node.args[0] if call.node.args else None
        if not isinstance(items, ast.List | ast.Tuple) or "torchvision" not in project.called(call):
            continue
        kinds = [last_name(e.func) if isinstance(e, ast.Call) else "" for e in items.elts]
        if "" in kinds or not {"PILToTensor", "Normalize"} <= set(kinds):
            continue
        start, end = kinds.index("PILToTensor"), kinds.index("Normalize")
        between = items.elts[start + 1 : end]
        plain = [written(e) for e in between]
        if any(k in ("ConvertImageDtype", "ConvertDtype", "ToTensor") for k in kinds) or any(
            "scale=True" in t or "255" in t for t in plain
        ):
            continue
        if all(
            k in ("ToDtype", "Resize", "CenterCrop", "RandomCrop", "RandomHorizontalFlip", "RandomResizedCrop")
            or "float()" in t
            for k, t in zip(kinds[start + 1 : end], plain, strict=True)
        ):
            yield sighting(__name__, call, "pixels of 0..255 reach Normalize: nothing here scales them to 0..1")
