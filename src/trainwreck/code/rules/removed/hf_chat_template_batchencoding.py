"""The result of a chat template used as if it were a tensor.

What: `.shape`, `.to(...)` then indexing with a slice, or `generate(ids)` of what
`apply_chat_template(tokenize=True, return_tensors=...)` gives, without `return_dict`.
Why it matters: since transformers 5 it is a mapping by default: it has no shape, and `generate` needs it
unpacked.
When it is fine: with transformers below 5, with `return_dict` or `tokenize=False` given.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import Call
from trainwreck.code.order import constructors
from trainwreck.code.outdated import callee, grade, guarded
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.code.scopes import Scope
from trainwreck.code.surface import scope_at
from trainwreck.code.targets import aim
from trainwreck.core.evidence import Evidence
from trainwreck.core.fix import Fix

BAD = """
from transformers import AutoTokenizer
tok = AutoTokenizer.from_pretrained("m")
def ask(model, chat):
    ids = tok.apply_chat_template(chat, return_tensors="pt")
    start = ids.shape[-1]  # expect
    return model.generate(ids)  # expect
"""
GOOD = """
from transformers import AutoTokenizer
tok = AutoTokenizer.from_pretrained("m")
def ask(model, chat):
    text = tok.apply_chat_template(chat, tokenize=False)
    batch = tok.apply_chat_template(chat, return_tensors="pt", return_dict=True)
    both = tok.apply_chat_template(chat, return_tensors="pt")
    ids = tok.apply_chat_template(chat, return_tensors="pt", return_dict=False)
    model.generate(**both)
    return model.generate(**batch), ids.shape, text, both["input_ids"].shape
"""


FIX = Fix('take ["input_ids"] of it, or pass return_dict=False')


def find(project: Project) -> Iterator[Evidence]:
    for path, walked in project.walked.items():
        if "apply_chat_template" not in walked.top.module.text:
            continue
        where = aim(project, "transformers", path)
        if where is None or where.newest[0] < 0 or where.table.versions[where.newest[0]] < (5,):
            continue
        pinned = where.pin is not None and where.table.versions[max(where.allowed[0][0], 0)] >= (5,)
        for node in walked.parents:
            used = _used(node)
            if used is None:
                continue
            scope = scope_at(walked.top, used.lineno)
            made = _template(project, used, scope)
            if made is not None and not guarded(project, node, scope):
                text = "apply_chat_template gives a mapping since transformers 5, not a tensor"
                severity = grade(pinned)
                yield sighting(__name__, (node, scope), text, proof=[made], fix=FIX, severity=severity)


def _used(node: ast.AST) -> ast.Name | None:
    """The name of which a shape is asked, or which is handed to generate as it is."""
    match node:
        case ast.Attribute(value=ast.Name() as name, attr="shape"):
            return name
        case ast.Call(func=ast.Attribute(attr="generate"), args=[ast.Name() as name, *_]):
            return name
    return None


def _template(project: Project, name: ast.Name, scope: Scope) -> Call | None:
    bindings = project.lookup(name.id, scope)
    value = bindings[0].value if len(bindings) == 1 and bindings[0].kind == "assign" and not bindings[0].path else None
    while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr in ("to", "cuda"):
        value = value.func.value
    if not isinstance(value, ast.Call) or not isinstance(value.func, ast.Attribute):
        return None
    call = Call(value, bindings[0].scope)
    asked = [call.argument(word) for word in ("return_dict", "tokenize")]
    if value.func.attr != "apply_chat_template" or call.open_ended or any(a is not None for a in asked):
        return None
    if call.argument("return_tensors") is None:
        return None
    made = [callee(project, c) for c in constructors(project, value.func.value, call.scope)]
    return call if any(m is not None and m[0] == "transformers" and "Tokenizer" in m[1] for m in made) else None
