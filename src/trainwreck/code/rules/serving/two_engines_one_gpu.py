"""Two engines share one GPU, and each takes most of it.

What: two ``LLM(...)`` of vLLM in one function, whose shares of the memory (0.9 by default) are more than all of it.
Why it matters: the second one finds no room for its cache and fails to start.
When it is fine: with smaller shares, on different GPUs, or where the first is deleted before.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import Call, written
from trainwreck.code.facts import only, option
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.core.evidence import Evidence
from trainwreck.core.fix import Fix

BAD = (
    """
from vllm import LLM
def main():
    writer = LLM(model="a")
    judge = LLM(model="b")  # expect
    return judge.generate(writer.generate(prompts))
""",
    """
from vllm import LLM
one = LLM("a", gpu_memory_utilization=0.6)
two = LLM("b", gpu_memory_utilization=0.6)  # expect
""",
)
GOOD = """
from vllm import LLM
def shared():
    one = LLM("a", gpu_memory_utilization=0.45)
    two = LLM("b", gpu_memory_utilization=0.45)
    return one, two
def after():
    one = LLM("a")
    texts = one.generate(prompts)
    del one
    two = LLM("b")
    return two.generate(texts)
def either(flag):
    if flag:
        llm = LLM("a")
    else:
        llm = LLM("b")
    return llm
def read(share):
    return LLM("a", gpu_memory_utilization=share), LLM("b", gpu_memory_utilization=share)
"""
DEFAULT = 0.9
"""Share of the memory in vLLM 0.4 to 0.10 (0.92 in 0.33)."""


def find(project: Project) -> Iterator[Evidence]:
    first: dict[object, Call] = {}
    for call in project.calls("LLM"):
        if not project.from_package(call, "vllm"):
            continue
        other = first.setdefault(call.scope, call)
        if other is call or _apart(project, other, call) or _freed(other, call):
            continue
        shares = [_share(project, c) for c in (other, call)]
        if None not in shares and sum(s for s in shares if s is not None) > 1.0:
            text = "two engines in one process ask for more than the whole memory of the GPU"
            yield sighting(__name__, call, text, proof=[other], fix=Fix("gpu_memory_utilization=0.45 for each"))


def _share(project: Project, call: Call) -> float | None:
    given = option(project, call, "gpu_memory_utilization")
    if any(k.arg is None for k in call.node.keywords):
        return None
    value = only(project, given) if given is not None else DEFAULT
    return float(value) if isinstance(value, int | float) else None


def _apart(project: Project, one: Call, other: Call) -> bool:
    """True where they stand in different branches."""
    inner = [a for a in project.ancestors(other.node, other.scope) if isinstance(a, ast.If | ast.Try | ast.IfExp)]
    outer = [a for a in project.ancestors(one.node, one.scope) if isinstance(a, ast.If | ast.Try | ast.IfExp)]
    return bool(inner or outer)


def _freed(one: Call, other: Call) -> bool:
    lines = one.scope.module.lines[one.line : other.line]
    words = ("del ", "destroy", "sleep(", "CUDA_VISIBLE_DEVICES", "shutdown", "gc.collect", "= None")
    return any(w in line for line in lines for w in words) or "device" in written(other.node)
