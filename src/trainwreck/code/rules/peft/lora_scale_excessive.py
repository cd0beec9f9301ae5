"""``lora_alpha / r`` is so large that the adapter drowns the base model.

What: alpha is many times the rank; or the update counts otherwise in the merged weights than in the forward.
Why it matters: the update is multiplied by alpha/r; training is unstable from the first steps.
When it is fine: ratios of 0.5 to 4, or with ``use_rslora``.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.bounds import origin
from trainwreck.code.calls import written
from trainwreck.code.phases import ADAPTER
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.merged_scale import merged_otherwise
from trainwreck.code.rehearsal.questions.strength import too_strong
from trainwreck.code.rule import guess, sighting
from trainwreck.code.seek import keyword_place, modules
from trainwreck.code.surface import Surface
from trainwreck.code.values import number
from trainwreck.core.evidence import Evidence

BAD = (
    """
from peft import LoraConfig
config = LoraConfig(
    r=4,
    lora_alpha=2048,  # expect
)
""",
    """
import torch
from torch import nn
class LoRALinear(nn.Module):
    def __init__(self, base, r=4, alpha=4096):  # expect
        super().__init__()
        self.base = base
        self.A, self.B = nn.Parameter(torch.randn(r, 8)), nn.Parameter(torch.zeros(8, r))
        self.scale = alpha / r
""",
)
GOOD = """
from peft import LoraConfig
config = LoraConfig(r=8, lora_alpha=32)
other = LoraConfig(r=8, lora_alpha=alpha())
"""
EXCESSIVE = 64.0
"""alpha/r; published recipes use 0.25 to 4, experiments up to 32."""


def find(project: Project) -> Iterator[Evidence]:
    yield from further(__name__, project, _written(project), too_strong, merged_otherwise)


def _written(project: Project) -> Iterator[Evidence]:
    for call in project.calls("LoraConfig"):
        rank = number(project, call.argument("r"), call.scope) if call.argument("r") is not None else 8.0
        alpha = number(project, call.argument("lora_alpha"), call.scope)
        place = keyword_place(call, "lora_alpha")
        if rank and alpha is not None and place is not None and alpha / rank >= EXCESSIVE:
            yield sighting(__name__, place, f"lora_alpha / r is {alpha / rank:g}")
    yield from _by_hand(project)


def _by_hand(project: Project) -> Iterator[Evidence]:
    """``self.scale = alpha / r`` of an adapter of the program."""
    for owner in modules(project):
        if not ADAPTER.search(owner.name):
            continue
        for bindings in owner.attributes.values():
            for binding in bindings:
                value = binding.value
                if not isinstance(value, ast.BinOp) or not isinstance(value.op, ast.Div):
                    continue
                alpha, rank = number(project, value.left, binding.scope), number(project, value.right, binding.scope)
                named = "alpha" in written(value.left).lower()
                if named and alpha is not None and rank and alpha / rank >= EXCESSIVE:
                    place = origin(project, value.left, binding.scope)
                    yield sighting(__name__, place, f"alpha / r is {alpha / rank:g}", proof=[])


def locate(project: Project, surface: Surface | None) -> Iterator[Evidence]:
    for call in project.calls("LoraConfig"):
        yield guess(__name__, keyword_place(call, "lora_alpha") or call, "the scale of the adapter is set here")
        return
