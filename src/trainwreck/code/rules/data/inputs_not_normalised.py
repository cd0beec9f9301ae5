"""Pixels from 0 to 255 enter the network as they are.

What: bytes of an image (``cv2.imread``, ``Image.open``, ``.data`` of a torchvision set, ``read_image``) become floats
by a plain cast, and nothing in the program divides, scales or normalises.
Why it matters: activations are a hundred times what initialisation and learning rate are made for: training is slow,
stands still or diverges.
When it is fine: where the model scales by itself (a processor, a first batch norm), or for trees.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.calls import Call
from trainwreck.code.facts import source, trains
from trainwreck.code.flow import back
from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import answers, further
from trainwreck.code.rehearsal.questions.forms import standardised_wrongly
from trainwreck.code.rehearsal.questions.octaves import repeating
from trainwreck.code.rehearsal.questions.one_scale import one_scale
from trainwreck.code.rehearsal.questions.scale import large_inputs
from trainwreck.code.rehearsal.questions.standards import not_standard, put_together_wrongly
from trainwreck.code.rehearsal.questions.transforms import unscaled
from trainwreck.code.rule import sighting
from trainwreck.code.scaled_unread import scaled_in_vain
from trainwreck.core.evidence import Evidence

BAD = (
    """
import cv2, torch
class Photos(torch.utils.data.Dataset):
    def __getitem__(self, i):
        image = cv2.imread(self.paths[i])
        return torch.from_numpy(image).permute(2, 0, 1).float(), self.labels[i]  # expect
for x, y in torch.utils.data.DataLoader(Photos(), 8):
    torch.nn.functional.cross_entropy(net(x), y).backward()
""",
    """
import numpy as np
import torch
from PIL import Image
def load(path):
    pixels = np.array(Image.open(path))
    return torch.tensor(pixels, dtype=torch.float32)  # expect
for path in paths:
    net(load(path)).mean().backward()
""",
    """
import torch
from torchvision import datasets
train = datasets.MNIST("d", train=True)
x = train.data.float().view(-1, 784)  # expect
for i in range(10):
    net(x).mean().backward()
""",
    """
import torchvision, torch
from torchvision.io import read_image
def get(path):
    return read_image(path).to(torch.float32)  # expect
net(get("a.png")).mean().backward()
""",
)
GOOD = (
    """
import cv2, torch
class Photos(torch.utils.data.Dataset):
    def __getitem__(self, i):
        image = cv2.imread(self.paths[i])
        return torch.from_numpy(image).permute(2, 0, 1).float() / 255
for x in torch.utils.data.DataLoader(Photos()):
    net(x).mean().backward()
""",
    """
import numpy as np, torch
from PIL import Image
def mask(path):
    return torch.tensor(np.array(Image.open(path)), dtype=torch.long)
net(mask("a.png")).mean().backward()
""",
    """
import torch
from torchvision import datasets
train = datasets.MNIST("d", train=True)
x = train.data.float()
x = (x - x.mean()) / x.std()
net(x).mean().backward()
""",
)
SCALES = pattern(
    r"/=? *255|/=? *256|/=? *127|\*=? *\(?1(\.0)? */ *255|0\.0039|ToTensor|normali[sz]e|to_tensor|scale=True|ToDtype"
    r"|convert_image_dtype|ConvertImageDtype|rescal|Processor|FeatureExtractor|mean\b.*std\b|\.std\(|BatchNorm|LayerNorm"
    r"|Scaler|minmax|\.max\(\)|quantize",
    re.IGNORECASE,
)
"""Whatever may bring pixels to a small range."""
READS = {"cv2.imread", "PIL.Image.open", "torchvision.io.read_image", "torchvision.io.decode_image", "imageio.imread"}
SETS = pattern(r"^torchvision\.datasets\.(MNIST|FashionMNIST|KMNIST|EMNIST|CIFAR10|CIFAR100|SVHN)$")
FLOATS = ("torch.float32", "torch.float", "torch.float16", "torch.bfloat16")


def find(project: Project) -> Iterator[Evidence]:
    if next(answers(__name__, project, unscaled), None) is not None:
        return  # pixels that meet figures of another range: the rule for those says it
    asked = (large_inputs, standardised_wrongly, not_standard, put_together_wrongly, repeating, one_scale)
    yield from further(__name__, project, _bytes(project), *asked)


def _bytes(project: Project) -> Iterator[Evidence]:
    """Pixels that are read as bytes, and never scaled; data that are scaled, and used as they were."""
    for unread in (u for scope in project.scopes for u in scaled_in_vain(project, scope) if not u.beside):
        yield sighting(__name__, (unread.node, unread.scope), unread.text)
    if not trains(project) or SCALES.search(source(project)):
        return
    for call in project.calls("float", "tensor", "to", "FloatTensor", "astype"):
        value = _cast(project, call)
        if value is None:
            continue
        for step in back(project, value, call.scope):
            if step.depth > 6 or not isinstance(step.node, ast.Call):
                continue
            full = project.called(Call(step.node, step.scope))
            picked = any(isinstance(s.node, ast.Attribute) and s.node.attr == "data" for s in step.chain())
            if full in READS or (SETS.match(full) and picked):
                text = "bytes from 0 to 255 become floats here, and nothing in the program scales them"
                yield sighting(__name__, call, text, proof=[step])
                return


def _cast(project: Project, call: Call) -> ast.expr | None:
    """What is cast to floats here."""
    texts = [ast.unparse(a) for a in (*call.node.args, *(k.value for k in call.node.keywords))]
    own = call.receiver is not None and project.bindings_of_values(call.receiver, call.scope)
    if call.name == "float":
        return call.receiver if own and not call.node.args else None
    if call.name in ("to", "astype"):
        wanted = (*FLOATS, "np.float32", "numpy.float32", "'float32'")
        return call.receiver if own and any(t in wanted for t in texts) else None
    if not call.node.args or not project.called(call).startswith("torch."):
        return None
    return call.node.args[0] if call.name == "FloatTensor" or any(t in FLOATS for t in texts) else None
