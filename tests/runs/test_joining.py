"""Places of the program that sightings of a recording are moved to."""

from __future__ import annotations

import io
import textwrap

import pytest

from trainwreck.code import build, witness
from trainwreck.core.evidence import Evidence, Where
from trainwreck.core.source import Source
from trainwreck.joining import join


def placed(sign: str, text: str, line: int | None, module: str | None = None) -> int | None:
    """The line that a sighting at ``line`` is moved to."""
    data = textwrap.dedent(text).strip().encode()
    source = Source("train.py", lambda: io.BytesIO(data), data, len(data))
    project = witness(build([source]), (), assume_newest=False).project
    where = Where("code", path="train.py", line=line, module=module)
    return join([Evidence(sign, "direct", "seen", where, value=1.0)], [], project)[0].where.line


STATE = """
import copy
best = copy.deepcopy(model.state_dict())
for epoch in range(3):
    if better():
        kept = model.state_dict()
model.load_state_dict(kept)
"""
CLIP = """
scaler.scale(loss).backward()
torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
scaler.step(optimizer)
"""
SCHEDULE = """
for x in loader:
    optimizer.step()
    scheduler.step()
"""
HISTORY = """
history = {"mae": [], "names": []}
loss.backward()
history["names"].append(name)
history["mae"].append((output - clean).abs().mean())
"""
ZERO = """
class Low(nn.Module):
    def __init__(self):
        self.down = nn.Parameter(torch.zeros(4, 8))
        nn.init.zeros_(self.up)
"""


@pytest.mark.parametrize(
    ("sign", "text", "line", "module", "wanted"),
    [
        ("live-state-is-the-model-itself", STATE, 6, None, 5),
        ("live-clipped-while-scaled", CLIP, 3, None, 2),
        ("lr-decays-too-fast", SCHEDULE, 1, None, 3),
        ("live-graph-kept", HISTORY, 2, "history.mae", 4),
        ("live-zero-factors", ZERO, 1, "Net.low.up", 4),
        ("live-zero-factors", ZERO, 1, "Net.low.down", 3),
        ("live-pairs-confined", "scores = a @ b.t() * temperature\nloss = f(scores)", 2, None, 1),
        ("live-pairs-confined", "scores = a * temperature\nother = b / temperature\nloss = f(scores)", 3, None, 3),
    ],
)
def test_a_sighting_is_moved_to_the_statement_that_it_comes_from(
    sign: str, text: str, line: int, module: str | None, wanted: int
) -> None:
    assert placed(sign, text, line, module) == wanted
