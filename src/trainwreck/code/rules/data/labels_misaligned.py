"""Inputs and labels are reordered apart from each other.

What: the inputs are shuffled, sorted or filtered and the labels are not (or by another permutation); features are
gathered over a shuffled loader, and the labels are those of the data set in its own order; observations are kept in
a list without a copy, and are all one buffer that is written over.
Why it matters: labels belong to other samples; nothing can be learned but the class frequencies.
When it is fine: where both go through the same permutation, or the pair is shuffled as one.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.arranged import arranged_alone, arranged_between
from trainwreck.code.calls import Call, last_name, written
from trainwreck.code.chunks import first_chunk_again
from trainwreck.code.cut_apart import column_shuffled, cut_apart
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.answer_margins import mask_beside
from trainwreck.code.rehearsal.questions.beside_tables import put_beside, reordered_alone
from trainwreck.code.rehearsal.questions.bootstrap import wrong_step
from trainwreck.code.rehearsal.questions.buffers import reused
from trainwreck.code.rehearsal.questions.columns_of_rows import first_rows_again
from trainwreck.code.rehearsal.questions.draws import drawn_apart
from trainwreck.code.rehearsal.questions.feeding_noise import other_condition
from trainwreck.code.rehearsal.questions.laid_out import laid_out_otherwise
from trainwreck.code.rehearsal.questions.listed_files import listed_in_any_order, listed_otherwise
from trainwreck.code.rehearsal.questions.moved_between import cut_to_fit, parted_and_joined, shuffled_between
from trainwreck.code.rehearsal.questions.order import misaligned
from trainwreck.code.rehearsal.questions.order_for_rank import order_taken_for_rank
from trainwreck.code.rehearsal.questions.own_pairs import beside_the_partner
from trainwreck.code.rehearsal.questions.passes import shuffled_apart
from trainwreck.code.rehearsal.questions.picked_masks import mask_by_the_order
from trainwreck.code.rehearsal.questions.picked_twice import picked_twice
from trainwreck.code.rehearsal.questions.picked_within import labels_of_others
from trainwreck.code.rehearsal.questions.positives import misplaced_positive
from trainwreck.code.rehearsal.questions.resets import state_stays
from trainwreck.code.rehearsal.questions.rolled import rolled_apart
from trainwreck.code.rehearsal.questions.sorted_alone import sorted_alone
from trainwreck.code.rehearsal.questions.sorted_rows import never_put_back
from trainwreck.code.rehearsal.questions.transitions import (
    exchanged,
    moved_early,
    never_moved,
    old_state_asked,
    steps_apart,
)
from trainwreck.code.rehearsal.questions.unpicked import first_rows_beside
from trainwreck.code.rule import sighting
from trainwreck.code.scopes import Binding, Scope
from trainwreck.code.seek import CONVERSIONS, is_loss
from trainwreck.core.evidence import Evidence

BAD = (
    """
class Pieces:
    def __init__(self, tunes, moods, size):
        self.tunes = sorted(tunes, key=len)  # expect
        self.moods = moods
        self.size = size
    def __iter__(self):
        for s in range(0, len(self.tunes), self.size):
            yield self.tunes[s : s + self.size], self.moods[s : s + self.size]
""",
    """
import numpy as np
def main(rng):
    x, y = load()
    order = rng.permutation(len(x))
    x = x[order]  # expect
    return x[:10], y[:10]
""",
    """
class Data:
    def __init__(self, rows):
        self.tokens = sorted((r["text"] for r in rows), key=len)  # expect
        self.labels = [r["label"] for r in rows]
    def __getitem__(self, i):
        return self.tokens[i], self.labels[i]
""",
    """
import random
def main():
    images, labels = load()
    random.shuffle(images)  # expect
    return list(zip(images, labels))
""",
    """
def batches(texts, stars, size, rnd):
    mixed = list(texts)
    rnd.shuffle(mixed)  # expect
    for k in range(0, len(mixed), size):
        yield mixed[k : k + size], stars[k : k + size]
def main(rnd):
    texts, stars = load()
    for a, b in batches(texts, stars, 8, rnd):
        step(a, b)
