"""What is read off the outputs of a network is not what they say.

What: a text is decoded from the frames of a network that learned with CTC by taking the blanks out first and merging
equal symbols then, or without merging any.
Why it matters: right outputs are counted wrong: no word with a doubled letter can be read, or each one is stretched.
When it is fine: repeats are merged first, and the blanks are taken out of what is left.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import answers
from trainwreck.code.rehearsal.questions.decoded_paths import repeats_not_kept_apart
from trainwreck.core.evidence import Evidence

START = """
import torch
from torch import nn
net = nn.LSTM(20, 30, batch_first=True)
out = nn.Linear(30, 11)
opt = torch.optim.Adam([*net.parameters(), *out.parameters()])
def scores(frames):
    return out(net(frames)[0]).log_softmax(-1)
for frames, texts, sizes, lengths in torch.load("spoken.pt", weights_only=True):
    loss = nn.functional.ctc_loss(scores(frames).transpose(0, 1), texts, sizes, lengths, blank=0)
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
BAD = (
    START
    + """
def text(logits, n):
    path = [k for k in logits[:n].argmax(-1).tolist() if k != 0]  # expect
    return [k for at, k in enumerate(path) if at == 0 or k != path[at - 1]]
""",
    START
    + """
def text(logits):
    found = []
    for row in logits.argmax(-1):
        last, word = 0, []
        for k in row.tolist():
            if k != 0:
                if k != last:
                    word.append(k)
                last = k  # expect
        found.append(word)
    return found
""",
)
GOOD = (
    START
    + """
from itertools import groupby
def text(logits, n):
    return [k for k, _ in groupby(logits[:n].argmax(-1).tolist()) if k != 0]
def frames_with_sound(logits):
    return [k for k in logits.argmax(-1).tolist() if k > 0]
""",
)


def find(project: Project) -> Iterator[Evidence]:
    yield from answers(__name__, project, repeats_not_kept_apart)
