"""Numbers of tokens are stored as a type that has no room for all of them.

What: a vocabulary of more than 256 (65,536) tokens whose numbers are cast to ``uint8`` (``uint16``), mostly for a file.
Why it matters: the numbers wrap around: rare tokens become frequent ones, rows of the embedding are never trained, and
nothing crashes.
When it is fine: where the type holds the largest number, and for bytes and pixels.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import answers
from trainwreck.code.rehearsal.questions.narrow import overflows
from trainwreck.core.evidence import Evidence

WORDS = ("int8", "uint16", "int16", ".byte(", ".char(", ".short(", "array.array", "ByteTensor", "ShortTensor", '"u1"')
BAD = (
    """
import numpy as np
import tiktoken
import torch
from torch import nn
coder = tiktoken.get_encoding("cl100k_base")
def write(text, path):
    ids = coder.encode_ordinary(text)
    np.array(ids, dtype=np.uint16).tofile(path)  # expect
def train(ids):
    table = nn.Embedding(100_277, 16)
    opt = torch.optim.SGD(table.parameters(), lr=0.1)
    for part in ids.split(64):
        loss = table(part.long()).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
write(open("all.txt").read(), "train.bin")
train(torch.from_numpy(np.fromfile("train.bin", dtype=np.uint16).astype(np.int64)))
""",
    """
import torch
from torch import nn
ids = torch.randint(0, 900, (64, 32)).to(torch.uint8)  # expect
table = nn.Embedding(900, 16)
opt = torch.optim.SGD(table.parameters(), lr=0.1)
for step in range(10):
    loss = table(ids[step].long()).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
)
GOOD = """
import numpy as np
import tiktoken
import torch
from torch import nn
coder, wide = tiktoken.get_encoding("gpt2"), tiktoken.get_encoding("o200k_base")
def write(text, path):
    np.array(coder.encode_ordinary(text), dtype=np.uint16).tofile(path)
    np.array(wide.encode_ordinary(text), dtype=np.uint32).tofile(path + ".wide")
    np.frombuffer(text.encode(), dtype=np.uint8).tofile(path + ".bytes")
def train(ids):
    table = nn.Embedding(100_277, 16)
    opt = torch.optim.SGD(table.parameters(), lr=0.1)
    for part in ids.split(64):
        loss = table(part.long()).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
write(open("all.txt").read(), "train.bin")
train(torch.from_numpy(np.fromfile("train.bin", dtype=np.uint16).astype(np.int64)))
"""


def find(project: Project) -> Iterator[Evidence]:
    yield from answers(__name__, project, overflows)
