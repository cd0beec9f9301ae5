"""Options of the engine in the spelling of the command line.

What: ``Engine(**{"mem-fraction-static": 0.8})``: names with dashes as keywords.
Why it matters: the constructor knows only names with underscores: a TypeError.
When it is fine: on the command line of the server.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.code.values import literal
from trainwreck.core.evidence import Evidence
from trainwreck.core.fix import Fix

BAD = (
    """
import sglang as sgl
engine = sgl.Engine(**{"model-path": "m", "mem-fraction-static": 0.8})  # expect
""",
    """
from vllm import LLM
options = {"max-model-len": 4096}
llm = LLM("m", **options)  # expect
""",
)
GOOD = """
import sglang as sgl
from vllm import LLM
engine = sgl.Engine(**{"model_path": "m", "mem_fraction_static": 0.8})
llm = LLM("m", **options), LLM("m", hf_overrides={"a-b": 1})
run(["--mem-fraction-static", "0.8"])
"""


def find(project: Project) -> Iterator[Evidence]:
    for call in project.calls("Engine", "LLM", "ServerArgs", "EngineArgs", "SamplingParams"):
        if not project.from_package(call, "sglang", "vllm"):
            continue
        for item in call.node.keywords:
            found = literal(project, item.value, call.scope) if item.arg is None else None
            if found is None or not isinstance(found[0], ast.Dict):
                continue
            keys = [k.value for k in found[0].keys if isinstance(k, ast.Constant) and isinstance(k.value, str)]
            wrong = [k for k in keys if "-" in k]
            if wrong:
                right = wrong[0].lstrip("-").replace("-", "_")
                text = f"{wrong[0]!r} is the spelling of the command line; the argument is {right}"
                yield sighting(__name__, call, text, fix=Fix(f'"{right}"'))
