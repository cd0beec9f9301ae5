"""The engine starts its workers while the script is still being imported.

What: ``LLM(..., tensor_parallel_size=2)`` of vLLM at the top of a script without ``if __name__ == "__main__"``.
Why it matters: workers that are spawned run the script again and fail with "current process has finished its
bootstrapping phase".
When it is fine: in a function that the guard calls, in notebooks, on one GPU with workers that are forked.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.facts import only, option
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.core.evidence import Evidence
from trainwreck.core.fix import Fix

BAD = (
    """
from vllm import LLM
llm = LLM("m", tensor_parallel_size=2)  # expect
print(llm.generate(prompts))
""",
)
GOOD = (
    """
from vllm import LLM
if __name__ == "__main__":
    llm = LLM("m", tensor_parallel_size=2)
""",
    """
from vllm import LLM
def main():
    return LLM("m", tensor_parallel_size=2)
llm = LLM("m")
""",
)


def find(project: Project) -> Iterator[Evidence]:
    for call in project.calls("LLM"):
        module = call.scope.module
        if call.scope.kind != "module" or module.cells or not project.from_package(call, "vllm"):
            continue
        ranks = only(project, option(project, call, "tensor_parallel_size"))
        if isinstance(ranks, int) and ranks > 1 and "__main__" not in module.text:
            text = "workers that are spawned import this script and would start the engine again"
            fix = Fix('put it under if __name__ == "__main__":')
            yield sighting(__name__, call, text, fix=fix, severity="warning")
