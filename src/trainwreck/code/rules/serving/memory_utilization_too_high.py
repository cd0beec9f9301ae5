"""An engine that takes all of the GPU.

What: ``gpu_memory_utilization`` above 0.98.
Why it matters: the context of the GPU, CUDA graphs and other processes need memory too: the start fails, or
the run does.
When it is fine: up to about 0.95 on a GPU of its own.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.arguments import contradicted
from trainwreck.code.project import Project
from trainwreck.core.evidence import Evidence

BAD = """
from vllm import LLM
llm = LLM(
    model="m",
    gpu_memory_utilization=1.0,  # expect
)
"""
GOOD = """
from vllm import LLM
llm = LLM(model="m", gpu_memory_utilization=0.95)
plain = LLM("m")
read = LLM("m", gpu_memory_utilization=args.share)
"""


def find(project: Project) -> Iterator[Evidence]:
    yield from contradicted(project, __name__)
