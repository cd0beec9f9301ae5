"""The old argument for weights of torchvision.

What: `pretrained=` or `pretrained_backbone=` of a model of torchvision.
Why it matters: deprecated since torchvision 0.13: it warns, and says nothing about which weights are meant.
When it is fine: in models of other libraries (timm), and with torchvision below 0.13.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import Call
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.code.targets import version_of
from trainwreck.core.evidence import Evidence
from trainwreck.core.fix import Fix

BAD = """
import torchvision
from torchvision.models import resnet50
from torchvision.models.detection import fasterrcnn_resnet50_fpn as rcnn
net = torchvision.models.resnet18(pretrained=True)  # expect
old = resnet50(True)  # expect
box = rcnn(pretrained=False, pretrained_backbone=True)  # expect
"""
GOOD = """
import timm
from torchvision import models
from torchvision.models import ResNet18_Weights, resnet18
def resnet50(pretrained):
    return None
net = timm.create_model("resnet18", pretrained=True)
resnet50(pretrained=True)
old = models.resnet18(weights=ResNet18_Weights.DEFAULT)
new = resnet18(weights=None)
"""


OLD = {"pretrained": "weights", "pretrained_backbone": "weights_backbone"}


def find(project: Project) -> Iterator[Evidence]:
    for walked in project.walked.values():
        if "torchvision" not in walked.top.module.text:
            continue
        for node, scope in walked.calls:
            call = Call(node, scope)
            old = next((k.arg for k in node.keywords if k.arg in OLD), None)
            flag = (
                isinstance(node.args[0], ast.Constant) and isinstance(node.args[0].value, bool) if node.args else False
            )
            if (old is None and not flag) or not call.name[:1].islower():
                continue
            name = project.called(call)
            if not name.startswith("torchvision.models.") or call.name in ("get_model", "get_weight"):
                continue
            version, pin = version_of(project, "torchvision", scope.module.path)
            if (pin is None and not project.assume_newest) or (version is not None and version < (0, 13)):
                continue
            new = OLD.get(old or "pretrained", "weights")
            text = f"`{old or 'pretrained'}` of {call.name} is deprecated since torchvision 0.13; say {new}=..._Weights"
            yield sighting(
                __name__, call, text, fix=Fix(f"{new}=<Model>_Weights.IMAGENET1K_V1, or None for no weights")
            )
