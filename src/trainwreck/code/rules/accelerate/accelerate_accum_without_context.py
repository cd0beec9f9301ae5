"""Accumulation is asked of the accelerator and never happens.

What: ``Accelerator(gradient_accumulation_steps=N)`` and no ``with accelerator.accumulate(model)``.
Why it matters: the optimizer steps in every micro-batch, on a loss that is divided by N: the effective batch is N times
too small and so are the gradients.
When it is fine: where steps are counted by hand with ``no_sync`` or ``sync_gradients``.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.facts import only, option, text_of
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.code.rules.accelerate.accelerate_plain_backward import accelerators
from trainwreck.code.seek import keyword_place
from trainwreck.core.evidence import Evidence
from trainwreck.core.fix import Fix

BAD = (
    """
from accelerate import Accelerator
def main(model, opt, loader):
    accelerator = Accelerator(gradient_accumulation_steps=4)  # expect
    model, opt, loader = accelerator.prepare(model, opt, loader)
    for batch in loader:
        accelerator.backward(model(**batch).loss)
        opt.step()
        opt.zero_grad()
""",
)
GOOD = (
    """
from accelerate import Accelerator
def main(model, opt, loader):
    accelerator = Accelerator(gradient_accumulation_steps=4)
    model, opt, loader = accelerator.prepare(model, opt, loader)
    for batch in loader:
        with accelerator.accumulate(model):
            accelerator.backward(model(**batch).loss)
            opt.step()
            opt.zero_grad()
""",
    """
from accelerate import Accelerator
def main(model, opt, loader, n):
    accelerator = Accelerator(gradient_accumulation_steps=1)
    for i, batch in enumerate(loader):
        accelerator.backward(model(**batch).loss / n)
        if i % n == 0:
            opt.step()
""",
)


def find(project: Project) -> Iterator[Evidence]:
    words = ("accumulate", "no_sync", "sync_gradients", "set_requires_gradient_sync", "step_was_skipped")
    if any(w in walked.top.module.text for walked in project.walked.values() for w in (".accumulate(", *words[1:])):
        return
    backward = list(project.calls("backward"))
    for call in accelerators(project):
        steps = only(project, option(project, call, "gradient_accumulation_steps"))
        if not isinstance(steps, int) or steps < 2 or not backward:
            continue
        if any("%" in text_of(project, c.scope) for c in backward):
            continue  # steps are counted by hand
        place = keyword_place(call, "gradient_accumulation_steps") or call
        text = f"the loss is divided by {steps} and the optimizer steps every time: nothing is accumulated"
        fix = Fix("with accelerator.accumulate(model): around the step")
        yield sighting(__name__, place, text, proof=backward[:1], fix=fix)
