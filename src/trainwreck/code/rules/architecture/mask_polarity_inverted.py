"""A padding mask is applied the wrong way round.

What: ``masked_fill(~padding, -inf)`` hides the tokens and keeps the padding.
Why it matters: attention sees only padding; the model learns nothing about the text.
When it is fine: where the mask is True for tokens (``attention_mask.bool()``).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.calls import Call, written
from trainwreck.code.flow import back
from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import answers, further
from trainwreck.code.rehearsal.questions.filled_places import only_the_filled
from trainwreck.code.rehearsal.questions.masks import turned_round
from trainwreck.code.rehearsal.questions.padding_masks import padding_kept
from trainwreck.code.rehearsal.questions.told_padding import tokens_left_out
from trainwreck.code.rehearsal.questions.visibility import reversed_order
from trainwreck.code.rule import guess, sighting
from trainwreck.code.scopes import Scope
from trainwreck.code.surface import Surface
from trainwreck.core.evidence import Evidence

BAD = """
def attend(score, padding):
    score = score.masked_fill(~padding[:, None, None, :], -1e4)  # expect
    return score.softmax(-1)
def windowed(scores, attention_mask):
    hidden = (attention_mask != 0)[:, :, None, None]
    return scores + hidden.type_as(scores).masked_fill(hidden, -1e4)
def main(ids, score):
    return attend(score, ids == 0)
"""
GOOD = """
def attend(score, padding, keep):
    score = score.masked_fill(padding[:, None, None, :], -1e4)
    score = score.masked_fill(~keep[:, None, None, :], -1e4)
    return score.softmax(-1)
def main(ids, score):
    return attend(score, ids == 0, ids != 0)
"""


PAD = pattern(r"(^|[._\[\"'])(pad|padding)(_?(id|idx|index|token|value|symbol))*([\"'\]]*)$", re.IGNORECASE)
"""Names of the number that stands for padding."""


def find(project: Project) -> Iterator[Evidence]:
    found = list(answers(__name__, project, padding_kept))
    yield from found
    if not found:
        found = list(_written(project))
        yield from found
    if not found:
        yield from further(
            __name__,
            project,
            answers(__name__, project, turned_round),
            reversed_order,
            tokens_left_out,
            only_the_filled,
        )


def _written(project: Project) -> Iterator[Evidence]:
    for call in project.calls("masked_fill", "masked_fill_"):
        mask = call.argument("mask", 0)
        fill = written(call.argument("value", 1) or (call.node.args[-1] if call.node.args else None))
        if mask is None or not re.match(r"-|float\(.-inf|.*\.min$", fill):
            continue
        if call.receiver is not None and written(call.receiver).partition(".")[0] == written(mask):
            continue  # a mask that is made additive: what it marks was settled before
        inverted = isinstance(mask, ast.UnaryOp) and isinstance(mask.op, ast.Invert | ast.Not)
        inner = mask.operand if isinstance(mask, ast.UnaryOp) else mask
        marks = _marks_padding(project, inner, call.scope)
        if marks is True and inverted:
            yield sighting(__name__, call, "what is not padding is hidden here, and the padding is kept")
        elif marks is False and not inverted:
            maker = _handed_over(project, inner, call)
            text = "the tokens are hidden here, and the padding is kept"
            if maker is not None:
                text = "this is True on tokens, and what it is handed to hides what is True"
            yield sighting(__name__, maker or call, text, proof=[call] if maker is not None else ())
    yield from _key_masks(project)


KEEPS = pattern(
    r"keep|valid|real|attend|attention|token|present|visible|non_?pad|not_?pad|inside|exists", re.IGNORECASE
)
"""Names of masks that are True on what is to be seen."""


def _handed_over(project: Project, mask: ast.expr, call: Call) -> tuple[ast.AST, Scope] | None:
    """Where a mask is made that another function hides by, if it is made for that alone: nothing on the way calls it
    what is to be seen, and the function that makes it only hands it on. Its test is then the wrong way round, not the
    use that all callers share."""
    made = None
    for step in back(project, mask, call.scope):
        names = [n.id for n in ast.walk(step.node) if isinstance(n, ast.Name)]
        if any(KEEPS.search(n) for n in names):
            return None
        tests = isinstance(step.node, ast.Compare) or _compares(step.node)
        if tests and step.scope is not call.scope:
            if made is not None:
                return None
            made = (step.node, step.scope)
        if step.depth > 12:
            break
    statement = project.statement(*made) if made is not None else None
    if made is None or not isinstance(statement, ast.Assign) or statement.value is not made[0]:
        return None
    name = statement.targets[0].id if isinstance(statement.targets[0], ast.Name) else ""
    if not name or KEEPS.search(name):
        return None
    uses = [n for n in project.within(made[1], ast.Name) if isinstance(n, ast.Name) and n.id == name]
    for use in (u for u in uses if isinstance(u.ctx, ast.Load)):
        above = project.parent(use, made[1])
        handed = isinstance(above, ast.keyword) or (isinstance(above, ast.Call) and use in above.args)
        if not handed:
            return None
    return made


def locate(project: Project, surface: Surface | None) -> Iterator[Evidence]:
    for call in project.calls("masked_fill", "masked_fill_", "where"):
        yield guess(__name__, call, "the mask is applied here")
        return


def _key_masks(project: Project) -> Iterator[Evidence]:
    """``key_padding_mask`` of torch hides what is True."""
    for name in ("key_padding_mask", "src_key_padding_mask", "tgt_key_padding_mask", "memory_key_padding_mask"):
        for walked in project.walked.values():
            if name not in walked.top.module.text:
                continue
            for node, scope in walked.calls:
                value = next((k.value for k in node.keywords if k.arg == name), None)
                if value is None or isinstance(value, ast.UnaryOp):
                    continue
                if _marks_padding(project, value, scope) is False:
                    yield sighting(__name__, (node, scope), f"{name} hides what is True, and the tokens are True here")


def _marks_padding(project: Project, node: ast.expr, scope: Scope) -> bool | None:
    """True if the mask is True on padding, False if it is True on tokens, None where it can't be told."""
    found: set[bool] = set()
    for step in back(project, node, scope):
        text = written(step.node)
        if isinstance(step.node, ast.UnaryOp) and isinstance(step.node.op, ast.Invert):
            return None
        if isinstance(step.node, ast.Compare) and len(step.node.ops) == 1 and _pad_id(step.node.comparators[0]):
            if isinstance(step.node.ops[0], ast.Eq):
                found.add(True)
            elif isinstance(step.node.ops[0], ast.NotEq):
                found.add(False)
        elif _compares(step.node):
            found.add(written(step.node.func).endswith(".eq"))  # type: ignore[attr-defined]
        if "tril" in text or "triu" in text:
            return None
        if step.depth > 12:
            break
    return found.pop() if len(found) == 1 else None


def _compares(node: ast.expr) -> bool:
    """True for ``ids.eq(PAD)`` and ``ids.ne(PAD)``."""
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args):
        return False
    return node.func.attr in ("eq", "ne") and _pad_id(node.args[0])


def _pad_id(node: ast.expr) -> bool:
    return (isinstance(node, ast.Constant) and node.value == 0) or bool(PAD.search(written(node)))
