"""The engine is asked for one prompt at a time.

What: ``llm.generate`` or ``llm.chat`` of vLLM inside a loop over prompts, with one prompt in each call.
Why it matters: batching is what the engine is fast by: one by one it is many times slower.
When it is fine: where one answer decides the next prompt, and in an interactive loop.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import Call
from trainwreck.code.facts import made, names
from trainwreck.code.order import loops
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.core.evidence import Evidence
from trainwreck.core.fix import Fix

BAD = (
    """
from vllm import LLM, SamplingParams
llm = LLM("m")
params = SamplingParams(max_tokens=100)
answers = []
for row in rows:
    out = llm.generate([row["prompt"]], params)  # expect
    answers.append(out[0].outputs[0].text)
""",
    """
from vllm import LLM, SamplingParams
def main(questions):
    llm = LLM("m")
    for i, q in enumerate(questions):
        print(i, llm.chat([{"role": "user", "content": q}], SamplingParams(max_tokens=100)))  # expect
""",
    """
from vllm import LLM, SamplingParams
llm = LLM("m")
texts = [llm.generate(p, SamplingParams(max_tokens=9))[0].outputs[0].text for p in prompts]  # expect
""",
)
GOOD = """
from vllm import LLM, SamplingParams
llm = LLM("m")
params = SamplingParams(max_tokens=100)
out = llm.generate([r["prompt"] for r in rows], params)
for start in range(0, len(prompts), 512):
    out = llm.generate(prompts[start : start + 512], params)
for batch in batches:
    out = llm.generate(batch, params)
history = []
while True:
    history.append({"role": "user", "content": input()})
    reply = llm.chat(history, params)[0].outputs[0].text
    history.append({"role": "assistant", "content": reply})
for turn in turns:
    history.append(turn)
    reply = llm.chat(history, params)
    history.append(reply)
"""


def find(project: Project) -> Iterator[Evidence]:
    for call in project.calls("generate", "chat"):
        makers = made(project, call.receiver, call.scope) if call.receiver is not None else []
        if not any(m.name == "LLM" and project.from_package(m, "vllm") for m in makers) or not call.node.args:
            continue
        variables = _variables(project, call)
        if variables and _one(call, call.node.args[0], variables):
            fix = Fix("collect the prompts in a list and call it once")
            yield sighting(__name__, call, "one prompt a call: the engine can't batch them", fix=fix)


def _variables(project: Project, call: Call) -> set[str]:
    """Names of the elements of the loops around ``call`` that run over data (not over ranges)."""
    found: set[str] = set()
    for loop in loops(project, call.node, call.scope):
        if isinstance(loop, ast.For) and "range" not in ast.dump(loop.iter):
            found |= _element(loop.target, loop.iter)
    for above in project.ancestors(call.node, call.scope):
        if isinstance(above, ast.ListComp):
            for part in above.generators:
                found |= _element(part.target, part.iter)
        if isinstance(above, ast.stmt):
            break
    return found


def _element(target: ast.expr, iterated: ast.expr) -> set[str]:
    counted = isinstance(iterated, ast.Call) and getattr(iterated.func, "id", "") == "enumerate"
    if counted and isinstance(target, ast.Tuple) and len(target.elts) == 2:
        return names(target.elts[1])
    return names(target)


def _one(call: Call, value: ast.expr, variables: set[str]) -> bool:
    """True where what is handed over is surely one prompt or one chat made of the loop's element."""
    if isinstance(value, ast.List) and len(value.elts) == 1:
        return bool(names(value) & variables)
    if isinstance(value, ast.JoinedStr):
        return bool(names(value) & variables)
    if isinstance(value, ast.Subscript) and isinstance(value.slice, ast.Constant):
        return (
            isinstance(value.value, ast.Name)
            and value.value.id in variables
            and call.name == "generate"
            and (str(value.slice.value) in ("prompt", "text", "question", "input", "instruction"))
        )
    if isinstance(value, ast.Name) and value.id in variables:
        return value.id in ("p", "prompt", "text", "q", "question", "query", "sentence") and call.name == "generate"
    return False
