"""Padding counts in a loss over tokens.

What: targets that a collate function pads (``pad_sequence``, or rows of zeros that are filled in part) reach a cross
entropy over positions without ``ignore_index`` and without a mask.
Why it matters: the model is rewarded for predicting padding; short samples count most, and the loss looks too good.
When it is fine: with ``ignore_index``, padding of -100, or a loss that a mask multiplies or selects.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.calls import Call, last_name, written
from trainwreck.code.facts import made, text_of
from trainwreck.code.flow import Step, back
from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import answers, further
from trainwreck.code.rehearsal.questions.answer_margins import unmasked_sum
from trainwreck.code.rehearsal.questions.counted_losses import padded_frames
from trainwreck.code.rehearsal.questions.padded import memory_padding_seen, padding_counts, padding_seen
from trainwreck.code.rehearsal.questions.padded_last import state_of_padding
from trainwreck.code.rehearsal.questions.padded_scores import diluted, padding_scored
from trainwreck.code.rehearsal.questions.share_scores import padding_has_a_share
from trainwreck.code.rehearsal.questions.stand_ins import tokens_counted
from trainwreck.code.rehearsal.questions.told_padding import mask_unread
from trainwreck.code.rehearsal.questions.unread_flags import never_read
from trainwreck.code.rehearsal.questions.unused_masks import never_asked
from trainwreck.code.rehearsal.questions.void_labels import void_tokens
from trainwreck.code.rule import sighting
from trainwreck.code.scopes import Scope
from trainwreck.code.seek import loss_kind, losses
from trainwreck.code.values import number
from trainwreck.core.evidence import Evidence

BAD = (
    """
import torch
from torch import nn
from torch.utils.data import DataLoader
PAD = 0
def collate(batch):
    width = max(len(s) for s in batch)
    out = torch.full((len(batch), width), PAD)
    for i, s in enumerate(batch):
        out[i, : len(s)] = s
    return out[:, :-1], out[:, 1:]
def train(model, data):
    ce = nn.CrossEntropyLoss()  # expect
    for x, y in DataLoader(data, 8, collate_fn=collate):
        loss = ce(model(x).transpose(1, 2), y)
        loss.backward()
""",
    """
import torch.nn.functional as F
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader
def collate(batch):
    xs, ys = zip(*batch)
    return pad_sequence(xs, batch_first=True), pad_sequence(ys, batch_first=True)
def train(tagger, data, n_tags):
    for x, y in DataLoader(data, 8, collate_fn=collate):
        logits = tagger(x)
        loss = F.cross_entropy(logits.view(-1, n_tags), y.view(-1))  # expect
        loss.backward()
""",
    """
import torch
import torch.nn.functional as F
class Batcher:
    def make(self, rows, width):
        ids = torch.zeros(len(rows), width, dtype=torch.long)
        for i, row in enumerate(rows):
            ids[i, : len(row)] = torch.tensor(row)
        return ids
def train(model, rows, batcher=Batcher()):
    ids = batcher.make(rows, 32)
    logits = model(ids[:, :-1])
    loss = F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())  # expect
    loss.backward()
""",
)
GOOD = """
import torch
import torch.nn.functional as F
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader
def collate(batch):
    xs, ys = zip(*batch)
    return pad_sequence(xs, batch_first=True), pad_sequence(ys, batch_first=True, padding_value=-100)
def with_zero(batch):
    xs, ys, labels = zip(*batch)
    return pad_sequence(xs, batch_first=True), pad_sequence(ys, batch_first=True), torch.tensor(labels)
def train(tagger, data, n):
    for x, y in DataLoader(data, 8, collate_fn=collate):
        F.cross_entropy(tagger(x).view(-1, n), y.view(-1)).backward()
    for x, y, label in DataLoader(data, 8, collate_fn=with_zero):
        F.cross_entropy(tagger(x).view(-1, n), y.view(-1), ignore_index=0).backward()
        rows = F.cross_entropy(tagger(x).transpose(1, 2), y, reduction="none")
        ((rows * (y != 0)).sum() / (y != 0).sum()).backward()
        F.cross_entropy(tagger(x)[:, 0], label).backward()
        keep = y != 0
        F.cross_entropy(tagger(x)[keep], y[keep]).backward()
