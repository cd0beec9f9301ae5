"""The first token is put twice.

What: ``apply_chat_template(tokenize=False)`` writes the begin token as text, and the tokenizer (or vLLM) adds it again.
Why it matters: the model sees two of them, which it never did in training: answers get worse.
When it is fine: with ``add_special_tokens=False``, and for families without a begin token (Qwen).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import Call
from trainwreck.code.facts import complete, made, only, option
from trainwreck.code.huggingface import name_of, tokenizer_loads
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.code.scopes import Scope
from trainwreck.core.evidence import Evidence
from trainwreck.core.fix import Fix

BAD = (
    """
from transformers import AutoTokenizer
tok = AutoTokenizer.from_pretrained("meta-llama/Llama-3.1-8B-Instruct")
def prepare(chat):
    text = tok.apply_chat_template(chat, tokenize=False, add_generation_prompt=True)
    return tok(text, return_tensors="pt")  # expect
""",
    """
from transformers import AutoTokenizer
from vllm import LLM
NAME = "google/gemma-2-9b-it"
tok = AutoTokenizer.from_pretrained(NAME)
llm = LLM(model=NAME)
prompts = [tok.apply_chat_template(c, tokenize=False, add_generation_prompt=True) for c in chats]
out = llm.generate(prompts, params)  # expect
""",
)
GOOD = """
from transformers import AutoTokenizer
tok = AutoTokenizer.from_pretrained("meta-llama/Llama-3.1-8B-Instruct")
plain = AutoTokenizer.from_pretrained("Qwen/Qwen2.5-7B-Instruct")
def prepare(chat):
    text = tok.apply_chat_template(chat, tokenize=False)
    other = plain.apply_chat_template(chat, tokenize=False)
    tok(text, add_special_tokens=False), plain(other)
    tok("hello")
    return tok.apply_chat_template(chat, return_tensors="pt")
"""
BEGIN = ("meta-llama/", "mistralai/", "google/gemma")
"""Publishers whose templates write the begin token and whose tokenizers add it too."""


def find(project: Project) -> Iterator[Evidence]:
    templates = [
        c for c in project.calls("apply_chat_template") if only(project, option(project, c, "tokenize")) is False
    ]
    loads = {c.node: c for c in tokenizer_loads(project)}
    for template in templates:
        maker = _loaded(project, template.receiver, template.scope, loads)
        name = name_of(project, maker) if maker is not None else None
        if name is None or not name.startswith(BEGIN):
            continue
        for call, value in _read(project, template.scope.module.path, loads):
            if template.node in _templates(project, value, call.scope):
                text = f"the template of {name} writes the begin token already, and it is added again here"
                words = "add_special_tokens=False" if call.name != "generate" else "llm.chat, or prompt_token_ids"
                yield sighting(__name__, call, text, proof=[template], fix=Fix(words))


def _loaded(project: Project, node: ast.expr | None, scope: Scope, loads: dict[ast.Call, Call]) -> Call | None:
    found = [loads[c.node] for c in made(project, node, scope) if c.node in loads] if node is not None else []
    return found[0] if len(found) == 1 else None


def _read(project: Project, path: str, loads: dict[ast.Call, Call]) -> Iterator[tuple[Call, ast.expr]]:
    """Calls that tokenise a text with special tokens, and the text."""
    for node, scope in project.walked[path].calls:
        call = Call(node, scope)
        if not node.args or not complete(project, call) or not isinstance(node.func, ast.Name | ast.Attribute):
            continue
        holder: ast.expr | None = node.func
        if isinstance(node.func, ast.Attribute) and node.func.attr in ("encode", "generate"):
            holder = node.func.value
        if holder is None or option(project, call, "add_special_tokens") is not None:
            continue
        makers = made(project, holder, scope)
        if call.name == "generate":
            if any(m.name == "LLM" and project.from_package(m, "vllm") for m in makers):
                yield call, node.args[0]
        elif any(m.node in loads for m in makers):
            yield call, node.args[0]


def _templates(project: Project, node: ast.expr, scope: Scope) -> set[ast.Call]:
    """The template calls whose text ``node`` is, or is a list of."""
    if isinstance(node, ast.List) and node.elts:
        return {t for item in node.elts for t in _templates(project, item, scope)}
    if isinstance(node, ast.ListComp):
        return _templates(project, node.elt, scope)
    if isinstance(node, ast.Call):
        return {node} if isinstance(node.func, ast.Attribute) and node.func.attr == "apply_chat_template" else set()
    if isinstance(node, ast.Name):
        bindings = [b for b in project.lookup(node.id, scope) if b.kind == "assign" and b.value is not None]
        if len(bindings) == 1 and not bindings[0].path and bindings[0].value is not None:
            return _templates(project, bindings[0].value, bindings[0].scope)
    return set()
