"""The key-value cache is asked for together with activation checkpointing.

What: ``use_cache=True`` is written for a model whose activations are checkpointed.
Why it matters: the library switches the cache off and warns at each step; where it does not, memory is wasted.
When it is fine: where ``use_cache`` is not written at all, or False.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import Call, last_name
from trainwreck.code.facts import only, option
from trainwreck.code.huggingface import model_loads
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.code.scopes import Scope
from trainwreck.code.seek import ARGUMENTS, keyword_place
from trainwreck.code.values import is_true
from trainwreck.core.evidence import Evidence

BAD = (
    """
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments
def main(data):
    model = AutoModelForCausalLM.from_pretrained("m", use_cache=True)  # expect
    args = TrainingArguments(output_dir="o", gradient_checkpointing=True)
    Trainer(model=model, args=args, train_dataset=data).train()
""",
    """
from transformers import AutoModelForCausalLM
model = AutoModelForCausalLM.from_pretrained("m")
model.gradient_checkpointing_enable()
model.config.use_cache = True  # expect
loss = model(ids, labels=ids).loss
loss.backward()
""",
)
GOOD = """
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments
def main(data):
    model = AutoModelForCausalLM.from_pretrained("m", use_cache=False)
    args = TrainingArguments(output_dir="o", gradient_checkpointing=True)
    Trainer(model=model, args=args, train_dataset=data).train()
    model.config.use_cache = True
    model.generate(ids)
"""


def find(project: Project) -> Iterator[Evidence]:
    on = _checkpointing(project)
    if on is None:
        return
    for call in model_loads(project):
        place = keyword_place(call, "use_cache")
        if place is not None and is_true(call.argument("use_cache")):
            yield sighting(__name__, place, "use_cache=True beside activation checkpointing", proof=[on])
    for scope in project.scopes:
        for node in project.within(scope, ast.Assign):
            if isinstance(node, ast.Assign) and is_true(node.value) and _sets_cache(node) and _before(on, node, scope):
                yield sighting(__name__, (node, scope), "use_cache=True beside activation checkpointing", proof=[on])


def _checkpointing(project: Project) -> Call | None:
    for call in project.calls("gradient_checkpointing_enable"):
        return call
    for call in project.calls(*ARGUMENTS):
        for name in ("gradient_checkpointing", "activation_checkpointing"):
            if only(project, option(project, call, name)) is True:
                return call
    return None


def _sets_cache(node: ast.Assign) -> bool:
    target = node.targets[0]
    return isinstance(target, ast.Attribute) and target.attr == "use_cache" and last_name(target.value) == "config"


def _before(on: Call, node: ast.Assign, scope: Scope) -> bool:
    """True where training may follow: a backward or train call stands below in the same function."""
    below = [
        n
        for n in ast.walk(scope.node)
        if isinstance(n, ast.Call) and n.lineno > node.lineno and last_name(n.func) in ("train", "backward")
    ]
    trains = [n for n in below if last_name(n.func) == "backward" or not getattr(n, "args", None)]
    return on.scope is scope and bool(trains)
