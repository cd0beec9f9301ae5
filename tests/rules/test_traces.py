# ruff: noqa: E501 (messages are quoted as they are printed)
"""A failure far from its cause: ``# fails:`` marks the line in the traceback and the message, ``# made: id`` the cause.

``# via`` marks the outer frames of the traceback, outermost last.
"""

from __future__ import annotations

import pytest

from trainwreck.code.read import parse
from trainwreck.code.witness import witness
from trainwreck.core.failure import Failure, Frame
from trainwreck.core.program import Module, Program

SCRIPTS = {
    "labels from a mapping literal": """
import torch
import torch.nn.functional as F
IDS = {"cat": 1, "dog": 2, "bird": 3}  # made: label-out-of-range
class Pets:
    def __init__(self, files):
        self.items = [(f, IDS[f.parent.name]) for f in files]
    def __getitem__(self, k):
        path, target = self.items[k]
        return load(path), target
def fit(model, files):
    loader = torch.utils.data.DataLoader(dataset=Pets(files), batch_size=8)
    for batch in loader:
        image, target = batch
        F.cross_entropy(model(image), target)  # fails: IndexError: Target 3 is out of bounds.
""",
    "labels shifted in a transform of a Lightning module": """
import torch
from torch import nn
import lightning as L
class Lit(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.criterion = nn.CrossEntropyLoss()
    def shift(self, y):
        return y.long() + 1  # made: label-out-of-range
    def training_step(self, batch, index):
        x, y = batch
        y = self.shift(y)
        return self.criterion(self.net(x), y)  # fails: IndexError: Target 10 is out of bounds.
""",
    "targets become floats in a collate function": """
import numpy as np
import torch
def collate(rows):
    x = torch.stack([r[0] for r in rows])
    y = torch.tensor(np.array([r[1] for r in rows], dtype=np.float32))  # made: int-float-mismatch
    return x, y
def main(data, net):
    loss_fn = torch.nn.CrossEntropyLoss()
    loader = torch.utils.data.DataLoader(data, 4, collate_fn=collate)
    for x, y in loader:
        loss_fn(net(x), y)  # fails: RuntimeError: expected scalar type Long but found Float
""",
    "regression targets stay integers": """
import torch
import torch.nn.functional as F
class Ages(torch.utils.data.Dataset):
    def __getitem__(self, i):
        return self.x[i], torch.tensor(self.age[i])  # made: int-float-mismatch
def main(net):
    for x, y in torch.utils.data.DataLoader(Ages()):
        loss = F.binary_cross_entropy_with_logits(net(x), y)  # fails: RuntimeError: result type Float can't be cast to the desired output type Long
""",
    "a data frame in double precision": """
import pandas as pd
import torch
from torch import nn
def table(path):
    frame = pd.read_csv(path)
    return torch.from_numpy(frame.to_numpy())  # made: float-double-mismatch
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 8)
    def forward(self, x):
        return self.first(x)  # fails: RuntimeError: mat1 and mat2 must have the same dtype, but got Double and Float
def main():
    features = table("x.csv")
    net = Net()
    net(features[:10])  # via
""",
    "an image read by imageio": """
import imageio.v3 as iio
import torch
from torch import nn
class Photos(torch.utils.data.Dataset):
    def __getitem__(self, i):
        photo = iio.imread(self.paths[i])
        tensor = torch.as_tensor(photo)  # made: channels-order
        return tensor / 255, self.labels[i]
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU())
    def forward(self, x):
        return self.features(x)  # fails: RuntimeError: expected input[4, 64, 64, 3] to have 3 channels, but got 64 channels instead
def main():
    net = Net()
    for x, y in torch.utils.data.DataLoader(Photos(), batch_size=4):
        net(x)  # via
""",
    "a hidden state for the full batch": """
import torch
from torch import nn
class Net(nn.Module):
    def __init__(self, batch_size):
        super().__init__()
        self.batch_size = batch_size
        self.rnn = nn.GRU(8, 16, batch_first=True)
    def forward(self, x):
        h0 = torch.zeros(1, self.batch_size, 16)  # made: last-batch-size
        out, _ = self.rnn(x, h0)  # fails: RuntimeError: Expected hidden size (1, 5, 16), got [1, 32, 16]
        return out
""",
    "a group of parameters that was frozen": """
import torch
def resume(build, path):
    model = build()
    for p in model.encoder.parameters():
        p.requires_grad = False
    trainable = filter(lambda p: p.requires_grad, model.parameters())
    optimizer = torch.optim.AdamW(trainable, lr=1e-4)  # made: param-group-mismatch
    checkpoint = torch.load(path)
    optimizer.load_state_dict(checkpoint["optimizer"])  # fails: ValueError: loaded state dict contains a parameter group that doesn't match the size of optimizer's group
""",
    "a checkpoint of a compiled model": """
import torch
class Runner:
    def __init__(self, net):
        self.model = torch.compile(net)
    def save(self, path):
        torch.save({"weights": self.model.state_dict()}, path)  # made: key-prefix-compile
def load(net, path):
    net.load_state_dict(torch.load(path)["weights"])  # fails: RuntimeError: Error(s) in loading state_dict for Net: Missing key(s) in state_dict: "a". Unexpected key(s) in state_dict: "_orig_mod.a"
""",
    "a loader that keeps one sample": """
from torch.utils.data import DataLoader
def loaders(train, val, size):
    return DataLoader(train, size, True), DataLoader(val, size)  # made: batchnorm-single-sample
def main(net, train, val):
    train_dl, val_dl = loaders(train, val, 64)
    for x, y in train_dl:
        net(x)  # fails: ValueError: Expected more than 1 value per channel when training, got input size torch.Size([1, 128])
""",
    "an in-place activation": """
import torch
from torch import nn
class Block(nn.Module):
    def forward(self, x):
        y = torch.tanh(self.conv(x))
        y.add_(x)  # made: inplace-op-on-saved
        return y
def main(net, loader):
    for x in loader:
        loss = net(x).mean()
        loss.backward()  # fails: RuntimeError: one of the variables needed for gradient computation has been modified by an inplace operation
""",
    "features of a frozen backbone, computed once": """
import torch
from torch import nn
def main(images, labels, opt):
    backbone, head = nn.Linear(10, 8), nn.Linear(8, 2)
    features = backbone(images)  # made: graph-built-once
    for epoch in range(5):
        logits = head(features)
        loss = nn.functional.cross_entropy(logits, labels)
        opt.zero_grad()
        loss.backward()  # fails: RuntimeError: Trying to backward through the graph a second time
        opt.step()
""",
    "a loader of ragged boxes": """
import torch
class Boxes(torch.utils.data.Dataset):
    def __getitem__(self, i):
        return torch.tensor(self.boxes[i])
def main():
    data = Boxes()
    train = torch.utils.data.DataLoader(data, batch_size=2, shuffle=True)  # made: ragged-collate
    for epoch in range(3):
        for step, boxes in enumerate(train):  # fails: RuntimeError: stack expects each tensor to be equal size, but got [3, 4] at entry 0 and [5, 4] at entry 1
            pass
""",
    "a store opened in the constructor": """
import h5py
from torch.utils.data import DataLoader, Dataset
class Store(Dataset):
    def __init__(self, path):
        super().__init__()
        self.path = path
        self.store = h5py.File(path, "r")  # made: unpicklable-handle
    def __getitem__(self, i):
        return self.store["x"][i]
def main():
    for x in DataLoader(Store("a.h5"), num_workers=2):  # fails: TypeError: h5py objects cannot be pickled
        pass
""",
    "a tokenizer that pads without a token": """
from transformers import AutoTokenizer, DataCollatorWithPadding, Trainer
def main(model, args, data):
    tok = AutoTokenizer.from_pretrained("gpt2")  # made: pad-token-missing
    trainer = Trainer(model, args, DataCollatorWithPadding(tok), data)
    trainer.train()  # fails: ValueError: Asking to pad but the tokenizer does not have a padding token.
""",
    "new tokens after the model": """
from transformers import AutoModelForCausalLM, AutoTokenizer
def main(batches):
    tokenizer = AutoTokenizer.from_pretrained("x")
    model = AutoModelForCausalLM.from_pretrained("x")
    tokenizer.add_special_tokens({"additional_special_tokens": ["<a>"]})  # made: vocab-not-resized
    for ids in batches:
        model(ids)  # fails: IndexError: index out of range in self
""",
}


@pytest.mark.parametrize("text", SCRIPTS.values(), ids=[name.replace(" ", "-") for name in SCRIPTS])
def test_the_place_of_the_cause_is_named(text: str) -> None:
    module = parse("train.py", text)
    assert isinstance(module, Module), module
    lines = list(enumerate(module.lines, 1))
    made = next((n, line.split("# made: ")[1].strip()) for n, line in lines if "# made: " in line)
    failing = next((n, line.split("# fails: ")[1]) for n, line in lines if "# fails: " in line)
    kind, _, message = failing[1].partition(": ")
    places = [*(n for n, line in lines if "# via" in line), failing[0]]
    frames = [Frame("/srv/job/train.py", n, "?", module.lines[n - 1]) for n in places]
    sightings = witness(Program({"train.py": module}), [Failure(kind, message, frames)])
    assert not sightings.broken
    assert made[0] in [e.where.line for e in sightings.evidence if e.sign == f"code-{made[1]}"]
