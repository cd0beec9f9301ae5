"""Sampling at temperature zero.

What: ``do_sample=True`` with ``temperature=0``; scores that are divided by zero before a token is drawn.
Why it matters: transformers refuses: the logits would be divided by zero.
When it is fine: in engines that read 0 as greedy (vLLM, hosted APIs).
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.arguments import contradicted
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.unread_flags import sampled_at_zero
from trainwreck.core.evidence import Evidence

BAD = (
    """
from transformers import AutoModelForCausalLM
def ask(model, ids):
    return model.generate(ids, do_sample=True, temperature=0.0)  # expect
""",
    """
from transformers import GenerationConfig
config = GenerationConfig(do_sample=True, temperature=0)  # expect
""",
)
GOOD = """
from transformers import GenerationConfig
def ask(model, ids, t):
    model.generate(ids, do_sample=False, temperature=None)
    model.generate(ids, do_sample=True, temperature=t)
    return model.generate(ids, do_sample=True, temperature=0.7)
"""


def find(project: Project) -> Iterator[Evidence]:
    yield from further(__name__, project, contradicted(project, __name__), sampled_at_zero)
