"""``lora_alpha / r`` is so large that the adapter drowns the base model.

What: alpha is many times the rank.
Why it matters: the update is multiplied by alpha/r; training is unstable from the first steps.
When it is fine: ratios of 0.5 to 4, or with ``use_rslora``.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.project import Project
from trainwreck.code.rule import guess, sighting
from trainwreck.code.seek import keyword_place
from trainwreck.code.surface import Surface
from trainwreck.code.values import number
from trainwreck.core.evidence import Evidence

BAD = """
from peft import LoraConfig
config = LoraConfig(
    r=4,
    lora_alpha=2048,  # expect
)
"""
GOOD = """
from peft import LoraConfig
config = LoraConfig(r=8, lora_alpha=32)
other = LoraConfig(r=8, lora_alpha=alpha())
"""
EXCESSIVE = 64.0
"""alpha/r; published recipes use 0.25 to 4, experiments up to 32."""


def find(project: Project) -> Iterator[Evidence]:
    for call in project.calls("LoraConfig"):
        rank = number(project, call.argument("r"), call.scope) if call.argument("r") is not None else 8.0
        alpha = number(project, call.argument("lora_alpha"), call.scope)
        place = keyword_place(call, "lora_alpha")
        if rank and alpha is not None and place is not None and alpha / rank >= EXCESSIVE:
            yield sighting(__name__, place, f"lora_alpha / r is {alpha / rank:g}")


def locate(project: Project, surface: Surface | None) -> Iterator[Evidence]:
    for call in project.calls("LoraConfig"):
        yield guess(__name__, keyword_place(call, "lora_alpha") or call, "the scale of the adapter is set here")
        return
