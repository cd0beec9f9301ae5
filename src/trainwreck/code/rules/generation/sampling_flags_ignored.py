"""Settings of sampling, and no sampling.

What: ``temperature``, ``top_p`` or ``top_k`` beside ``do_sample=False``.
Why it matters: decoding is greedy and the settings are ignored.
When it is fine: with ``do_sample=True``, and with 1.0 or None, which mean nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.arguments import contradicted
from trainwreck.code.project import Project
from trainwreck.core.evidence import Evidence

BAD = (
    """
from transformers import AutoModelForCausalLM
def ask(model, ids):
    return model.generate(
        ids,
        do_sample=False,
        temperature=0.7,  # expect
    )
""",
    """
from transformers import GenerationConfig
config = GenerationConfig(do_sample=False, top_p=0.9)  # expect
""",
    """
from transformers import GenerationConfig
SAMPLE = False
options = {"do_sample": SAMPLE, "top_k": 20}
config = GenerationConfig(**options)  # expect
""",
)
GOOD = """
from transformers import GenerationConfig
def ask(model, ids, sample):
    model.generate(ids, do_sample=True, temperature=0.7)
    model.generate(ids, do_sample=False, temperature=1.0, top_p=1.0)
    model.generate(ids, do_sample=False, temperature=None, top_p=None)
    model.generate(ids, temperature=0.7)
    return model.generate(ids, do_sample=sample, temperature=0.7)
"""


def find(project: Project) -> Iterator[Evidence]:
    yield from contradicted(project, __name__)
