"""A random transform is drawn separately for image and mask.

What: ``__getitem__`` calls the same random transform once for the image and once for its mask or boxes.
Why it matters: each call draws its own crop or flip: the mask no longer lies over the image.
When it is fine: with one call for both, or a seed that is set before each.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.calls import Call, last_name, written
from trainwreck.code.facts import (
    made,
    text_of,
)
from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.geometry import apart
from trainwreck.code.rule import sighting
from trainwreck.core.evidence import Evidence

BAD = (
    """
from torch.utils.data import Dataset
from torchvision import transforms as T
class Seg(Dataset):
    def __init__(self):
        self.tf = T.Compose([T.RandomCrop(64), T.RandomHorizontalFlip(), T.ToTensor()])
    def __getitem__(self, i):
        image = self.tf(self.images[i])
        mask = self.tf(self.masks[i])  # expect
        return image, mask
""",
    """
from torchvision.transforms import RandomRotation
rotate = RandomRotation(30)
class Seg:
    def __getitem__(self, i):
        img, label_mask = load(i)
        return rotate(img), rotate(label_mask)  # expect
""",
)
GOOD = """
import torch
from torchvision import transforms as T
class Joint:
    def __init__(self, both):
        self.resize = T.Compose([T.Resize(64), T.ToTensor()])
        self.flip = T.RandomHorizontalFlip()
        self.both = both
    def __getitem__(self, i):
        image, mask = self.both(image=self.images[i], mask=self.masks[i])
        image, mask = self.resize(image), self.resize(mask)
        torch.manual_seed(i)
        a = self.flip(image)
        torch.manual_seed(i)
        return a, self.flip(mask)
class Views:
    def __init__(self):
        self.flip = T.RandomHorizontalFlip()
    def __getitem__(self, i):
        x = self.images[i]
        return self.flip(x), self.flip(x)
"""
MASK = pattern(r"mask|segm|label_map|boxes|target_image|gt", re.IGNORECASE)
GEOMETRIC = pattern(
    r"^Random(Crop|ResizedCrop|HorizontalFlip|VerticalFlip|Rotation|Affine|Perspective)$|^ElasticTransform$"
)


def find(project: Project) -> Iterator[Evidence]:
    yield from further(__name__, project, _written(project), apart)


def _written(project: Project) -> Iterator[Evidence]:
    for getter in project.functions:
        if getter.name != "__getitem__" or "seed" in text_of(project, getter):
            continue
        calls = [
            c
            for c in project.calls_by_scope.get(getter, ())
            if len(c.node.args) == 1 and isinstance(c.node.func, ast.Name | ast.Attribute)
        ]
        for call in calls:
            if not MASK.search(written(call.node.args[0])) or not _geometric(project, call):
                continue
            same = [
                c
                for c in calls
                if written(c.node.func) == written(call.node.func) and not MASK.search(written(c.node.args[0]))
            ]
            if same:
                text = "the random transform is drawn anew for the mask, apart from the image"
                yield sighting(__name__, call, text, proof=same[:1])
                break


def _geometric(project: Project, call: Call) -> bool:
    for maker in made(project, call.node.func, call.scope):
        inner = [n for n in ast.walk(maker.node) if isinstance(n, ast.Call)]
        if "torchvision" in project.called(maker) and any(GEOMETRIC.search(last_name(n.func)) for n in inner):
            return True
    return False
