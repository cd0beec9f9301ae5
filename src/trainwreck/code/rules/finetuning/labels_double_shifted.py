"""Labels are shifted by hand for a model that shifts them itself.

What: ``labels=ids[:, 1:]`` beside ``input_ids=ids[:, :-1]`` for a causal model of transformers.
Why it matters: the model compares position t with label t+1 already: it learns to predict the token after the next.
When it is fine: with a loss of one's own on the logits.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.calls import Call, written
from trainwreck.code.huggingface import holder, loaded_by, model_loads
from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.code.spine import ends
from trainwreck.core.evidence import Evidence
from trainwreck.core.fix import Fix

WORDS = ("from_pretrained", "from_config", "transformers")
BAD = (
    """
from transformers import AutoModelForCausalLM
model = AutoModelForCausalLM.from_pretrained("m")
for ids in loader:
    loss = model(input_ids=ids[:, :-1], labels=ids[:, 1:]).loss  # expect
    loss.backward()
""",
    """
from transformers import GPT2LMHeadModel
def main(loader):
    model = GPT2LMHeadModel.from_pretrained("gpt2").cuda()
    for batch in loader:
        inputs, targets = batch[:, :-1], batch[:, 1:].contiguous()
        out = model(inputs, labels=targets)  # expect
        out.loss.backward()
""",
)
GOOD = """
import torch.nn.functional as F
from transformers import AutoModelForCausalLM
model = AutoModelForCausalLM.from_pretrained("m")
for ids in loader:
    loss = model(input_ids=ids, labels=ids).loss
    logits = model(input_ids=ids[:, :-1]).logits
    loss = F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
    other = model(input_ids=ids[:, 1:], labels=ids[:, 1:]).loss
    own = network(ids[:, :-1], labels=ids[:, 1:])
"""
SHIFTED = pattern(r"\[(\.\.\.|:), 1:\]|\[1:\]")
CUT = pattern(r"\[(\.\.\.|:), :-1\]|\[:-1\]")


def find(project: Project) -> Iterator[Evidence]:
    if not model_loads(project):
        return
    for walked in project.walked.values():
        for node, scope in walked.calls:
            call = Call(node, scope)
            labels, ids = call.argument("labels"), call.argument("input_ids", 0)
            if labels is None or ids is None or not isinstance(node.func, ast.Name | ast.Attribute):
                continue
            load = loaded_by(project, node.func, scope, model_loads(project))
            if load is None or not holder(load).endswith(("ForCausalLM", "LMHeadModel")):
                continue
            if _fits(project, call, labels, SHIFTED) and _fits(project, call, ids, CUT):
                text = "the labels are shifted here, and the model shifts them once more"
                yield sighting(__name__, call, text, proof=[load], fix=Fix("input_ids=ids, labels=ids"))


def _fits(project: Project, call: Call, node: ast.expr, pattern: re.Pattern[str]) -> bool:
    found = ends(project, node, call.scope, reshapes=False)
    texts = [written(node), *(written(n) for n, _ in found)]
    return any(pattern.search(t) for t in texts)
