"""An image reaches a convolution with its channels last.

What: a convolution gets a tensor whose last axis has the number of channels that it takes, and another size where the
channels belong; or an array (height, width, channels) becomes a tensor without ``permute(2, 0, 1)``.
Why it matters: the convolution takes the height for the channels and refuses it, or worse, accepts it.
When it is fine: with ``ToTensor`` of torchvision, which permutes, and for models that want channels last.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import last_name, written
from trainwreck.code.flow import Step, back
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.misfits import clashes
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.declared import channels_last
from trainwreck.code.rule import guess, sighting
from trainwreck.code.seek import dataset_classes, inputs
from trainwreck.code.surface import Surface
from trainwreck.core.evidence import Evidence

SURFACES = (
    r"to have \d+ channels, but got \d+ channels",
    r"expected input\[.*\] to have",
    r"Given groups=\d+, weight of size",
)
ERROR = "RuntimeError: Given groups=1, expected input[4, 9, 9, 3] to have 3 channels, but got 9"
BAD = (
    """
import torch
from torch import nn
class Data(torch.utils.data.Dataset):
    def __getitem__(self, i):
        return torch.from_numpy(self.images[i]).float(), self.labels[i]  # expect
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3)
    def forward(self, x):
        return self.conv(x)  # fails
def main():
    model = Net()
    for x, y in torch.utils.data.DataLoader(Data(), batch_size=4):
        model(x)
""",
    """
import torch
from torch import nn
net = nn.Sequential(nn.Conv2d(3, 16, 3), nn.ReLU())  # expect
image = torch.rand(224, 224, 3)
out = net(image.unsqueeze(0))
""",
)
GOOD = """
import torch
from torch import nn
class Data(torch.utils.data.Dataset):
    def __getitem__(self, i):
        return torch.from_numpy(self.images[i]).permute(2, 0, 1).float(), self.labels[i]
def main():
    model = nn.Sequential(nn.Conv2d(4, 8, 3))
    for x, y in torch.utils.data.DataLoader(Data(), batch_size=4):
        model(x)  # fails
"""
REORDER = ("permute", "transpose", "moveaxis", "movedim", "rollaxis", "swapaxes", "rearrange", "ToTensor", "to_tensor")
MAKERS = ("from_numpy", "as_tensor", "tensor", "FloatTensor", "pil_to_tensor", "imread", "decode_image", "stack")


def find(project: Project) -> Iterator[Evidence]:
    found = [sighting(__name__, c.place, c.text, proof=c.by) for c in clashes(project, "channels-last")]
    yield from further(__name__, project, found, channels_last)


def trace(project: Project, surface: Surface) -> Iterator[Evidence]:
    for node, scope in inputs(project, surface):
        for step in back(project, node, scope):
            if _is(step, MAKERS) and not any(_mentions_reorder(s, project) for s in step.chain()):
                yield guess(
                    __name__, step, "the image becomes a tensor here with its axes as they were", step.chain()[1:4]
                )
                return


def locate(project: Project, surface: Surface | None) -> Iterator[Evidence]:
    asked = inputs(project, surface) if surface is not None else []
    for node, scope in asked:
        for step in back(project, node, scope):
            if _is(step, REORDER) or _is(step, ("view", "reshape", "unsqueeze")):
                yield guess(__name__, step, "the axes of the image are arranged here")
                return
    for owner in dataset_classes(project):
        method = owner.method("__getitem__")
        for value in method.returns if method is not None else ():
            if value is not None and method is not None:
                yield guess(__name__, (value, method), "the images are handed out here")
                return


def _is(step: Step, names: tuple[str, ...]) -> bool:
    return isinstance(step.node, ast.Call) and last_name(step.node.func) in names


def _mentions_reorder(step: Step, project: Project) -> bool:
    text = written(step.node)
    return any(name in text for name in REORDER)
