"""A tokenizer without a padding token is asked to pad.

What: the tokenizer is made (or loaded, as for GPT-2 and LLaMA) without ``pad_token`` and none is set afterwards.
Why it matters: padding a batch raises.
When it is fine: for batches of one, or with packing.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.calls import Call, written
from trainwreck.code.project import Project
from trainwreck.code.rule import guess
from trainwreck.code.surface import Surface
from trainwreck.core.evidence import Evidence

SURFACES = (
    r"does not have a padding token",
    r"pad_token|padding token",
    r"Cannot handle batch sizes > 1 if no padding token",
)
ERROR = "ValueError: Asking to pad but the tokenizer does not have a padding token."
BAD = """
from transformers import AutoTokenizer
def main(texts):
    tokenizer = AutoTokenizer.from_pretrained("gpt2")  # expect
    return tokenizer(texts, padding=True)  # fails
"""
GOOD = """
from transformers import AutoTokenizer
def main(texts):
    tokenizer = AutoTokenizer.from_pretrained("gpt2")
    tokenizer.pad_token = tokenizer.eos_token
    return tokenizer(texts, padding=True)  # fails
"""


def trace(project: Project, surface: Surface) -> Iterator[Evidence]:
    if any(name.endswith(".pad_token") for s in project.scopes for name in s.bindings):
        return
    for call in _makers(project):
        if call.argument("pad_token") is None:
            yield guess(__name__, call, "the tokenizer is made here, without a padding token")
            return


def _makers(project: Project) -> Iterator[Call]:
    for name, calls in project.calls_by_name.items():
        for call in calls:
            if (name.endswith(("Tokenizer", "TokenizerFast")) and name != "Tokenizer") or (
                name == "from_pretrained"
                and ("okenizer" in written(call.node.func) or "rocessor" in written(call.node.func))
            ):
                yield call
