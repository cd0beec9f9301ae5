"""Which tokens are the prompt's is worked out, and the loss does not look at it.

What: a copy of the tokens whose first part is set to -100 and that nothing reads; a function with a cross entropy that
takes a mask of the answer's tokens and does not use it; labels that are all tokens, beside the prompt's length that
nothing reads.
Why it matters: long prompts dominate the loss, and the model learns to continue questions.
When it is fine: for training on whole conversations on purpose; then no mask is made.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.calls import last_name
from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.code.scopes import FunctionNode, Scope
from trainwreck.code.values import number
from trainwreck.core.evidence import Evidence

_ROWS = """
import torch
class Talks(torch.utils.data.Dataset):
    def __getitem__(self, i):
        ids, start = self.rows[i]
        tokens = torch.tensor(ids)
        wanted = tokens.clone()
        wanted[:start] = -100
        return {"input_ids": tokens, "labels": WANTED}
"""
_LOSS = """
import torch.nn.functional as F
def objective(model, ids, reply_mask, pad):
    goal = ids[:, 1:]
    each = F.cross_entropy(model(ids[:, :-1]).transpose(1, 2), goal, reduction="none")
    counted = COUNTED
    return (each * counted).sum() / counted.sum()
"""
_LENGTH = """
def encode(tok, row):
    asked = tok.encode(row["q"])
    told = tok.encode(row["a"]) + [tok.eos_token_id]
    ids = asked + told
    return {"input_ids": ids, "labels": LABELS, "prompt_len": len(asked)}
"""
BAD = (
    _ROWS.replace("WANTED}", "tokens}  # expect"),
    _LOSS.replace("COUNTED", "(goal != pad).float()  # expect"),
    _LENGTH.replace("len(asked)}", "len(asked)}  # expect").replace("LABELS", "list(ids)"),
)
GOOD = (
    _ROWS.replace("WANTED", "wanted"),
    _LOSS.replace("COUNTED", "reply_mask[:, 1:] * (goal != pad)"),
    _LENGTH.replace("LABELS", "[-100] * len(asked) + told"),
    _LENGTH.replace("LABELS", "list(ids)")
    + """
def collate(rows):
    for row in rows:
        row["labels"][: row["prompt_len"]] = [-100] * row["prompt_len"]
