"""Two limits for what is generated.

What: ``max_length`` and ``max_new_tokens`` in one call.
Why it matters: ``max_new_tokens`` wins; ``max_length`` is ignored with a warning.
When it is fine: with one of them.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.arguments import contradicted
from trainwreck.code.project import Project
from trainwreck.core.evidence import Evidence

BAD = """
from transformers import AutoModelForCausalLM
def ask(model, ids):
    return model.generate(
        ids,
        max_length=512,  # expect
        max_new_tokens=64,
    )
"""
GOOD = """
from transformers import AutoModelForCausalLM
def ask(model, ids):
    model.generate(ids, max_length=512)
    model.generate(ids, max_length=None, max_new_tokens=64)
    return model.generate(ids, max_new_tokens=64)
"""


def find(project: Project) -> Iterator[Evidence]:
    yield from contradicted(project, __name__)
