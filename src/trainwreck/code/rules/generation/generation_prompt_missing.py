"""The prompt does not open the turn of the assistant.

What: ``apply_chat_template`` without ``add_generation_prompt=True``, and its result goes to ``generate``.
Why it matters: the model first has to guess that it is its turn; it may go on with the user's text.
When it is fine: for training texts, with ``continue_final_message``, and for templates without such a marker (Mistral).
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
from trainwreck.code.values import literal
from trainwreck.core.evidence import Evidence
from trainwreck.core.fix import Fix

BAD = (
    """
from transformers import AutoModelForCausalLM, AutoTokenizer
tok = AutoTokenizer.from_pretrained("Qwen/Qwen2.5-0.5B-Instruct")
model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-0.5B-Instruct")
def ask(chat):
    batch = tok.apply_chat_template(chat, return_tensors="pt", return_dict=True).to("cuda")  # expect
    return model.generate(**batch, max_new_tokens=50)
""",
    """
def ask(tokenizer, model, question):
    chat = [{"role": "user", "content": question}]
    text = tokenizer.apply_chat_template(chat, tokenize=False)  # expect
    ids = tokenizer(text, return_tensors="pt", add_special_tokens=False)
    return model.generate(**ids, max_new_tokens=50)
""",
)
GOOD = """
from transformers import AutoTokenizer
mistral = AutoTokenizer.from_pretrained("mistralai/Mistral-7B-Instruct-v0.3")
def ask(tok, model, chat):
    batch = tok.apply_chat_template(chat, return_tensors="pt", return_dict=True, add_generation_prompt=True)
    more = tok.apply_chat_template(chat, return_tensors="pt", return_dict=True, continue_final_message=True)
    own = mistral.apply_chat_template(chat, return_tensors="pt", return_dict=True)
    model.generate(**more), model.generate(**own)
    return model.generate(**batch, max_new_tokens=50)
def train(tok, model, chat):
    ids = tok.apply_chat_template(chat, return_tensors="pt", return_dict=True)
    return model(**ids, labels=ids["input_ids"]).loss
def open_end(tok, model, question):
    chat = [{"role": "user", "content": question}, {"role": "assistant", "content": "Sure:"}]
    return model.generate(**tok.apply_chat_template(chat, return_tensors="pt", return_dict=True))
"""
WITHOUT_MARKER = ("mistralai/", "meta-llama/Llama-2")
"""Checkpoints whose templates put nothing before the answer."""


def find(project: Project) -> Iterator[Evidence]:
    told = set()
    for call in project.calls("generate"):
        values: list[ast.expr] = [
            *call.node.args[:1],
            *(k.value for k in call.node.keywords if k.arg in (None, "input_ids")),
        ]
        for value in values:
            for template in _templates(project, value, call.scope, 0):
                if template.node in told or not _lacks(project, template):
                    continue
                told.add(template.node)
                text = "the prompt does not open the turn of the assistant, and the model is asked to continue it"
                yield sighting(__name__, template, text, proof=[call], fix=Fix("add_generation_prompt=True"))


def _lacks(project: Project, template: Call) -> bool:
    if not complete(project, template) or option(project, template, "continue_final_message") is not None:
        return False
    if only(project, option(project, template, "add_generation_prompt")) not in (None, False):
        return False
    loads = {c.node: c for c in tokenizer_loads(project)}
    makers = made(project, template.receiver, template.scope) if template.receiver is not None else []
    names = [name_of(project, loads[m.node]) for m in makers if m.node in loads]
    if any(n is not None and n.startswith(WITHOUT_MARKER) for n in names):
        return False
    return not _ends_with_answer(project, template)


def _ends_with_answer(project: Project, template: Call) -> bool:
    chat = template.node.args[0] if template.node.args else template.argument("conversation")
    found = literal(project, chat, template.scope) if chat is not None else None
    last = found[0].elts[-1] if found is not None and isinstance(found[0], ast.List) and found[0].elts else None
    return isinstance(last, ast.Dict) and any(
        isinstance(v, ast.Constant) and v.value == "assistant" for v in last.values
    )


def _templates(project: Project, node: ast.expr, scope: Scope, depth: int) -> Iterator[Call]:
    """Template calls behind a value: through names, ``.to``, indexing and a tokenizer that reads their text."""
    if depth > 8:
        return
    match node:
        case ast.Attribute(attr="input_ids", value=inner) | ast.Subscript(value=inner):
            yield from _templates(project, inner, scope, depth + 1)
        case ast.List(elts=[inner]):
            yield from _templates(project, inner, scope, depth + 1)
        case ast.Name():
            bindings = [b for b in project.lookup(node.id, scope) if b.kind == "assign" and b.value is not None]
            if len(bindings) == 1 and not bindings[0].path and bindings[0].value is not None:
                yield from _templates(project, bindings[0].value, bindings[0].scope, depth + 1)
        case ast.Call(func=ast.Attribute(attr="to" | "cuda", value=inner)):
            yield from _templates(project, inner, scope, depth + 1)
        case ast.Call(func=ast.Attribute(attr="apply_chat_template")):
            yield Call(node, scope)
        case ast.Call(args=[first, *_]) if project.resolve(node.func, scope) is None:
            yield from _templates(project, first, scope, depth + 1)
