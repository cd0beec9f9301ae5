"""Pixels are scaled twice.

What: a ``Compose`` holds two ``Normalize``, or ``/ 255`` is applied after ``ToTensor``, which has already done it.
Why it matters: inputs are squeezed into a sliver of their range; pretrained weights see noise.
When it is fine: never for the same image.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.calls import last_name, written
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.doubled import scaled_twice
from trainwreck.code.rule import sighting
from trainwreck.core.evidence import Evidence

BAD = (
    """
from torchvision import transforms as T
tf = T.Compose([T.ToTensor(), T.Normalize((0.5,), (0.5,)), T.Normalize((0.485,), (0.229,))])  # expect
""",
    """
from torchvision import transforms
tf = transforms.Compose([transforms.ToTensor(), transforms.Lambda(lambda x: x / 255.0)])  # expect
""",
    """
import torchvision.transforms.functional as TF
class Data:
    def __getitem__(self, i):
        return TF.to_tensor(self.images[i]) / 255  # expect
""",
)
GOOD = """
from torchvision import transforms as T
from torchvision.transforms import PILToTensor
tf = T.Compose([T.ToTensor(), T.Normalize((0.5,), (0.5,))])
raw = T.Compose([PILToTensor(), T.Lambda(lambda x: x / 255.0)])
wide = T.Compose([T.ToTensor(), T.Lambda(lambda x: x * 255.0)])
"""


def find(project: Project) -> Iterator[Evidence]:
    yield from further(__name__, project, _written(project), scaled_twice)


def _written(project: Project) -> Iterator[Evidence]:
    for call in project.calls("Compose"):
        items = call.node.args[0] if call.node.args else None
        if not isinstance(items, ast.List | ast.Tuple) or "torchvision" not in project.called(call):
            continue
        written_ = [last_name(e.func) if isinstance(e, ast.Call) else "" for e in items.elts]
        divides = [
            i
            for i, e in enumerate(items.elts)
            if written_[i] == "Lambda" and re.search(r"/ 255(\.0)?\b|div\(255", written(e))
        ]
        if written_.count("Normalize") > 1:
            yield sighting(__name__, call, "this normalises twice")
        elif "ToTensor" in written_ and any(i > written_.index("ToTensor") for i in divides):
            yield sighting(__name__, call, "ToTensor has already divided by 255")
    for call in project.calls("to_tensor", "ToTensor"):
        node: ast.AST = call.node
        if call.name == "ToTensor":
            node = project.parent(call.node, call.scope) or call.node
        above = project.parent(node, call.scope)
        if (
            "torchvision" in project.called(call)
            and isinstance(above, ast.BinOp)
            and isinstance(above.op, ast.Div)
            and above.left is node
            and isinstance(above.right, ast.Constant)
            and above.right.value in (255, 255.0)
        ):
            yield sighting(__name__, (above, call.scope), "ToTensor has already divided by 255")