""",
)
GOOD = """
import numpy as np, random
from sklearn.utils import shuffle
def certified(data, bound, step):
    x_sure, y_sure = draw(data, bound)
    for epoch in range(3):
        x_sure, y_sure = shuffle(x_sure, y_sure)
        for sample, label in zip(x_sure, y_sure):
            step(sample, label)
def main(rng):
    x, y = load()
    order = rng.permutation(len(x))
    x, y = x[order], y[order]
    pairs = list(zip(x, y))
    random.shuffle(pairs)
    train = order[:10]
    return x[train], y[train]
def negatives(anchors, others, rnd):
    rnd.shuffle(others)
    return [(anchors[i], others[i]) for i in range(8)]
def batches(texts, stars, size, rnd):
    order = list(range(len(texts)))
    rnd.shuffle(order)
    for k in range(0, len(order), size):
        yield [texts[i] for i in order[k : k + size]], [stars[i] for i in order[k : k + size]]
def both(texts, stars, rnd):
    rows = list(zip(texts, stars))
    rnd.shuffle(rows)
    texts = [a for a, _ in rows]
    stars = [b for _, b in rows]
    return texts[:8], stars[:8]
def run(rnd):
    texts, stars = load()
    negatives(load_a(), load_b(), rnd)
    both(texts, stars, rnd)
    return list(batches(texts, stars, 8, rnd))
class Data:
    def __init__(self, rows):
        rows = sorted(rows, key=len)
        self.tokens = [r["text"] for r in rows]
        self.labels = [r["label"] for r in rows]
        self.names = sorted(r["label"] for r in rows)
    def __getitem__(self, i):
        return self.tokens[i], self.labels[i]
