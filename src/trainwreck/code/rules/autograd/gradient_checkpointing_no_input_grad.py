"""Gradient checkpointing over inputs that need no gradient.

What: the first layers are frozen (as with adapters) and reentrant checkpointing is switched on without
``enable_input_require_grads()``.
Why it matters: the checkpointed part gives outputs without graph; ``backward()`` fails or adapters get no gradient.
When it is fine: with ``use_reentrant=False``.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.calls import written
from trainwreck.code.project import Project
from trainwreck.code.rule import guess
from trainwreck.code.surface import Surface
from trainwreck.code.values import is_true
from trainwreck.core.evidence import Evidence

SURFACES = (r"does not require grad and does not have a grad_fn", r"None of the inputs have requires_grad=True")
ERROR = "RuntimeError: element 0 of tensors does not require grad and does not have a grad_fn"
BAD = """
from peft import get_peft_model
def main(base, config, loader):
    base.gradient_checkpointing_enable()  # expect
    model = get_peft_model(base, config)
    for ids in loader:
        model(ids).loss.backward()  # fails
"""
GOOD = """
from peft import get_peft_model
def main(base, config, loader):
    base.gradient_checkpointing_enable()
    base.enable_input_require_grads()
    model = get_peft_model(base, config)
    for ids in loader:
        model(ids).loss.backward()  # fails
"""


def trace(project: Project, surface: Surface) -> Iterator[Evidence]:
    yield from locate(project, surface)


def locate(project: Project, surface: Surface | None) -> Iterator[Evidence]:
    if any(
        True for _ in project.calls("enable_input_require_grads", "make_inputs_require_grad", "register_forward_hook")
    ):
        return
    for call in project.calls("gradient_checkpointing_enable", "checkpoint", "checkpoint_sequential"):
        if call.name == "checkpoint" and "checkpoint" not in project.called(call).rsplit(".", 1)[0] + "checkpoint":
            continue
        text = written(call.node)
        if "use_reentrant=False" not in text and "'use_reentrant': False" not in text:
            yield guess(__name__, call, "gradient checkpointing is switched on here, its inputs need no gradient")
            return
    for calls in project.calls_by_name.values():
        for call in calls:
            if is_true(call.argument("gradient_checkpointing")):
                yield guess(__name__, call, "gradient checkpointing is switched on here")
                return
