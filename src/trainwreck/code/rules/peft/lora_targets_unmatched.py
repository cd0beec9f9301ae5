"""``target_modules`` of a LoRA configuration names layers that the model does not have.

What: names of another architecture ("query_key_value" for a Llama).
Why it matters: PEFT refuses, or adapts fewer layers than meant.
When it is fine: with ``"all-linear"`` or names from ``model.named_modules()``.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.project import Project
from trainwreck.code.rule import guess
from trainwreck.code.seek import keyword_place
from trainwreck.code.surface import Surface
from trainwreck.core.evidence import Evidence

SURFACES = (
    r"[Tt]arget modules .*not found",
    r"NoMatchingPeftModule|No modules were targeted|Please specify `target_modules`",
)
ERROR = "ValueError: Target modules {'query'} not found in the base model."
BAD = """
from peft import LoraConfig, get_peft_model
def main(base):
    config = LoraConfig(
        r=8,
        target_modules=["query"],  # expect
    )
    return get_peft_model(base, config)  # fails
"""
GOOD = """
from peft import get_peft_model
def main(base, config):
    return get_peft_model(base, config)  # fails
"""


def trace(project: Project, surface: Surface) -> Iterator[Evidence]:
    yield from locate(project, surface)


def locate(project: Project, surface: Surface | None) -> Iterator[Evidence]:
    for call in project.calls("LoraConfig", "IA3Config", "AdaLoraConfig", "LoHaConfig", "LoKrConfig", "OFTConfig"):
        place = keyword_place(call, "target_modules")
        yield guess(__name__, place or call, "the layers to adapt are named here")
        return
