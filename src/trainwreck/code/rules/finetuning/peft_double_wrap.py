"""A model is wrapped for adapters twice.

What: ``get_peft_model`` gets what ``get_peft_model`` gave.
Why it matters: a second set of adapters lies over the first; keys of checkpoints change and the first set is frozen.
When it is fine: after ``unload`` or ``merge_and_unload``; with ``add_adapter`` for a second adapter.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import Call
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.code.spine import call_ends
from trainwreck.core.evidence import Evidence
from trainwreck.core.fix import Fix

BAD = (
    """
from peft import LoraConfig, get_peft_model
def main(base):
    model = get_peft_model(base, LoraConfig(r=8))
    model.print_trainable_parameters()
    model = get_peft_model(model, LoraConfig(r=16))  # expect
    return model
""",
    """
from peft import get_peft_model
def build(base, config):
    return get_peft_model(base, config)
def main(base, config):
    net = build(base, config)
    return get_peft_model(net, config)  # expect
""",
)
GOOD = """
from peft import LoraConfig, get_peft_model
def main(base, flag):
    if flag:
        model = get_peft_model(base, LoraConfig(r=8))
    else:
        model = get_peft_model(base, LoraConfig(r=16))
    return model
def again(base):
    model = get_peft_model(base, LoraConfig(r=8))
    model = model.merge_and_unload()
    return get_peft_model(model, LoraConfig(r=8))
def two(one, other, config):
    first = get_peft_model(one, config)
    second = get_peft_model(other, config)
    return first, second
"""


def find(project: Project) -> Iterator[Evidence]:
    for call in project.calls("get_peft_model"):
        model = call.argument("model", 0)
        if model is None or not project.from_package(call, "peft"):
            continue
        ends = call_ends(project, model, call.scope)
        inner = [c for c in ends if c.name == "get_peft_model" and c.node is not call.node]
        if inner and len(ends) == len(inner) and not _excluded(project, call, inner[0]):
            text = "the model that is wrapped here comes from get_peft_model already"
            yield sighting(__name__, call, text, proof=inner[:1], fix=Fix("wrap once, or add_adapter for a second one"))


def _excluded(project: Project, call: Call, other: Call) -> bool:
    """True if both stand in different branches of one ``if``."""
    for above in project.ancestors(call.node, call.scope):
        if isinstance(above, ast.If):
            inside = [any(n is other.node for s in part for n in ast.walk(s)) for part in (above.body, above.orelse)]
            mine = [any(n is call.node for s in part for n in ast.walk(s)) for part in (above.body, above.orelse)]
            if any(inside) and inside != mine:
                return True
    return False
