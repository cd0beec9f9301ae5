"""An adapter is loaded for further training but stays frozen.

What: ``PeftModel.from_pretrained`` without ``is_trainable=True``, or a configuration with ``inference_mode=True``.
Why it matters: no parameter needs a gradient; ``backward()`` fails or nothing is learned.
When it is fine: for inference.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.project import Project
from trainwreck.code.rule import guess
from trainwreck.code.seek import keyword_place
from trainwreck.code.surface import Surface
from trainwreck.code.values import is_true
from trainwreck.core.evidence import Evidence

SURFACES = (r"does not require grad and does not have a grad_fn", r"optimizer got an empty parameter list")
ERROR = "RuntimeError: element 0 of tensors does not require grad and does not have a grad_fn"
BAD = """
from peft import PeftModel
def main(base, path, loader):
    model = PeftModel.from_pretrained(base, path)  # expect
    for ids in loader:
        model(ids).loss.backward()  # fails
"""
GOOD = """
from peft import PeftModel
def main(base, path, loader):
    model = PeftModel.from_pretrained(base, path, is_trainable=True)
    for ids in loader:
        model(ids).loss.backward()  # fails
"""


def trace(project: Project, surface: Surface) -> Iterator[Evidence]:
    yield from locate(project, surface)


def locate(project: Project, surface: Surface | None) -> Iterator[Evidence]:
    for call in project.calls("from_pretrained"):
        if "Peft" in project.called(call) and not is_true(call.argument("is_trainable")) and not call.open_ended:
            yield guess(__name__, call, "the adapter is loaded for inference: is_trainable is not set")
            return
    for call in project.calls("LoraConfig", "PromptTuningConfig", "IA3Config", "PrefixTuningConfig"):
        place = keyword_place(call, "inference_mode")
        if place is not None and is_true(call.argument("inference_mode")):
            yield guess(__name__, place, "the adapter is configured for inference")
            return
