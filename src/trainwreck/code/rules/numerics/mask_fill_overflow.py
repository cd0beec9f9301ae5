"""A mask constant that fp16 cannot hold, or an infinite one that is multiplied by the mask.

What: scores that are fp16 (``.half()``, autocast to float16) are filled with a number below -65504; a mask of zeros and
ones is multiplied by infinity.
Why it matters: the constant becomes -inf (a fully masked row is NaN) or the fill fails with an overflow; 0 times
infinity is NaN.
When it is fine: in bf16 and fp32, with ``torch.finfo(x.dtype).min``, and where the scores are cast to float before.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.bounds import interval
from trainwreck.code.calls import Call, written
from trainwreck.code.facts import source, text_of
from trainwreck.code.flow import back
from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.infinities import times_zero
from trainwreck.code.rule import sighting
from trainwreck.core.evidence import Evidence

BAD = (
    """
import torch
def attend(s, mask, v):
    s = s.half()
    s = s.masked_fill(mask, -1e9)  # expect
    return s.softmax(-1) @ v.half()
""",
    """
import torch
NEG = -1e10
class Attention(torch.nn.Module):
    def forward(self, q, k, v, mask):
        score = q @ k.transpose(-2, -1)
        score = score.masked_fill(mask, NEG)  # expect
        return score.softmax(-1) @ v
def train(net, loader, opt):
    scaler = torch.amp.GradScaler()
    for q, k, v, m in loader:
        with torch.autocast("cuda", dtype=torch.float16):
            loss = net(q, k, v, m).mean()
        scaler.scale(loss).backward()
        scaler.step(opt)
""",
    """
import torch
def bias(scores, mask):
    return torch.where(mask, scores.to(torch.float16), torch.tensor(-1e9, dtype=torch.float16))  # expect
""",
)
GOOD = """
import torch
def attend(s, mask, v):
    s = s.half()
    a = s.masked_fill(mask, -1e4).softmax(-1)
    b = s.masked_fill(mask, torch.finfo(s.dtype).min).softmax(-1)
    c = s.float().masked_fill(mask, -1e9).softmax(-1)
    d = s.masked_fill(mask, float("-inf")).softmax(-1)
    return a, b, c, d
def full(s, mask):
    return s.masked_fill(mask, -1e9)
"""
LOWEST = -65504.0
"""The lowest finite number of IEEE half precision."""
HALF = pattern(r"\.half\(\)|torch\.(float16|half)\b")


def find(project: Project) -> Iterator[Evidence]:
    yield from further(__name__, project, _written(project), times_zero)


def _written(project: Project) -> Iterator[Evidence]:
    text = source(project)
    if not HALF.search(text):
        return
    under_autocast = bool(re.search(r"autocast\([^)]*(float16|half)", text))
    for call in project.calls("masked_fill", "masked_fill_", "where"):
        fill = call.node.args[-1] if call.node.args else None
        if fill is None or "finfo" in written(fill):
            continue
        inner = fill.args[0] if isinstance(fill, ast.Call) and fill.args else fill
        low, high = interval(project, inner, call.scope)
        if low != high or not low < LOWEST:
            continue
        if _is_half(project, call) or (under_autocast and _product(project, call)):
            yield sighting(__name__, call, f"{low:g} lies below the range of fp16, which ends at -65504")


def _is_half(project: Project, call: Call) -> bool:
    """True if the filled scores were cast to fp16 in the same function."""
    value = call.node.args[1] if call.name == "where" and len(call.node.args) > 1 else call.receiver
    for step in back(project, value, call.scope) if value is not None else ():
        text = written(step.node)
        if ".float()" in text or "float32" in text:
            return False
        if isinstance(step.node, ast.Call) and HALF.search(text) and step.depth < 6:
            return True
    return False


def _product(project: Project, call: Call) -> bool:
    """True if the scores are a matrix product, which autocast computes in fp16."""
    text = text_of(project, call.scope)
    return " @ " in text and ".float()" not in text and "autocast" not in text