""",
)
COPIES = frozenset(["clone", "copy", "deepcopy", "list", "tensor", "array", "LongTensor"])
ANSWERS = pattern(
    r"^(completion|completions|response|responses|answer|answers|assistant|reply|output)_?(token_?)?masks?$|^(comp|resp|ans)_mask$",
    re.IGNORECASE,
)
LENGTHS = pattern(
    r"^(prompt|source|question|instruction|context|prefix)_?(len|lens|length|lengths|size)$", re.IGNORECASE
)
SCORES = frozenset(["cross_entropy", "nll_loss", "log_softmax"])
IGNORED = -100


def find(project: Project) -> Iterator[Evidence]:
    for scope in project.functions:
        if isinstance(scope.node, FunctionNode):
            yield from _in_vain(project, scope)
            yield from _mask_unread(project, scope)
            yield from _length_unread(project, scope)


def _in_vain(project: Project, scope: Scope) -> Iterator[Evidence]:
    """A copy is made, its first part is set to -100, and nothing reads it."""
    for store in [n for n in scope.nodes if isinstance(n, ast.Assign) and len(n.targets) == 1]:
        target = store.targets[0]
        if not isinstance(target, ast.Subscript) or not isinstance(target.value, ast.Name):
            continue
        front = isinstance(target.slice, ast.Slice) and target.slice.lower is None and target.slice.upper is not None
        name = target.value.id
        bound = [b for b in scope.bindings.get(name, ()) if b.kind != "append"]
        if not front or len(bound) != 1 or bound[0].kind != "assign" or bound[0].path or not _copy(bound[0].value):
            continue
        if number(project, store.value, scope) != IGNORED or _read(scope.node, name):
            continue
        given = next((v for n in _walk(scope) if isinstance(n, ast.Dict) for k, v in zip(n.keys, n.values, strict=True)
                      if isinstance(k, ast.Constant) and k.value == "labels"), None)  # fmt: skip
        place = (given or store, scope)
        text = f"{name}, in which the prompt is masked, is read by nothing: the prompt counts in the loss"
        yield sighting(__name__, place, text, proof=[_link(store, scope)], severity="warning")


def _link(node: ast.AST, scope: Scope) -> tuple[str, int, str]:
    return scope.module.path, int(getattr(node, "lineno", 1)), ast.unparse(node)[:80]


def _copy(value: ast.expr | None) -> bool:
    if isinstance(value, ast.Subscript):
        whole = value.slice
        return isinstance(whole, ast.Slice) and whole.lower is None and whole.upper is None
    return isinstance(value, ast.Call) and last_name(value.func) in COPIES


def _walk(scope: Scope) -> list[ast.AST]:
    return list(ast.walk(scope.node))


def _read(node: ast.AST, name: str) -> bool:
    """True where a name is read otherwise than to write elements of it."""
    written = {id(t.value) for n in ast.walk(node) if isinstance(n, ast.Assign) for t in n.targets
               if isinstance(t, ast.Subscript)}  # fmt: skip
    return any(
        isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Load) and id(n) not in written
        for n in ast.walk(node)
    )


def _mask_unread(project: Project, scope: Scope) -> Iterator[Evidence]:
    """A loss over tokens is handed a mask of those of the answer."""
    inner = _walk(scope)
    scored = next((n for n in inner if isinstance(n, ast.Call) and last_name(n.func) in SCORES), None)
    if scored is None:
        return
    for name in scope.params:
        counts = LENGTHS.search(name) is not None
        if not (counts or ANSWERS.search(name)) or _read(scope.node, name) or not _handed(project, scope, name):
            continue
        tests = (n for n in inner if isinstance(n, ast.Compare) and isinstance(n.ops[0], ast.NotEq | ast.Eq))
        other = next(tests, None)
        what = "where the answer begins" if counts else "the tokens of the answer"
        text = f"{name} tells {what}, and nothing here reads it: the prompt counts in the loss"
        proof = [_link(scored, scope)]
        yield sighting(__name__, (other or scored, scope), text, proof=proof, severity="warning")


def _handed(project: Project, scope: Scope, name: str) -> bool:
    """False where every call leaves the argument at its default."""
    calls = project.callers(scope)
    at = scope.positional.index(name) - (scope.owner is not None) if name in scope.positional else None
    return not calls or any(
        (at is not None and len(c.node.args) > at)
        or any(k.arg in (name, None) for k in c.node.keywords)
        or any(isinstance(a, ast.Starred) for a in c.node.args)
        for c in calls
    )


def _length_unread(project: Project, scope: Scope) -> Iterator[Evidence]:
    """A row keeps the length of its prompt, and its labels are all of its tokens."""
    for row in [n for n in scope.nodes if isinstance(n, ast.Dict)]:
        held = {k.value: v for k, v in zip(row.keys, row.values, strict=True) if isinstance(k, ast.Constant)}
        length = next((k for k in held if isinstance(k, str) and LENGTHS.search(k)), None)
        ids, labels = held.get("input_ids"), held.get("labels")
        if not isinstance(length, str) or ids is None or labels is None or not _same(scope, labels, ids):
            continue
        texts = [n for w in project.walked.values() for n in ast.walk(w.top.module.tree)
                 if isinstance(n, ast.Constant) and n.value == length]  # fmt: skip
        named = any(isinstance(n, ast.Attribute) and n.attr == length for w in project.walked.values()
                    for n in ast.walk(w.top.module.tree))  # fmt: skip
        if len(texts) == 1 and not named:
            text = (
                f"the labels are all tokens of the row, and {length} is read by nothing: the prompt counts in the loss"
            )
            yield sighting(__name__, (_written(scope, labels), scope), text, severity="warning")


def _written(scope: Scope, labels: ast.expr) -> ast.expr:
    bound = scope.bindings.get(labels.id, ()) if isinstance(labels, ast.Name) else ()
    return next((b.value for b in bound if b.value is not None), labels)


def _same(scope: Scope, labels: ast.expr, ids: ast.expr) -> bool:
    """``ids``, a copy of it, or a name that was given one and nothing is written into."""
    if isinstance(labels, ast.Name):
        if isinstance(ids, ast.Name) and labels.id == ids.id:
            return all(b.kind == "assign" for b in scope.bindings.get(ids.id, ()))
        bound = scope.bindings.get(labels.id, ())
        if len(bound) != 1 or bound[0].kind != "assign" or bound[0].value is None:
            return False
        return not isinstance(bound[0].value, ast.Name) and _same(scope, bound[0].value, ids)
    if not _copy(labels):
        return False
    inner: ast.expr | None = labels.value if isinstance(labels, ast.Subscript) else None
    if isinstance(labels, ast.Call):
        method = isinstance(labels.func, ast.Attribute) and last_name(labels.func) in ("clone", "copy")
        inner = (
            labels.func.value if method and isinstance(labels.func, ast.Attribute) else next(iter(labels.args), None)
        )
    return isinstance(inner, ast.Name) and isinstance(ids, ast.Name) and inner.id == ids.id