"""
CHOOSERS = ("gather", "take_along_dim", "one_hot", "nll_loss")
PERMUTES = ("permutation", "randperm", "argsort")


def find(project: Project) -> Iterator[Evidence]:
    asked = (
        misaligned,
        shuffled_apart,
        rolled_apart,
        drawn_apart,
        reused,
        misplaced_positive,
        wrong_step,
        beside_the_partner,
        shuffled_between,
        cut_to_fit,
        parted_and_joined,
        first_rows_beside,
        order_taken_for_rank,
        labels_of_others,
    )
    steps = (never_put_back, moved_early, never_moved, exchanged, old_state_asked, other_condition, listed_otherwise)
    lists = (sorted_alone, mask_by_the_order, picked_twice)
    read = (
        listed_in_any_order,
        put_beside,
        reordered_alone,
        laid_out_otherwise,
        first_rows_again,
        steps_apart,
        state_stays,
        mask_beside,
    )
    yield from further(__name__, project, _written(project), *asked, *steps, *lists, *read)


def _written(project: Project) -> Iterator[Evidence]:
    for node, place, other in (*arranged_alone(project), *arranged_between(project)):
        text = f"this is put in another order, {other} is not, and both are read by the same number"
        yield sighting(__name__, (node, place), text)
    for scope in project.scopes:
        if scope.kind == "class":
            yield from _attributes(project, scope)
        else:
            yield from _first_labels(project, scope)
            yield from _permuted(project, scope)
            for apart in (*cut_apart(project, scope), *column_shuffled(project, scope)):
                yield sighting(__name__, (apart.node, apart.scope), apart.text)
            yield from _shuffled(project, scope)


def _first_labels(project: Project, scope: Scope) -> Iterator[Evidence]:
    """The labels of the first chunk, for every chunk: they choose the scores that count, or the loss is given them."""
    if scope.owner is not None and project.is_a(scope.owner, "Function"):
        return  # its gradients are wrong: the rule on those tells it
    for again in first_chunk_again(project, scope):
        for above in project.ancestors(again.node, scope):
            call = Call(above, scope) if isinstance(above, ast.Call) else None
            chosen = isinstance(above, ast.Subscript) or (call is not None and call.name in CHOOSERS)
            if chosen or (call is not None and is_loss(project, call)):
                text = f"each chunk meets the first of {written(again.node.value)}, not those that lie beside it"
                yield sighting(__name__, (again.node, scope), text)
                break
            if not isinstance(above, ast.Tuple | ast.Attribute | ast.Call | ast.keyword | ast.Subscript):
                break


def _pairs(scope: Scope) -> Iterator[tuple[str, str, Binding]]:
    """Names that are unpacked together from one call: inputs and labels."""
    together: dict[int, list[Binding]] = {}
    for bindings in scope.bindings.values():
        for binding in bindings:
            if binding.kind == "assign" and len(binding.path) == 1 and isinstance(binding.value, ast.Call):
                together.setdefault(id(binding.node), []).append(binding)
    for group in together.values():
        if len(group) == 2:
            yield group[0].name, group[1].name, group[0]


def _permuted(project: Project, scope: Scope) -> Iterator[Evidence]:
    orders = {
        name
        for name, bindings in scope.bindings.items()
        for b in bindings
        if isinstance(b.value, ast.Call) and last_name(b.value.func) in PERMUTES
    }
    for one, other, _ in _pairs(scope):
        uses = {name: _indexed_by(scope, name, orders) for name in (one, other)}
        if bool(uses[one]) == bool(uses[other]) or not _used_together(project, scope, one, other):
            continue
        moved = one if uses[one] else other
        still = other if uses[one] else one
        reordered = [
            b for b in scope.bindings[moved] if isinstance(b.value, ast.Subscript) and written(b.value.slice) in orders
        ]
        if reordered and written(getattr(reordered[0].value, "value", None)) == moved:
            text = f"{moved} is reordered here, {still} is not"
            yield sighting(__name__, (reordered[0].node, scope), text)


def _indexed_by(scope: Scope, name: str, orders: set[str]) -> bool:
    for node in ast.walk(scope.node):
        if not isinstance(node, ast.Subscript):
            continue
        ordered = any(isinstance(n, ast.Name) and n.id in orders for n in ast.walk(node.slice))
        if ordered and written(node.value) == name:
            return True
    return False


def _used_together(project: Project, scope: Scope, one: str, other: str) -> bool:
    """True if both are used later with the same index, or together in one call or tuple."""
    for node in ast.walk(scope.node):
        if isinstance(node, ast.Tuple | ast.Call):
            items = node.elts if isinstance(node, ast.Tuple) else node.args
            bases = [written(_bare(i)) for i in items]
            if one in bases and other in bases and not isinstance(getattr(node, "ctx", None), ast.Store):
                return True
    return False


def _bare(node: ast.expr) -> ast.expr:
    """The array behind an index, a conversion or a reshape."""
    while True:
        if isinstance(node, ast.Subscript):
            node = node.value
        elif isinstance(node, ast.Call) and last_name(node.func) in CONVERSIONS and node.args:
            node = node.args[0]
        elif (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and isinstance(node.func.value, ast.Call)
        ):
            node = node.func.value
        else:
            return node


def _shuffled(project: Project, scope: Scope) -> Iterator[Evidence]:
    """One of two lists that were made together is shuffled, also under another name or as a parameter."""
    shuffles = [c for c in project.calls("shuffle") if c.scope is scope and len(c.node.args) >= 1]
    if not shuffles or any("seed" in c.name or c.name in ("set_state", "setstate") for c in _behind(shuffles)):
        return
    moved = {written(c.node.args[0]) for c in shuffles}
    together = [{written(a) for a in c.node.args} for c in shuffles]  # scikit-learn's takes several arrays
    for one, other in dict.fromkeys([*((a, b) for a, b, _ in _pairs(scope)), *_given_together(project, scope)]):
        both = {n: _copies(scope, n) for n in (one, other)}
        hit = [n for n in (one, other) if both[n] & moved]
        apart = [c for c in shuffles if len(c.node.args) == 1 and written(c.node.args[0]) in (one, other)]
        if len(hit) == 2 and _each_by_itself(apart) and _used_together(project, scope, one, other):
            text = f"{one} and {other} are shuffled one after the other, each into an order of its own"
            yield sighting(__name__, apart[0], text, proof=apart[1:])
            return
        if len(hit) != 1 or both[one] & both[other]:
            continue
        if any(both[one] & given and both[other] & given for given in together):
            continue
        still = other if hit[0] == one else one
        call = next(c for c in shuffles if written(c.node.args[0]) in both[hit[0]])
        name = written(call.node.args[0])
        if _used_together(project, scope, name, still):
            yield sighting(__name__, call, f"{name} is shuffled alone, {still} is not")
            return


def _behind(shuffles: list[Call]) -> list[Call]:
    """What is called after the first shuffle: a generator that is put back gives the same order again."""
    scope = shuffles[0].scope
    first = min(c.line for c in shuffles)
    inside = [n for n in ast.walk(scope.node) if isinstance(n, ast.Call) and n.lineno > first]
    return [Call(n, scope) for n in inside]


def _each_by_itself(shuffles: list[Call]) -> bool:
    """True for two shuffles of two lists by one and the same generator, which goes on between them."""
    by = {written(c.receiver) for c in shuffles if isinstance(c.receiver, ast.Name | ast.Attribute)}
    return len(shuffles) == 2 and len(by) == 1 and len({written(c.node.args[0]) for c in shuffles}) == 2


def _copies(scope: Scope, name: str) -> set[str]:
    """``name`` and what is a plain copy of it: ``x[:]``, ``list(x)``, ``x.copy()``."""
    found = {name}
    for other, bindings in scope.bindings.items():
        for binding in bindings:
            value = binding.value
            if binding.kind != "assign" or binding.path or value is None:
                continue
            if written(value) in (f"{name}[:]", f"list({name})", f"{name}.copy()", f"copy({name})", name):
                found.add(other)
    return found


def _given_together(project: Project, scope: Scope) -> Iterator[tuple[str, str]]:
    """Parameters whose arguments are, in one and the same place, the two names unpacked from one call."""
    if scope.kind != "function":
        return
    groups: dict[int, list[str]] = {}
    for name in scope.positional:
        for binding in scope.bindings.get(name, ()):
            if binding.kind != "param":
                continue
            for value, place in project.arguments(binding):
                made = project.lookup(value.id, place) if isinstance(value, ast.Name) else []
                for source in made:
                    if source.kind == "assign" and len(source.path) == 1 and isinstance(source.value, ast.Call):
                        groups.setdefault(id(source.node), []).append(name)
    for names in groups.values():
        if len(dict.fromkeys(names)) == 2:
            one, other = dict.fromkeys(names)
            yield one, other


def _attributes(project: Project, owner: Scope) -> Iterator[Evidence]:
    """Two attributes built from the same rows, one of them sorted, and read with the same index."""
    getter = owner.method("__getitem__")
    index = getter.params[-1] if getter is not None and len(getter.params) == 2 else None
    if getter is None or index is None:
        return
    read = {
        n.value.attr
        for n in ast.walk(getter.node)
        if isinstance(n, ast.Subscript) and isinstance(n.value, ast.Attribute) and written(n.slice) == index
    }
    sources: dict[str, tuple[str, bool, Binding]] = {}
    for name in read:
        for binding in owner.attributes.get(name, ()):
            found = _source(binding.value)
            if found is not None:
                sources[name] = (*found, binding)
    for name, (rows, ordered, binding) in sources.items():
        others = [
            n for n, (r, o, b) in sources.items() if n != name and r == rows and not o and b.scope is binding.scope
        ]
        if ordered and others:
            text = f"self.{name} is put in another order than self.{others[0]}, and both are read with the same index"
            yield sighting(__name__, (binding.node, binding.scope), text)


def _source(value: ast.expr | None) -> tuple[str, bool] | None:
    """(what a comprehension runs over, whether its result is reordered)."""
    ordered = False
    while isinstance(value, ast.Call) and last_name(value.func) in (
        "sorted",
        "list",
        "tuple",
        "tensor",
        "array",
        "reversed",
    ):
        ordered = ordered or last_name(value.func) in ("sorted", "reversed")
        value = value.args[0] if value.args else None
    if isinstance(value, ast.ListComp | ast.GeneratorExp) and len(value.generators) == 1:
        return written(value.generators[0].iter), ordered
    return None
