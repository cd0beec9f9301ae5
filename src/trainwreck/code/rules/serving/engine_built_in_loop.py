"""The engine or the model is loaded anew for every item.

What: ``LLM(...)`` of vLLM, ``from_pretrained`` of a model or ``pipeline(...)`` inside a loop over data, with arguments
that do not depend on the loop.
Why it matters: each pass loads all weights again, and memory of the earlier ones may still be held.
When it is fine: in a loop over models or seeds.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import Call
from trainwreck.code.facts import names
from trainwreck.code.huggingface import model_loads
from trainwreck.code.order import loops
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.core.evidence import Evidence
from trainwreck.core.fix import Fix

WORDS = ("vllm", "transformers", "from_pretrained")
BAD = (
    """
from vllm import LLM
for prompt in prompts:
    llm = LLM(model="m")  # expect
    print(llm.generate(prompt))
""",
    """
from transformers import pipeline
def main(rows):
    for row in rows:
        classify = pipeline("text-classification", model="m")  # expect
        print(classify(row["text"]))
""",
)
GOOD = """
from transformers import AutoModel, pipeline
from vllm import LLM
llm = LLM(model="m")
for prompt in prompts:
    print(llm.generate(prompt))
for name in names:
    one = LLM(model=name)
for seed in (1, 2, 3):
    model = AutoModel.from_pretrained("m")
for fold, (train, test) in enumerate(folds):
    model = AutoModel.from_pretrained("m")
for lr in rates:
    model = AutoModel.from_pretrained("m")
    fit(model, lr)
"""
ITEMS = frozenset(
    ["prompt", "prompts", "row", "rows", "text", "texts", "question", "questions", "example", "examples", "sample",
     "samples", "batch", "sentence", "sentences", "doc", "document", "image", "line", "item", "query"]
)  # fmt: skip
"""Names of one item of data. In loops over anything else (folds, seeds, rates) a new model is meant."""


def find(project: Project) -> Iterator[Evidence]:
    built = [c for c in project.calls("LLM") if project.from_package(c, "vllm")]
    built += [c for c in project.calls("pipeline") if project.from_package(c, "transformers")]
    for call in [*built, *model_loads(project)]:
        loop = next((x for x in loops(project, call.node, call.scope) if isinstance(x, ast.For)), None)
        if loop is None or not names(loop.target) & ITEMS or _depends(call, loop):
            continue
        fix = Fix("build it once before the loop")
        yield sighting(__name__, call, "all weights are loaded again for every item of the loop", fix=fix)


def _depends(call: Call, loop: ast.For) -> bool:
    """True where the loop gives an argument, or leaves after the first item, or loads only where none is there."""
    inside = {
        n.id for part in loop.body for n in ast.walk(part) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
    }
    used = {n for a in (*call.node.args, *(k.value for k in call.node.keywords)) for n in names(a)}
    guarded = any(isinstance(part, ast.If) and any(n is call.node for n in ast.walk(part)) for part in ast.walk(loop))
    return (
        bool(used & (inside | names(loop.target)))
        or guarded
        or any(isinstance(p, ast.Break | ast.Return) for p in loop.body)
    )
