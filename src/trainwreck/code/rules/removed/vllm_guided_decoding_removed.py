"""Guided decoding has another name.

What: `guided_decoding` of SamplingParams, `GuidedDecodingParams`, `guided_decoding_backend`.
Why it matters: the constructor raises a TypeError, the import an ImportError.
When it is fine: where the project pins a release that still has it; in branches that test the release; in
classes of one's own.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.outdated import told
from trainwreck.code.project import Project
from trainwreck.core.evidence import Evidence

BAD = """
from vllm import SamplingParams
def params(guide):
    return SamplingParams(max_tokens=64, guided_decoding=guide)  # expect
"""
GOOD = """
from vllm import SamplingParams
from vllm.sampling_params import StructuredOutputsParams
def params(schema):
    return SamplingParams(max_tokens=64, structured_outputs=StructuredOutputsParams(json=schema))
"""


def find(project: Project) -> Iterator[Evidence]:
    yield from told(project, __name__)
