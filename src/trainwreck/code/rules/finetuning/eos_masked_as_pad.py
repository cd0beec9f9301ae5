"""The end token is the padding token, and padding is left out of the loss.

What: ``pad_token = eos_token``, texts that end with the end token, and a collator (or own code) that sets the labels of
padding to -100.
Why it matters: the end token never counts in the loss: the model does not learn to stop.
When it is fine: where labels are masked by the attention mask, and for plain pre-training on packed text.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.calls import last_name, written
from trainwreck.code.facts import only, option
from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.drawn_ends import end_never_learned
from trainwreck.code.rehearsal.questions.ends import end_left_out
from trainwreck.code.rule import sighting
from trainwreck.code.scopes import Scope
from trainwreck.core.evidence import Evidence
from trainwreck.core.fix import Fix

WORDS = ("eos_token", "ignore_index", "cross_entropy", "CrossEntropy", "nll_loss", "NLLLoss", "multinomial")
END = pattern(r"^(eos|eot|end|stop)(_|$)|_(eos|end|stop)(_|$)", re.IGNORECASE)
PAD = pattern(r"^pad(_|$)|_pad(_|$)", re.IGNORECASE)
BAD = (
    """
from transformers import AutoTokenizer, DataCollatorForLanguageModeling
tok = AutoTokenizer.from_pretrained("m")
tok.pad_token = tok.eos_token  # expect
def prepare(row):
    return tok(row["question"] + row["answer"] + tok.eos_token)
collate = DataCollatorForLanguageModeling(tok, mlm=False)
""",
    """
from transformers import AutoTokenizer
tokenizer = AutoTokenizer.from_pretrained("m")
tokenizer.pad_token_id = tokenizer.eos_token_id  # expect
def collate(rows):
    batch = tokenizer([f"{r['q']} {r['a']}{tokenizer.eos_token}" for r in rows], padding=True, return_tensors="pt")
    labels = batch["input_ids"].clone()
    labels[labels == tokenizer.pad_token_id] = -100
    return {**batch, "labels": labels}
""",
)
GOOD = (
    """
from transformers import AutoTokenizer, DataCollatorForLanguageModeling
tok = AutoTokenizer.from_pretrained("m")
tok.pad_token = tok.unk_token
def prepare(row):
    return tok(row["question"] + row["answer"] + tok.eos_token)
collate = DataCollatorForLanguageModeling(tok, mlm=False)
""",
    """
from transformers import AutoTokenizer, DataCollatorForLanguageModeling
tok = AutoTokenizer.from_pretrained("m")
tok.pad_token = tok.eos_token
def prepare(rows):
    return tok(rows["text"], truncation=True)
collate = DataCollatorForLanguageModeling(tok, mlm=False)
""",
    """
from transformers import AutoTokenizer
tok = AutoTokenizer.from_pretrained("m")
tok.pad_token = tok.eos_token
def collate(rows):
    batch = tok([r["a"] + tok.eos_token for r in rows], padding=True, return_tensors="pt")
    labels = batch["input_ids"].clone()
    labels[batch["attention_mask"] == 0] = -100
    return {**batch, "labels": labels}
