"""Files are decoded in the training process.

What: ``__getitem__`` reads and decodes an image, a sound or a video from disk, and the training loader has no workers.
Why it matters: the accelerator waits while one process decodes; with workers the next batches are made meanwhile.
When it is fine: for a few files, on a machine with one core, or where batches are cached.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.calls import Call
from trainwreck.code.facts import complete, is_torch, only, option, trains
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.code.scopes import Scope
from trainwreck.code.seek import LOADERS, is_training_loader
from trainwreck.core.evidence import Evidence

BAD = (
    """
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset
class Photos(Dataset):
    def __init__(self, paths):
        self.paths = paths
    def __getitem__(self, i):
        return self.transform(Image.open(self.paths[i]).convert("RGB"))
train_loader = DataLoader(Photos([]), batch_size=64, shuffle=True)  # expect
for x in train_loader:
    net(x.cuda()).sum().backward()
""",
    """
import cv2, torch
class Frames(torch.utils.data.Dataset):
    def _read(self, path):
        return cv2.imread(path)
    def __getitem__(self, i):
        return torch.from_numpy(self._read(self.files[i]))
loader = torch.utils.data.DataLoader(Frames(), 16, shuffle=True, num_workers=0)  # expect
for x in loader:
    net(x.to("cuda")).mean().backward()
""",
    """
import torchaudio
from torch.utils.data import DataLoader, Dataset
class Speech(Dataset):
    def __getitem__(self, i):
        wave, rate = torchaudio.load(self.files[i])
        return wave
def main(net, device):
    data = Speech()
    train = DataLoader(data, shuffle=True)  # expect
    net.cuda()
    for x in train:
        net(x).mean().backward()
""",
)
GOOD = """
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset
class Photos(Dataset):
    def __getitem__(self, i):
        return self.transform(Image.open(self.paths[i]))
class Cached(Dataset):
    def __init__(self, paths):
        self.images = [Image.open(p) for p in paths]
    def __getitem__(self, i):
        return self.images[i]
def main(net, options):
    for x in DataLoader(Photos(), shuffle=True, num_workers=8):
        net(x.cuda()).sum().backward()
    a = DataLoader(Cached([]), shuffle=True)
    b = DataLoader(Photos(), shuffle=True, **options)
    c = DataLoader(Photos())
"""
DECODES = {
    "PIL": ("open",),
    "cv2": ("imread", "VideoCapture", "imdecode"),
    "torchvision": ("read_image", "decode_image", "decode_jpeg", "read_video", "default_loader", "pil_loader"),
    "torchaudio": ("load",),
    "librosa": ("load",),
    "soundfile": ("read",),
    "skimage": ("imread",),
    "imageio": ("imread",),
    "nibabel": ("load",),
    "pydicom": ("dcmread",),
    "decord": ("VideoReader",),
}


def find(project: Project) -> Iterator[Evidence]:
    if not trains(project) or not any(project.calls_by_name.get(n) for n in ("cuda", "to", "is_available")):
        return
    for loader in project.calls(*LOADERS):
        workers = only(project, option(project, loader, "num_workers", 5))
        if workers not in (None, 0) or not is_torch(project, loader) or not complete(project, loader):
            continue
        data = loader.argument("dataset", 0)
        owner = project.class_of(data, loader.scope) if data is not None else None
        read = _decodes(project, owner) if owner is not None and is_training_loader(project, loader) else None
        if read is not None:
            text = "each batch is read and decoded in the training process, while the accelerator waits"
            yield sighting(__name__, loader, text, proof=[read], severity="suggestion")


def _decodes(project: Project, owner: Scope) -> Call | None:
    """The call of ``__getitem__`` (or of a method that it calls) that decodes a file."""
    getter = project.find_method(owner, "__getitem__")
    todo, seen = [getter] if getter is not None else [], set[int]()
    while todo and len(seen) < 8:
        method = todo.pop(0)
        if id(method) in seen:
            continue
        seen.add(id(method))
        for call in project.calls_by_scope.get(method, ()):
            package = project.called(call).split(".", 1)[0]
            if call.name in DECODES.get(package, ()):
                return call
            target = project.resolve(call.node.func, call.scope)
            if target is not None and target.kind == "function":
                todo.append(target)
    return None
