"""Evaluation data are scaled by their own statistics.

What: a scaler is fitted again on the test part, or the evaluation transform lacks the ``Normalize`` of the training
transform.
Or a generator is trained on one kind of noise (uniform) and sampled from another (normal).
Why it matters: the model sees other numbers for the same input than in training: its score says little.
When it is fine: with ``transform`` on the test part.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import Call
from trainwreck.code.facts import (
    HELD,
    TRAIN,
    bound_to,
    made,
    refits,
)
from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.columns_apart import function_left_out
from trainwreck.code.rehearsal.questions.evaluation import scaled_apart
from trainwreck.code.rehearsal.questions.given_back import on_another_scale
from trainwreck.code.rehearsal.questions.latents import other_latents
from trainwreck.code.rehearsal.questions.one_sided import scaled_there_alone
from trainwreck.code.rehearsal.questions.read_back import labels_moved, logarithms_read
from trainwreck.code.rehearsal.questions.refits import each_by_its_own, fitted_twice, own_statistics
from trainwreck.code.rehearsal.questions.short_memory import short_memory
from trainwreck.code.rehearsal.questions.worked_flows import not_undone
from trainwreck.code.rule import sighting
from trainwreck.code.scaled_unread import own_figures, scaled_in_vain
from trainwreck.core.evidence import Evidence

BAD = (
    """
from sklearn.preprocessing import StandardScaler
def load(X_train, X_test):
    scaler = StandardScaler()
    X_train = scaler.fit_transform(X_train)
    X_test = scaler.fit_transform(X_test)  # expect
    return X_train, X_test
""",
    """
from torchvision import transforms
train_tf = transforms.Compose([transforms.RandomCrop(32), transforms.ToTensor(), transforms.Normalize((0.5,), (0.5,))])
test_tf = transforms.Compose([transforms.ToTensor()])  # expect
""",
)
GOOD = """
from sklearn.preprocessing import StandardScaler
from torchvision import transforms as T
def load(X_train, X_test, y):
    scaler = StandardScaler()
    X_train = scaler.fit_transform(X_train)
    X_test = scaler.transform(X_test)
    return X_train, X_test
norm = T.Normalize((0.5,), (0.5,))
train_tf = T.Compose([T.RandomCrop(32), T.ToTensor(), norm])
test_tf = T.Compose([T.ToTensor(), norm])
plain_train, plain_test = T.Compose([T.ToTensor()]), T.Compose([T.ToTensor()])
"""
SCALERS = pattern(r"Scaler$|Imputer$|^PCA$|Transformer$|^Normalizer$|^SelectKBest$")


def find(project: Project) -> Iterator[Evidence]:
    yield from further(
        __name__,
        project,
        _written(project),
        scaled_apart,
        scaled_there_alone,
        function_left_out,
        other_latents,
        own_statistics,
        each_by_its_own,
        fitted_twice,
        on_another_scale,
        labels_moved,
        logarithms_read,
        short_memory,
        not_undone,
    )


def _written(project: Project) -> Iterator[Evidence]:
    alone = (u for scope in project.scopes for u in scaled_in_vain(project, scope) if u.beside)
    for unread in (*own_figures(project), *alone):
        yield sighting(__name__, (unread.node, unread.scope), unread.text)
    for call, other in refits(project, SCALERS):
        yield sighting(__name__, call, "the statistics are taken from the test data itself", proof=[other])
    composed = [c for c in project.calls("Compose") if "torchvision" in project.called(c) and c.node.args]
    named = [(bound_to(project, c), c) for c in composed]
    for name, call in named:
        if not HELD.search(name) or TRAIN.search(name) or _normalises(project, call) is not False:
            continue
        for other_name, other in named:
            if TRAIN.search(other_name) and other.scope is call.scope and _normalises(project, other):
                text = "the training transform normalises, this one does not"
                yield sighting(__name__, call, text, proof=[other])
                break


def _normalises(project: Project, call: Call) -> bool | None:
    """Whether a Compose holds Normalize; None where it can't be told."""
    items = call.node.args[0]
    if not isinstance(items, ast.List | ast.Tuple):
        return None
    found: bool | None = False
    for item in items.elts:
        calls = [Call(item, call.scope)] if isinstance(item, ast.Call) else made(project, item, call.scope)
        if not calls:
            found = None
        if any(c.name == "Normalize" for c in calls):
            return True
    return found
