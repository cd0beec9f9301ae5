"""The answer still begins with the prompt.

What: what ``generate`` of a decoder gives is decoded as a whole and taken as the answer; or the program's own loop puts
tokens behind the prompt, and the answer is compared with what stands from the first token on.
Why it matters: the output holds the prompt in front: comparing, parsing or scoring it goes wrong.
When it is fine: for encoder-decoders, and where the prompt is wanted (a continuation that is shown).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.calls import Call, written
from trainwreck.code.huggingface import holder, loaded_by, model_loads
from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.stripping import prompt_judged
from trainwreck.code.rule import sighting
from trainwreck.code.scopes import Scope
from trainwreck.core.evidence import Evidence
from trainwreck.core.fix import Fix

BAD = (
    """
from transformers import AutoModelForCausalLM, AutoTokenizer
tok = AutoTokenizer.from_pretrained("m")
model = AutoModelForCausalLM.from_pretrained("m")
def score(rows):
    right = 0
    for row in rows:
        batch = tok(row["question"], return_tensors="pt")
        out = model.generate(**batch, max_new_tokens=20)
        answer = tok.decode(out[0], skip_special_tokens=True)  # expect
        right += answer.strip() == row["answer"]
    return right
""",
    """
import json
from transformers import AutoModelForCausalLM
def ask(tok, ids):
    model = AutoModelForCausalLM.from_pretrained("m").eval()
    outputs = model.generate(ids, max_new_tokens=200)
    response = tok.batch_decode(outputs, skip_special_tokens=True)[0]  # expect
    return json.loads(response)
""",
)
GOOD = """
from transformers import AutoModelForCausalLM, AutoModelForSeq2SeqLM, AutoTokenizer
tok = AutoTokenizer.from_pretrained("m")
model = AutoModelForCausalLM.from_pretrained("m")
both = AutoModelForSeq2SeqLM.from_pretrained("n")
def score(row, batch, n):
    out = model.generate(**batch)
    answer = tok.decode(out[0][n:], skip_special_tokens=True)
    cut = tok.decode(out[0])[len(row["question"]):]
    part = tok.decode(out[0]).split("Answer:")[-1]
    shown = tok.decode(out[0])
    print(shown)
    other = tok.decode(both.generate(**batch)[0])
    return answer == row["answer"], cut == "x", part == "y", other == "z"
"""
JUDGED = pattern(r"json\.loads|==|startswith|\bint\(|\bfloat\(|compute\(")


def find(project: Project) -> Iterator[Evidence]:
    yield from further(__name__, project, _decoded(project), prompt_judged)


def _decoded(project: Project) -> Iterator[Evidence]:
    loads = model_loads(project)
    for call in project.calls("decode", "batch_decode"):
        value = call.node.args[0] if call.node.args else None
        while isinstance(value, ast.Subscript) and not isinstance(value.slice, ast.Slice | ast.Tuple):
            value = value.value
        source = _generated(project, value, call.scope) if value is not None else None
        if source is None or source.receiver is None:
            continue
        load = loaded_by(project, source.receiver, source.scope, loads)
        if load is None or not holder(load).endswith(("ForCausalLM", "LMHeadModel")):
            continue
        name = _kept(project, call)
        if name and _judged(project, call, name):
            text = "the decoded text holds the prompt too, and it is judged as the answer"
            fix = Fix("decode output[0][inputs['input_ids'].shape[1]:]")
            yield sighting(__name__, call, text, proof=[source], fix=fix)


def _generated(project: Project, node: ast.expr, scope: Scope) -> Call | None:
    if isinstance(node, ast.Call):
        call = Call(node, scope)
        return call if call.name == "generate" else None
    if not isinstance(node, ast.Name):
        return None
    bindings = [b for b in project.lookup(node.id, scope) if b.kind != "append"]
    if len(bindings) != 1 or bindings[0].kind != "assign" or bindings[0].path or bindings[0].value is None:
        return None
    return _generated(project, bindings[0].value, bindings[0].scope)


def _kept(project: Project, call: Call) -> str:
    """The name that the text gets, "" where something is cut from it at once."""
    statement = project.statement(call.node, call.scope)
    value = statement.value if isinstance(statement, ast.Assign) else None
    plain = value is call.node or (
        isinstance(value, ast.Subscript) and value.value is call.node and isinstance(value.slice, ast.Constant)
    )
    return written(statement.targets[0]) if plain and isinstance(statement, ast.Assign) else ""


def _judged(project: Project, call: Call, name: str) -> bool:
    """True if the text is compared or parsed, and nothing cuts, splits or searches it first."""
    judged = False
    for node in ast.walk(call.scope.node):
        if not isinstance(node, ast.expr) or getattr(node, "lineno", 0) <= call.line:
            continue
        text = written(node) if isinstance(node, ast.Call | ast.Compare | ast.Subscript) else ""
        if not re.search(rf"\b{re.escape(name)}\b", text):
            continue
        if re.search(r"split|replace|\[len\(|removeprefix|search|findall|partition|match|find\(|\bin\b", text):
            return False
        judged = judged or bool(JUDGED.search(text))
    return judged
