"""More context is asked for than the model has positions.

What: ``max_model_len`` (``context_length`` of SGLang) above the length in the configuration of a known checkpoint.
Why it matters: the engine refuses, or, told to go ahead, gives nonsense beyond the trained length.
When it is fine: with a rope scaling that is given too.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.catalogue import hub
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
    model="mistralai/Mistral-7B-v0.1",
    max_model_len=131072,  # expect
)
""",
    """
from vllm import LLM
options = {"max_model_len": 65536, "dtype": "bfloat16"}
llm = LLM("Qwen/Qwen2.5-0.5B", **options)  # expect
""",
)
GOOD = """
from vllm import LLM
one = LLM(model="mistralai/Mistral-7B-v0.1", max_model_len=8192)
two = LLM(model="Qwen/Qwen2.5-0.5B", max_model_len=65536, rope_scaling={"rope_type": "yarn", "factor": 4.0})
three = LLM(model="me/own", max_model_len=1000000)
four = LLM(model="Qwen/Qwen2.5-0.5B", max_model_len=65536, hf_overrides={"rope_scaling": {}})
"""


def find(project: Project) -> Iterator[Evidence]:
    for call in project.calls("LLM", "Engine", "AsyncEngineArgs", "EngineArgs", "ServerArgs"):
        if not project.from_package(call, "vllm", "sglang"):
            continue
        path = only(project, option(project, call, "model_path"))
        known = hub.checkpoint(path) if isinstance(path, str) else checkpoint_of(project, call)
        scaled = any(option(project, call, n) for n in ("rope_scaling", "hf_overrides", "json_model_override_args"))
        for name in ("max_model_len", "context_length"):
            length = only(project, option(project, call, name))
            if known is None or known.positions is None or not isinstance(length, int) or scaled:
                continue
            if length > known.positions:
                place = keyword_place(call, name) or call
                text = f"{name}={length}, and {known.id} is made for {known.positions} positions"
                yield sighting(__name__, place, text, fix=Fix(f"{name}={known.positions}, or a rope scaling"))