""",
)
MASKED = pattern(r"==\s*\w*\.?pad_token_id")


def find(project: Project) -> Iterator[Evidence]:
    yield from further(__name__, project, _seen(project), end_left_out, end_never_learned)


def _seen(project: Project) -> Iterator[Evidence]:
    yield from _by_number(project)
    masking = _masking(project)
    ended = _ended(project)
    if masking is None or ended is None:
        return
    for scope in project.scopes:
        for node in project.within(scope, ast.Assign):
            if isinstance(node, ast.Assign) and _pad_is_end(node):
                text = "padding is the end token, and labels of padding are left out: the end is never learned"
                fix = Fix("use another padding token, or mask by the attention mask")
                yield sighting(__name__, (node, scope), text, proof=[masking, ended], fix=fix)
                return


def _by_number(project: Project) -> Iterator[Evidence]:
    """``PAD, BOS, EOS = 0, 1, 0`` beside ``ignore_index=PAD``, where rows get the end token."""
    for walked in project.walked.values():
        top = walked.top
        numbers = _numbers(top.module.tree)
        pads = [n for n in numbers if PAD.search(n)]
        ends = [n for n in numbers if END.search(n) and any(numbers[n][0] == numbers[p][0] for p in pads)]
        if not ends:
            continue
        every = list(ast.walk(top.module.tree))
        ignored = [n for n in every if isinstance(n, ast.keyword) and n.arg == "ignore_index"]
        ignored = [n for n in ignored if isinstance(n.value, ast.Name) and n.value.id in pads]
        lasts = [n.elts[-1] for n in every if isinstance(n, ast.List) and n.elts]
        put = any(isinstance(n, ast.Name) and n.id in ends for n in lasts)
        if ignored and put:
            text = "the end token has the number of the padding, which the loss ignores: the end is never learned"
            proof = [(top.module.path, ignored[0].value.lineno, "ignore_index")]
            yield sighting(__name__, (numbers[ends[0]][1], top), text, proof=proof)


def _numbers(tree: ast.Module) -> dict[str, tuple[int, ast.stmt]]:
    """Names that a module's own statements give to whole numbers."""
    found: dict[str, tuple[int, ast.stmt]] = {}
    for node in tree.body:
        if not isinstance(node, ast.Assign) or len(node.targets) != 1:
            continue
        target, value = node.targets[0], node.value
        pairs = [(target, value)]
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
            pairs = list(zip(target.elts, value.elts, strict=True))
        for name, number in pairs:
            if isinstance(name, ast.Name) and isinstance(number, ast.Constant) and type(number.value) is int:
                found[name.id] = (number.value, node)
    return found


def _pad_is_end(node: ast.Assign) -> bool:
    target, value = node.targets[0], node.value
    pad = isinstance(target, ast.Attribute) and target.attr in ("pad_token", "pad_token_id")
    return pad and isinstance(value, ast.Attribute) and value.attr in ("eos_token", "eos_token_id")


def _masking(project: Project) -> tuple[str, int, str] | None:
    """Where labels of padding become -100."""
    for call in project.calls("DataCollatorForLanguageModeling"):
        if only(project, option(project, call, "mlm", 1)) is False and project.from_package(call, "transformers"):
            return _link(call.node, call.scope)
    for scope in project.scopes:
        for node in project.within(scope, ast.Assign):
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
                ignored = written(node.value) == "-100"
                if ignored and MASKED.search(written(node.targets[0].slice)) and "label" in written(node.targets[0]):
                    return _link(node, scope)
    for call in project.calls("masked_fill", "masked_fill_", "where"):
        test = call.argument("mask", 0) or call.argument("condition", 0)
        filled = any(written(a) == "-100" for a in (*call.node.args, *(k.value for k in call.node.keywords)))
        of_pad = test is not None and isinstance(test, ast.Compare | ast.Call) and PADDED.search(written(test))
        if filled and of_pad:
            return _link(call.node, call.scope)
    return None


PADDED = pattern(r"(==|\.eq\(|\beq\(|!=|\.ne\().*pad_token_id|pad_token_id\s*(==|!=)")
"""A comparison of tokens with the padding token."""


def _ended(project: Project) -> tuple[str, int, str] | None:
    """Where the end token is put behind a text."""
    for scope in project.scopes:
        for node in project.within(scope, ast.BinOp, ast.JoinedStr):
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add) and last_name(node.right) == "eos_token":
                return _link(node, scope)
            last = node.values[-1] if isinstance(node, ast.JoinedStr) and node.values else None
            if isinstance(last, ast.FormattedValue) and last_name(last.value) == "eos_token":
                return _link(node, scope)
    return None


def _link(node: ast.AST, scope: Scope) -> tuple[str, int, str]:
    return scope.module.path, int(getattr(node, "lineno", 1)), written(node)[:80]