"""
POSITIONS = pattern(r"view\(-1|reshape\(-1|flatten\(|transpose\(1, 2\)|transpose\(-1, -2\)|permute\(0, 2, 1\)|mT")
"""How logits over positions are brought into the form of a cross entropy."""


def find(project: Project) -> Iterator[Evidence]:
    found = list(answers(__name__, project, padding_counts))
    yield from found
    if not found:
        found = list(_written(project))
        yield from found
    if not found:
        found = list(_asked(project))
        yield from found
    if not found:
        yield from answers(__name__, project, state_of_padding)


def _asked(project: Project) -> Iterator[Evidence]:
    yield from further(
        __name__,
        project,
        answers(__name__, project, padding_seen),
        memory_padding_seen,
        tokens_counted,
        void_tokens,
        never_asked,
        never_read,
        mask_unread,
        padding_has_a_share,
        padding_scored,
        unmasked_sum,
        diluted,
        padded_frames,
    )


def _written(project: Project) -> Iterator[Evidence]:
    for loss in losses(project):
        logits, target = loss.argument("input", 0), loss.argument("target", 1)
        if logits is None or target is None or not loss_kind(project, loss) & {"crossentropy", "nll"}:
            continue
        makers = [c for c in (loss, *made(project, loss.node.func, loss.scope))]
        if any(m.argument("ignore_index") is not None or m.open_ended or _unreduced(m) for m in makers):
            continue
        shapes = written(logits) + written(target) + "".join(_assigned(n, loss.scope) for n in (logits, target))
        if not POSITIONS.search(shapes) or re.search(r"mask|keep|valid|!= ", shapes):
            continue
        padded = _padded(project, target, loss.scope)
        if padded is not None and not _voided(project):
            objects = [m for m in makers if m.name.endswith("Loss")]
            place = objects[0] if objects else loss
            yield sighting(__name__, place, "padded targets count in this loss", proof=[loss, padded])


def _voided(project: Project) -> bool:
    """True where labels are set to -100 somewhere: ``labels[ids == PAD] = -100``, ``masked_fill(..., -100)``."""
    for walked in project.walked.values():
        every = list(ast.walk(walked.top.module.tree))
        called = [t for n in every if isinstance(n, ast.Assign) and written(n.value) == "-100" for t in n.targets]
        ignored = {"-100", *(t.id for t in called if isinstance(t, ast.Name))}
        for node in every:
            filled: list[ast.expr] = []
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
                filled = [node.value]
            elif isinstance(node, ast.Call) and last_name(node.func) in ("masked_fill", "masked_fill_", "where"):
                filled = node.args
            if any(written(value) in ignored for value in filled):
                return True
    return False


def _unreduced(call: Call) -> bool:
    value = call.argument("reduction")
    return isinstance(value, ast.Constant) and value.value == "none"


def _assigned(node: ast.expr, scope: Scope) -> str:
    if not isinstance(node, ast.Name):
        return ""
    return " ".join(written(b.value) for b in scope.bindings.get(node.id, ()) if b.kind == "assign")


def _padded(project: Project, target: ast.expr, scope: Scope) -> Step | None:
    """Where the target is padded with something that the loss does not ignore."""
    for step in back(project, target, scope):
        node = step.node
        if not isinstance(node, ast.Call):
            if isinstance(node, ast.Compare):
                return None
            continue
        name = last_name(node.func)
        call = Call(node, step.scope)
        if name == "pad_sequence":
            fill = call.argument("padding_value", 2)
            return step if fill is None or number(project, fill, step.scope) not in (-100, None) else None
        if name in ("full", "zeros") and _filled_in_part(project, node, step.scope):
            fill = call.argument("fill_value", 1) if name == "full" else None
            if name == "full" and number(project, fill, step.scope) in (-100, None):
                return None
            return step
    return None


def _filled_in_part(project: Project, node: ast.Call, scope: Scope) -> bool:
    """``out[i, :len(s)] = s`` for what the call is assigned to."""
    statement = project.statement(node, scope)
    target = statement.targets[0] if isinstance(statement, ast.Assign) else None
    if not isinstance(target, ast.Name):
        return False
    return bool(re.search(rf"\b{re.escape(target.id)}\[\w+, :", text_of(project, scope)))
