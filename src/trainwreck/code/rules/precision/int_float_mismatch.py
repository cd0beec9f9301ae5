"""Labels or inputs have a whole-number type where floating point is needed, or the other way round.

What: class indices are made as floats (``dtype=torch.float32``, ``.float()``), or the targets of a regression or of
BCE stay integers, or an embedding is indexed with floats; or fractions are written into an array of whole numbers or
divided away on their way into the network.
Why it matters: the loss refuses the type, or reads class indices as probabilities; fractions are cut off in silence.
When it is fine: float targets of shape (N, C) are class probabilities for cross entropy.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.calls import Call, last_name, written
from trainwreck.code.flow import Step, back
from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import answers
from trainwreck.code.rehearsal.questions.whole_numbers import divided_away, fractions_lost
from trainwreck.code.rule import guess
from trainwreck.code.seek import CONVERSIONS, inputs, targets
from trainwreck.code.surface import Surface
from trainwreck.core.evidence import Evidence

WHOLE, REAL = (
    r"\b(?:torch\.)?(?:cuda\.)?(?:Long|Int|Byte|Bool)(?:Tensor)?\b",
    r"\b(?:torch\.)?(?:cuda\.)?(?:Float|Double|Half)(?:Tensor)?\b",
)
SURFACES = (
    rf"(?:dtype|scalar type|type|tensor).*{WHOLE}.*{REAL}",
    rf"(?:dtype|scalar type|type|tensor).*{REAL}.*{WHOLE}",
    r"not implemented for '(Long|Int|Float|Byte|Bool|Short)'",
    r"can't be cast to the desired output type",
    r"Expected floating point type for target with class probabilities",
    r"Can only calculate the mean of|could not infer output dtype",
)
ERROR = "RuntimeError: expected scalar type Long but found Float"
BAD = """
import torch
from torch import nn
class Data(torch.utils.data.Dataset):
    def __getitem__(self, i):
        x = torch.from_numpy(self.images[i])
        y = torch.tensor(self.ids[i], dtype=torch.float32)  # expect
        return x, y
def main(model):
    criterion = nn.CrossEntropyLoss()
    for x, y in torch.utils.data.DataLoader(Data(), batch_size=4):
        loss = criterion(model(x), y)  # fails
"""
GOOD = """
import torch
from torch import nn
def main(model, loader):
    criterion = nn.CrossEntropyLoss()
    for x, y in loader:
        loss = criterion(model(x), y)  # fails
"""
FLOATS = pattern(r"float\d*\b|FloatTensor|\.double\b|\bdouble\b|half\b", re.IGNORECASE)
INTEGERS = pattern(r"\bu?int\d*\b|\blong\b|LongTensor|IntTensor|\.long\b", re.IGNORECASE)


def find(project: Project) -> Iterator[Evidence]:
    yield from answers(__name__, project, fractions_lost)
    yield from answers(__name__, project, divided_away)


def trace(project: Project, surface: Surface) -> Iterator[Evidence]:
    found_float = bool(re.search(rf"(?:found|got) {REAL}|for 'Float'", surface.message))
    wrong = FLOATS if found_float or ("nll_loss" in surface.message and "Int" not in surface.message) else INTEGERS
    asked = targets(project, surface) or inputs(project, surface)
    if "indices" in surface.message:
        asked = inputs(project, surface)
    for node, scope in asked:
        for step in back(project, node, scope):
            if _converts(step, wrong):
                yield guess(__name__, step, "the type is decided here", step.chain()[1:4])
                return
    for node, scope in asked:
        for step in back(project, node, scope):
            if isinstance(step.node, ast.Call) and last_name(step.node.func) in CONVERSIONS:
                yield guess(__name__, step, "the values become a tensor here and keep their type", step.chain()[1:4])
                return


def _converts(step: Step, wrong: re.Pattern[str]) -> bool:
    node = step.node
    if not isinstance(node, ast.Call):
        return False
    name, call = last_name(node.func), Call(node, step.scope)
    if name in ("float", "double", "half", "long", "int", "FloatTensor", "LongTensor", "IntTensor", "DoubleTensor"):
        return bool(wrong.search(name if name[0].isupper() else f".{name}"))
    if name in ("to", "type", "astype", "asarray", "array") and node.args:
        return bool(wrong.search(written(node.args[-1])))
    dtype = call.argument("dtype")
    return dtype is not None and bool(wrong.search(written(dtype)))
