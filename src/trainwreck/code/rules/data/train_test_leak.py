"""The rows that are held out are also trained on.

What: the training set is the whole table although validation rows are sliced from the same table; a training loop or
``fit`` runs over the test data; a trainer evaluates on its training set, or a validation score is measured there.
Why it matters: validation measures memory, not generalisation.
When it is fine: for a final fit after the choice was made; adaptation at test time.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator
from typing import TypeGuard

from trainwreck.code.calls import Call, written
from trainwreck.code.facts import HELD as HELD_NAMES
from trainwreck.code.facts import TEST as TEST_NAMES
from trainwreck.code.facts import TRAIN as TRAIN_NAMES
from trainwreck.code.facts import made, names, names_in, source
from trainwreck.code.order import TrainingStep, training_steps
from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.chosen_outputs import judged_again
from trainwreck.code.rehearsal.questions.counted_rows import counted_rows
from trainwreck.code.rehearsal.questions.folds import not_left_out
from trainwreck.code.rehearsal.questions.held_twice import held_twice
from trainwreck.code.rehearsal.questions.redrawn import from_one_seed
from trainwreck.code.rehearsal.questions.same_part import same_part, same_slice
from trainwreck.code.rehearsal.questions.sliced_lists import judged_is_slice
from trainwreck.code.rehearsal.questions.splits import held_out_in_training, same_data
from trainwreck.code.rehearsal.questions.told_negatives import held_out_spared
from trainwreck.code.rehearsal.questions.unused_half import judged_by_the_taught
from trainwreck.code.rehearsal.questions.whole_labels import held_out_labels
from trainwreck.code.rehearsal.questions.window_spans import spans_overlap
from trainwreck.code.rehearsal.questions.worked_splits import record_in_two_parts
from trainwreck.code.rule import sighting
from trainwreck.code.rules.evaluation.metric_mismatch_task import CLASSIFIERS, REGRESSORS
from trainwreck.code.same_rows import given_twice, part_of_the_whole, ranges_overlap, slices_overlap
from trainwreck.code.scopes import Binding, Scope
from trainwreck.code.seek import TRAINERS, assigned_name
from trainwreck.core.evidence import Evidence

BAD = (
    """
from torchvision.datasets import MNIST
train = MNIST("d", train=True)
test = MNIST("d", train=True)  # expect
""",
    """
def main(x, y):
    n_val = 100
    x_train, y_train = x, y  # expect
    x_val, y_val = x[:n_val], y[:n_val]
    return x_train, x_val
""",
    """
import torch
def run(model, opt, train_loader, test_loader):
    for x, y in test_loader:  # expect
        opt.zero_grad()
        torch.nn.functional.cross_entropy(model(x), y).backward()
        opt.step()
""",
    """
from sklearn.ensemble import RandomForestClassifier
clf = RandomForestClassifier()
clf.fit(X_test, y_test)  # expect
print(clf.score(X_test, y_test))
""",
    """
from transformers import Trainer
def main(model, args, ds):
    train_set = ds["train"]
    return Trainer(model, args, train_dataset=train_set, eval_dataset=train_set)  # expect
""",
    """
def main(model, train_loader, val_loader, evaluate, epochs):
    for epoch in range(epochs):
        val_acc = evaluate(model, train_loader)  # expect
        print(val_acc)
""",
)
GOOD = """
import torch
from sklearn.ensemble import RandomForestClassifier
from sklearn.manifold import TSNE
from transformers import Trainer
def other(model, args, ds, opt, train_loader, test_loader, evaluate, X_train, X_test, y_train):
    Trainer(model, args, train_dataset=ds["train"], eval_dataset=ds["validation"])
    RandomForestClassifier().fit(X_train, y_train)
    TSNE().fit_transform(X_test)
    train_acc = evaluate(model, train_loader)
    test_acc = evaluate(model, test_loader)
    val_acc = evaluate(model, train_loader, test_loader)
    for x in train_loader:
        model(x).sum().backward()
        opt.step()
        opt.zero_grad()
def adapt_at_test_time(model, opt, test_loader):
    for x in test_loader:
        model(x).entropy().mean().backward()
        opt.step()
        opt.zero_grad()
def main(x, y):
    n_val = 100
    x_train, y_train = x[n_val:], y[n_val:]
    x_val, y_val = x[:n_val], y[:n_val]
    return x_train, x_val
