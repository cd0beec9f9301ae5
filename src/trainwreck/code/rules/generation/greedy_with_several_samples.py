"""Several samples of greedy decoding.

What: ``num_return_sequences`` above one (or ``n`` in vLLM) without sampling or beams.
Why it matters: refused: all answers would be the same.
When it is fine: with sampling, or with at least as many beams.
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
    return model.generate(ids, do_sample=False, num_return_sequences=4)  # expect
""",
    """
from vllm import SamplingParams
params = SamplingParams(temperature=0, n=8)  # expect
""",
    """
from transformers import AutoModelForCausalLM
def ask(model, ids):
    return model.generate(ids, num_beams=2, num_return_sequences=4)  # expect
""",
)
GOOD = """
from transformers import AutoModelForCausalLM
from vllm import SamplingParams
params = SamplingParams(temperature=0.8, n=8), SamplingParams(temperature=0), SamplingParams(n=4)
def ask(model, ids):
    model.generate(ids, do_sample=True, num_return_sequences=4)
    model.generate(ids, num_return_sequences=4)
    return model.generate(ids, num_beams=4, num_return_sequences=4)
"""


def find(project: Project) -> Iterator[Evidence]:
    yield from contradicted(project, __name__)
