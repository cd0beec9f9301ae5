"""Options of an engine that is not used.

What: options of vLLM in GRPO without ``use_vllm=True``.
Why it matters: completions come from the slow path of transformers, and the options are ignored.
When it is fine: with ``use_vllm=True``.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.arguments import contradicted
from trainwreck.code.project import Project
from trainwreck.core.evidence import Evidence

BAD = """
from trl import GRPOConfig
args = GRPOConfig(
    output_dir="o",
    vllm_mode="colocate",  # expect
)
"""
GOOD = """
from trl import GRPOConfig
args = GRPOConfig(output_dir="o", use_vllm=True, vllm_mode="colocate")
read = GRPOConfig(output_dir="o", use_vllm=fast, vllm_mode="colocate")
plain = GRPOConfig(output_dir="o")
"""


def find(project: Project) -> Iterator[Evidence]:
    yield from contradicted(project, __name__)