"""
TRAIN = pattern(r"(^|_)(tr|train|training|fit)(_|$)|^train", re.IGNORECASE)
HELD = pattern(r"(^|_)(va|val|valid|validation|dev|test|te|holdout|held|eval)(_|$)", re.IGNORECASE)


ADAPTS = pattern(r"adapt|tta|attack|adversar|invert|latent|finetune_on|online|prequential", re.IGNORECASE)
"""Functions that learn from test inputs on purpose."""
MEASURES = pattern(r"^(evaluate|validate|test|eval|score|run_eval|evaluation|compute_accuracy|accuracy)", re.IGNORECASE)


def find(project: Project) -> Iterator[Evidence]:
    yield from further(
        __name__,
        project,
        further(__name__, project, _written(project), not_left_out),
        counted_rows,
        held_out_in_training,
        from_one_seed,
        same_data,
        same_part,
        same_slice,
        held_out_labels,
        judged_again,
        judged_by_the_taught,
        spans_overlap,
        held_out_spared,
        held_twice,
        record_in_two_parts,
        judged_is_slice,
    )


def _written(project: Project) -> Iterator[Evidence]:
    yield from _same_split(project)
    yield from _sliced(project)
    yield from _trained_on_test(project)
    yield from _evaluated_on_train(project)
    cut = () if WINDOWED.search(source(project)) else (slices_overlap,)  # a part may begin with what is only known
    for scope in project.scopes:
        asked = (given_twice, part_of_the_whole, ranges_overlap, *cut)
        for twice in (t for ask in asked for t in ask(project, scope)):
            yield sighting(__name__, (twice.node, twice.scope), twice.text)


def _trained_on_test(project: Project) -> Iterator[Evidence]:
    """A training loop over the test loader, or an estimator that is fitted to the test rows."""
    for step in training_steps(project):
        loop = step.loop
        if not isinstance(loop, ast.For) or not step.steps or ADAPTS.search(step.scope.name):
            continue
        if names_in(loop.iter, TEST_NAMES) and not names_in(loop.iter, TRAIN_NAMES) and not _without_labels(step):
            text = f"the model is trained on {written(loop.iter)[:40]}"
            yield sighting(__name__, (loop, step.scope), text, proof=step.backward[:1])
    for call in project.calls("fit"):
        if not call.node.args or call.receiver is None or not isinstance(call.node.args[0], ast.Name | ast.Attribute):
            continue
        data = call.node.args[0]
        makers = made(project, call.receiver, call.scope)
        learns = any(REGRESSORS.search(c.name) or CLASSIFIERS.search(c.name) for c in makers)
        if learns and names_in(data, TEST_NAMES) and not names_in(data, TRAIN_NAMES):
            yield sighting(__name__, call, f"the model is fitted to {written(data)}", proof=makers[:1])


def _without_labels(step: TrainingStep) -> bool:
    """True for a loop that reads the labels to judge the outputs, and whose loss is computed without them: it adapts to
    inputs as they come."""
    loop = step.loop
    if not isinstance(loop, ast.For) or not isinstance(loop.target, ast.Tuple) or len(loop.target.elts) != 2:
        return False
    labels = names(loop.target.elts[1])
    behind = {n for call in step.backward for n in names(call.node)}
    inner = [n for n in ast.walk(loop) if isinstance(n, ast.Assign | ast.AugAssign)]
    for _ in inner:
        made = [a for a in inner if behind & {n for t in _targets(a) for n in names(t)}]
        more = {n for a in made for n in names(a.value)} - behind
        if not more:
            break
        behind |= more
    read = {n.id for s in loop.body for n in ast.walk(s) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    return bool(labels & read) and not labels & behind


def _targets(node: ast.Assign | ast.AugAssign) -> list[ast.expr]:
    return node.targets if isinstance(node, ast.Assign) else [node.target]


def _evaluated_on_train(project: Project) -> Iterator[Evidence]:
    """A trainer with one set for both, or a score that is called validation and measured on the training loader."""
    for call in project.calls(*TRAINERS):
        train, held = call.argument("train_dataset"), call.argument("eval_dataset")
        if train is None or held is None or isinstance(train, ast.Constant):
            continue
        if written(train) == written(held):
            yield sighting(__name__, call, f"{written(held)[:40]} is the training set and the evaluation set")
    for walked in project.walked.values():
        for node, scope in walked.calls:
            call = Call(node, scope)
            if not MEASURES.search(call.name) or not any(isinstance(a, ast.Name | ast.Attribute) for a in node.args):
                continue
            name = assigned_name(project, call)
            given = [a for a in node.args if isinstance(a, ast.Name | ast.Attribute)]
            on_train = any(names_in(a, TRAIN_NAMES) for a in given) and not any(names_in(a, HELD_NAMES) for a in given)
            if on_train and HELD.search(name) and not TRAIN.search(name):
                yield sighting(__name__, call, f"{name} is measured on the training data")


def _same_split(project: Project) -> Iterator[Evidence]:
    """A set that is named as evaluation data says ``train=True`` or ``split="train"`` like the training set."""
    for walked in project.walked.values():
        if re.search(r"Subset|random_split|Sampler|\.select\(|train_test_split", walked.top.module.text):
            continue
        named: list[tuple[str, Call]] = []
        for node, scope in walked.calls:
            call = Call(node, scope)
            said = [k for k in node.keywords if k.arg in ("train", "split") and isinstance(k.value, ast.Constant)]
            if len(said) == 1 and isinstance(said[0].value, ast.Constant) and said[0].value.value in (True, "train"):
                named.append((assigned_name(project, call), call))
        for name, call in named:
            if not HELD.search(name) or TRAIN.search(name):
                continue
            other = next(
                (c for n, c in named if TRAIN.search(n) and c.name == call.name and c.scope is call.scope), None
            )
            if other is not None and [written(a) for a in other.node.args] == [written(a) for a in call.node.args]:
                text = f"{name} is read from the training split, like the training data"
                yield sighting(__name__, call, text, proof=[other])


def _sliced(project: Project) -> Iterator[Evidence]:
    looks_back = WINDOWED.search(source(project)) is not None  # then the part behind may begin with what is known
    for scope in project.scopes:
        if scope.kind == "class":
            continue
        taught = {n: b for n, b in _single(scope) if TRAIN.search(n) and not HELD.search(n)}
        told: set[int] = set()
        for held, cut in _single(scope):
            value = _value(cut)
            if not HELD.search(held) or TRAIN.search(held) or not _is_cut(value):
                continue
            base = written(value.value)
            for name, binding in taught.items():
                other = _value(binding)
                of = other.value if _is_cut(other) else other
                if (
                    isinstance(of, ast.Name)
                    and written(of) == base
                    and (
                        of is other
                        or (
                            _is_cut(other)
                            and _share(other.slice, value.slice)
                            and _alike(name, held)
                            and not looks_back
                        )
                    )
                    and (binding.line not in told if of is other else not told)
                    and _unchanged(scope, base, binding, cut)
                ):
                    told.add(binding.line)
                    text = f"{name} is all of {base}, and {held} is a part of it"
                    first, second = binding, cut
                    if of is not other:  # the one that is cut second should have left out the first
                        text = f"{name} and {held} are cut from {base} and share rows"
                        first, second = sorted((binding, cut), key=lambda b: -b.line)
                    proof = [(scope.module.path, second.line, written(second.node)[:80])]
                    yield sighting(__name__, (first.node, scope), text, proof=proof)


WINDOWED = pattern(r"window|look_?back|history|horizon|forecast|context_len|seq_len|\blags?\b", re.IGNORECASE)


def _alike(train: str, held: str) -> bool:
    """True for names of the same thing in both parts: ``train_x`` and ``test_x``."""
    return TRAIN.sub("", train).strip("_") == HELD.sub("", held).strip("_")


def _is_cut(value: ast.expr | None) -> TypeGuard[ast.Subscript]:
    """True for ``rows[a:b]``."""
    return isinstance(value, ast.Subscript) and isinstance(value.slice, ast.Slice)


def _overlap(one: ast.expr | None, other: ast.expr | None) -> bool:
    return _is_cut(one) and _is_cut(other) and _share(one.slice, other.slice)


def _share(one: ast.expr, other: ast.expr) -> bool:
    """True for two slices that surely have elements in common: both from the start, or both up to the end, with an end
    that is counted from there."""
    if not isinstance(one, ast.Slice) or not isinstance(other, ast.Slice) or one.step or other.step:
        return False
    starts, ends = [one.lower, other.lower], [one.upper, other.upper]
    if all(s is None or _number(s) == 0 for s in starts):
        return all(e is not None and not isinstance(e, ast.UnaryOp) and _number(e) != 0 for e in ends)
    if ends == [None, None] and all((_number(s) or 0) < 0 for s in starts):
        return True
    low = [0 if s is None else _number(s) for s in starts]
    high = [math.inf if e is None else _number(e) for e in ends]
    if any(n is None or n < 0 for n in (*low, *high)):
        return False
    return max(n for n in low if n is not None) < min(n for n in high if n is not None)


def _number(node: ast.expr | None) -> int | None:
    """A whole number as it is written, also one below zero."""
    match node:
        case ast.Constant(value=int(number)):
            return number
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int(number))):
            return -number
    return None


def _single(scope: Scope) -> Iterator[tuple[str, Binding]]:
    for name, bindings in scope.bindings.items():
        assigned = [b for b in bindings if b.kind == "assign"]
        if len(assigned) == 1:
            yield name, assigned[0]


def _value(binding: Binding) -> ast.expr | None:
    value = binding.value
    for part in binding.path:
        if isinstance(value, ast.Tuple) and isinstance(part, int) and part < len(value.elts):
            value = value.elts[part]
        else:
            return None
    return value


def _unchanged(scope: Scope, base: str, one: Binding, other: Binding) -> bool:
    low, high = sorted((one.line, other.line))
    return not any(low < b.line <= high and b.kind == "assign" for b in scope.bindings.get(base, ()))
