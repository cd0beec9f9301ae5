"""The heads of the model can't be shared out evenly.

What: ``tensor_parallel_size`` does not divide the number of attention heads of a known checkpoint.
Why it matters: the engine refuses to start.
When it is fine: with a size that divides the heads, or pipeline parallelism.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.facts import only, option
from trainwreck.code.huggingface import checkpoint_of
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.code.seek import keyword_place
from trainwreck.core.evidence import Evidence
from trainwreck.core.fix import Fix

BAD = (
    """
from vllm import LLM
llm = LLM(
    model="Qwen/Qwen2.5-0.5B",
    tensor_parallel_size=4,  # expect
)
""",
    """
from sglang import Engine
GPUS = 3
engine = Engine(model_path="mistralai/Mistral-7B-v0.1", tp_size=GPUS)  # expect
""",
)
GOOD = """
from vllm import LLM
one = LLM(model="Qwen/Qwen2.5-0.5B", tensor_parallel_size=2)
two = LLM(model="mistralai/Mistral-7B-v0.1", tensor_parallel_size=8)
three = LLM(model="me/own", tensor_parallel_size=7)
four = LLM(model="Qwen/Qwen2.5-0.5B", tensor_parallel_size=gpus)
five = LLM(model="Qwen/Qwen2.5-0.5B", pipeline_parallel_size=4)
"""
SIZES = ("tensor_parallel_size", "tp_size")


def find(project: Project) -> Iterator[Evidence]:
    for call in project.calls("LLM", "Engine", "AsyncEngineArgs", "EngineArgs", "ServerArgs"):
        if not project.from_package(call, "vllm", "sglang"):
            continue
        known = checkpoint_of(project, call)
        if known is None:
            path = only(project, option(project, call, "model_path"))
            from trainwreck.catalogue import hub

            known = hub.checkpoint(path) if isinstance(path, str) else None
        for name in SIZES:
            size = only(project, option(project, call, name))
            if known is None or known.heads is None or not isinstance(size, int) or size < 2 or known.heads % size == 0:
                continue
            place = keyword_place(call, name) or call
            fit = [n for n in range(2, min(known.heads, 16) + 1) if known.heads % n == 0]
            text = f"{known.id} has {known.heads} attention heads, which {size} ranks can't share evenly"
            yield sighting(__name__, place, text, fix=Fix(f"one of {', '.join(map(str, fit))}"))
