"""The optimizer is built before the model gets its adapters.

What: ``get_peft_model`` (or ``add_adapter``) below the construction of the optimizer over the same model.
Why it matters: the optimizer holds the base weights, which are then frozen; the adapters never change.
When it is fine: where the optimizer is built afterwards, or again.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import Call, written
from trainwreck.code.facts import optimizers
from trainwreck.code.huggingface import before
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.core.evidence import Evidence
from trainwreck.core.fix import Fix

BAD = (
    """
import torch
from peft import LoraConfig, get_peft_model
def main(model, loader):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    model = get_peft_model(model, LoraConfig(r=8))  # expect
    for batch in loader:
        model(**batch).loss.backward()
        optimizer.step()
""",
)
GOOD = """
import torch
from peft import LoraConfig, get_peft_model
def main(model, loader):
    model = get_peft_model(model, LoraConfig(r=8))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
def again(model):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    model = get_peft_model(model, LoraConfig(r=8))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
def other(model, critic):
    optimizer = torch.optim.AdamW(critic.parameters(), lr=1e-4)
    model = get_peft_model(model, LoraConfig(r=8))
"""


def find(project: Project) -> Iterator[Evidence]:
    for wrap in project.calls("get_peft_model"):
        model = wrap.argument("model", 0)
        if model is None or not project.from_package(wrap, "peft"):
            continue
        same = [c for c in optimizers(project) if c.scope is wrap.scope and _of(c) == written(model)]
        early = [c for c in same if before(c, wrap)]
        if early and len(early) == len(same):
            text = "the optimizer above holds the weights that are frozen here; the adapters are not in it"
            fix = Fix("build the optimizer after get_peft_model")
            yield sighting(__name__, wrap, text, proof=early[-1:], fix=fix)


def _of(built: Call) -> str:
    value = built.argument("params", 0)
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr == "parameters":
        return written(value.func.value)
    return ""
