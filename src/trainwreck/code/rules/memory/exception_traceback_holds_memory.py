"""A step is tried again inside the handler of its out-of-memory error.

What: ``except torch.cuda.OutOfMemoryError:`` (or RuntimeError) runs a forward, a step or ``backward`` inside the
handler.
Why it matters: the exception still holds the tensors of the failed step: the second try fails too.
When it is fine: set a flag in the handler and try again after it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import written
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.code.scopes import FunctionNode
from trainwreck.core.evidence import Evidence

BAD = (
    """
import torch
def train(model, loader, criterion):
    for x, y in loader:
        try:
            criterion(model(x), y).backward()
        except torch.cuda.OutOfMemoryError:
            torch.cuda.empty_cache()
            half = len(x) // 2
            criterion(model(x[:half]), y[:half]).backward()  # expect
""",
    """
def train(model, loader):
    for x in loader:
        try:
            loss = model(x)
            loss.backward()
        except RuntimeError as error:
            if "out of memory" in str(error):
                loss = model(x[:1])
                loss.backward()  # expect
""",
)
GOOD = """
import torch
def train(model, loader, criterion):
    for x, y in loader:
        again = False
        try:
            criterion(model(x), y).backward()
        except torch.cuda.OutOfMemoryError:
            again = True
        if again:
            torch.cuda.empty_cache()
            criterion(model(x[:1]), y[:1]).backward()
"""


def find(project: Project) -> Iterator[Evidence]:
    for call in project.calls("backward"):
        for above in project.ancestors(call.node, call.scope):
            if isinstance(above, FunctionNode):
                break
            if isinstance(above, ast.ExceptHandler) and (
                "OutOfMemory" in written(above.type) or "out of memory" in written(above)
            ):
                text = "the handler still holds the tensors of the failed step while this needs memory"
                yield sighting(
                    __name__,
                    call,
                    text,
                    proof=[(call.scope.module.path, above.lineno, f"except {written(above.type)}")],
                )
                break
