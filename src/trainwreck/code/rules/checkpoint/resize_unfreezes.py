"""Embeddings are frozen, and then resized.

What: ``requires_grad`` is turned off for a model (or its embeddings), and afterwards ``resize_token_embeddings`` is
called on it.
Why it matters: resizing builds new embeddings, which are trainable again: the largest matrix of the model is trained
although it was frozen.
When it is fine: where freezing comes after resizing, or the embeddings are meant to be trained.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import last_name, written
from trainwreck.code.facts import later
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.code.scopes import Scope
from trainwreck.core.evidence import Evidence

BAD = (
    """
from transformers import AutoModelForCausalLM
model = AutoModelForCausalLM.from_pretrained("gpt2")
for p in model.parameters():
    p.requires_grad = False
model.resize_token_embeddings(50300)  # expect
""",
    """
def prepare(net, tokenizer):
    net.requires_grad_(False)
    net.head.requires_grad_(True)
    net.resize_token_embeddings(len(tokenizer))  # expect
    return net
""",
    """
class Setup:
    def build(self):
        for name, param in self.model.named_parameters():
            param.requires_grad_(False)
        self.model.resize_token_embeddings(len(self.tokenizer))  # expect
""",
)
GOOD = """
def a(net, tokenizer):
    net.resize_token_embeddings(len(tokenizer))
    net.requires_grad_(False)
def b(net, other, tokenizer):
    other.requires_grad_(False)
    net.resize_token_embeddings(len(tokenizer))
def c(net, tokenizer):
    net.requires_grad_(False)
    net.resize_token_embeddings(len(tokenizer))
    net.get_input_embeddings().requires_grad_(False)
"""


def find(project: Project) -> Iterator[Evidence]:
    for call in project.calls("resize_token_embeddings"):
        if call.receiver is None:
            continue
        name = written(call.receiver)
        places = [n for n in _freezes(project, call.scope, name)]
        before = [n for n in places if not later(n, call.node)]
        if before and len(before) == len(places):
            path = call.scope.module.path
            line = int(getattr(before[-1], "lineno", 1))
            text = "new embeddings are built here, which are trainable, after the old ones were frozen"
            yield sighting(__name__, call, text, proof=[(path, line, written(before[-1]).split("\n")[0][:80])])


def _freezes(project: Project, scope: Scope, name: str) -> Iterator[ast.AST]:
    """Places that turn gradients off for the model or its input embeddings."""
    for node in project.within(scope, ast.For, ast.Call):
        if isinstance(node, ast.For):
            if written(node.iter) in (f"{name}.parameters()", f"{name}.named_parameters()") and _turns_off(node):
                yield node
        elif isinstance(node, ast.Call) and last_name(node.func) == "requires_grad_" and node.args:
            owner = written(node.func.value) if isinstance(node.func, ast.Attribute) else ""
            whole = owner == name or (owner.startswith(name) and "embed" in owner)
            if whole and written(node.args[0]) == "False":
                yield node


def _turns_off(loop: ast.For) -> bool:
    for node in ast.walk(loop):
        if isinstance(node, ast.If):
            return False
        if isinstance(node, ast.Assign) and written(node.targets[0]).endswith(".requires_grad"):
            return written(node.value) == "False"
        if isinstance(node, ast.Call) and last_name(node.func) == "requires_grad_" and node.args:
            return written(node.args[0]) == "False"
    return False
