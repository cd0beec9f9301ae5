"""Spectrograms are made with other settings where the network is asked than where it was trained.

What: the length of the window, the hop, the bands or the rate of a spectrogram differ between the features that a
network is trained on and those that it is evaluated on.
Why it matters: the same axes then mean other frequencies and times; the network hears another language.
When it is fine: with several settings in training too; for a measure that is no input of the network.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.facts import source
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import answers
from trainwreck.code.rehearsal.questions.frontends import other_features
from trainwreck.core.evidence import Evidence

BAD = (
    """
import torch
from torch import nn
def features(wave, n_fft=256):
    return torch.stft(wave, n_fft, 64, return_complex=True).abs().mean(-1)[:, :65]
net = nn.Linear(65, 4)
opt = torch.optim.Adam(net.parameters())
wave, y = torch.randn(64, 2000), torch.randint(0, 4, (64,))
for step in range(50):
    opt.zero_grad()
    nn.functional.cross_entropy(net(features(wave)), y).backward()
    opt.step()
net.eval()
with torch.no_grad():
    print(net(features(torch.randn(8, 2000), 400)).argmax(1))  # expect
""",
    """
import torch
import torchaudio
from torch import nn
front = torchaudio.transforms.MelSpectrogram(16000, n_fft=400, hop_length=160, n_mels=40)
serve = torchaudio.transforms.MelSpectrogram(16000, n_fft=400, hop_length=200, n_mels=40)  # expect
net = nn.Linear(40, 4)
opt = torch.optim.Adam(net.parameters())
wave, y = torch.randn(64, 16000), torch.randint(0, 4, (64,))
for step in range(50):
    opt.zero_grad()
    nn.functional.cross_entropy(net(front(wave).mean(-1)), y).backward()
    opt.step()
net.eval()
with torch.no_grad():
    print(net(serve(torch.randn(8, 16000)).mean(-1)).argmax(1))
""",
)
GOOD = """
import torch
from torch import nn
def features(wave, n_fft=256):
    return torch.stft(wave, n_fft, 64, return_complex=True).abs().mean(-1)[:, :65]
net = nn.Linear(65, 4)
opt = torch.optim.Adam(net.parameters())
wave, y = torch.randn(64, 2000), torch.randint(0, 4, (64,))
for step in range(50):
    opt.zero_grad()
    loss = nn.functional.cross_entropy(net(features(wave)), y)
    loss = loss + nn.functional.cross_entropy(net(features(wave, 512)), y)
    loss.backward()
    opt.step()
net.eval()
test = torch.randn(8, 2000)
with torch.no_grad():
    print(net(features(test, 512)).argmax(1))
    print(torch.stft(test, 128, 32, return_complex=True).abs().mean())
"""


def find(project: Project) -> Iterator[Evidence]:
    text = source(project).lower()
    if any(word in text for word in ("fft", "spectrogram", "mfcc")):
        yield from answers(__name__, project, other_features)
