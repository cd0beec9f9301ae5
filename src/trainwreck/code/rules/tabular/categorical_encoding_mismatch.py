"""An encoder is fitted again on the test data.

What: one encoder is given ``fit_transform`` for the training part and ``fit_transform`` again for the test part; or an
embedding is asked about numbers of another dict (``{v: i for i, v in enumerate(set(column))}``) than in training.
Why it matters: the codes are counted anew: the same category has another number at test time.
When it is fine: for separate columns; with ``transform`` on the test part.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import Call, written
from trainwreck.code.facts import HELD, TRAIN, bound_to, names_in, refits
from trainwreck.code.mappings import made_apart
from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.numbering import counted_anew
from trainwreck.code.rule import sighting
from trainwreck.code.scopes import Scope
from trainwreck.core.evidence import Evidence

BAD = (
    """
from sklearn.preprocessing import LabelEncoder
def load(train, test):
    enc = LabelEncoder()
    train["city"] = enc.fit_transform(train["city"])
    test["city"] = enc.fit_transform(test["city"])  # expect
""",
    """
from sklearn.preprocessing import OrdinalEncoder
def load(X_train, X_test):
    X_train = OrdinalEncoder().fit_transform(X_train)
    X_test = OrdinalEncoder().fit_transform(X_test)  # expect
    return X_train, X_test
""",
    """
import pandas as pd
def load(train, test):
    for name in ("city", "shop"):
        train[name], seen = pd.factorize(train[name])
        test[name] = pd.factorize(test[name])[0]  # expect
    return train, test
""",
    """
class Birds:
    def __init__(self, rows):
        self.rows, self.number = rows, {}
        for _, name in rows:
            if name not in self.number:
                self.number[name] = len(self.number)
    def __getitem__(self, k):
        sound, name = self.rows[k]
        return sound, self.number[name]
def main(rows, step):
    train = Birds(rows[:900])
    held_test = Birds(rows[900:])  # expect
    return train, held_test
""",
)
GOOD = """
from sklearn.preprocessing import LabelEncoder
def load(train, test, frame):
    enc = LabelEncoder()
    train["city"] = enc.fit_transform(train["city"])
    test["city"] = enc.transform(test["city"])
    for column in frame:
        frame[column] = LabelEncoder().fit_transform(frame[column])
    train["shop"], seen = train["shop"].factorize()
    test["shop"] = seen.get_indexer(test["shop"])
    test["other"] = LabelEncoder().fit_transform(test["other"])
"""
ENCODERS = pattern(r"Encoder$|LabelBinarizer|Vectorizer$")


def find(project: Project) -> Iterator[Evidence]:
    words = any(True for _ in made_apart(project))  # told by the name of that fault
    yield from further(__name__, project, _found(project), *(() if words else (counted_anew,)))


def _found(project: Project) -> Iterator[Evidence]:
    yield from _refitted(project)
    yield from _factorised(project)
    yield from _each_its_own(project)


def _each_its_own(project: Project) -> Iterator[Evidence]:
    """A data set that numbers names as it meets them, made once for the training and once for what is held out."""
    for scope in project.scopes:
        owner = scope.owner
        if scope.name != "__init__" or owner is None or owner.method("__getitem__") is None:
            continue
        grown = next(((n, t) for n in ast.walk(scope.node) if (t := _grown(n, scope)) is not None), None)
        made = [c for c in project.calls(owner.name) if project.resolve(c.node.func, c.scope) is owner]
        if grown is None or len(made) < 2 or _handed_on(project, owner, grown[1]):
            continue
        named = [(c, _name(project, c)) for c in made]
        held = [c for c, name in named if HELD.search(name) and not TRAIN.search(name)]
        others = [c for c, name in named if TRAIN.search(name)]
        if held and others and len(held[0].node.args) == len(others[0].node.args):
            place = (scope.module.path, getattr(grown[0], "lineno", 0), written(grown[0])[:80])
            text = "names are numbered as they are met, here in another order than in the training data"
            yield sighting(__name__, held[0], text, proof=[others[0], place])


def _name(project: Project, call: Call) -> str:
    """The name that an object is bound to, also of several: ``train, test = Rows(a), Rows(b)``."""
    statement = project.statement(call.node, call.scope)
    if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Tuple):
        target = statement.targets[0]
        pairs = zip(target.elts, statement.value.elts, strict=False) if isinstance(target, ast.Tuple) else ()
        return next((written(t) for t, v in pairs if v is call.node), "")
    return bound_to(project, call)


def _grown(node: ast.AST, scope: Scope) -> str | None:
    """The attribute of ``self`` that gives each name it does not have yet the next number."""
    table = None
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "setdefault":
        table, number = node.func.value, node.args[1] if len(node.args) > 1 else None
    elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
        table, number = node.targets[0].value, node.value
    if (
        not isinstance(table, ast.Attribute)
        or written(table.value) != scope.params[0]
        or written(number) != (f"len({written(table)})")
    ):
        return None
    return table.attr


def _handed_on(project: Project, owner: Scope, table: str) -> bool:
    """True where the numbers are taken from, or put into, an object of the class elsewhere."""
    inside = {id(n) for n in ast.walk(owner.node)}
    nodes = [n for w in project.walked.values() for s in w.scopes for n in s.nodes if id(n) not in inside]
    methods = {id(n.func) for n in nodes if isinstance(n, ast.Call)}
    return any(isinstance(n, ast.Attribute) and n.attr == table and id(n) not in methods for n in nodes)


def _factorised(project: Project) -> Iterator[Evidence]:
    """``factorize`` numbers what it meets first with 0: on the held-out rows alone, other numbers than in training."""
    coded = [c for c in project.calls("factorize", "fit_transform", "transform", "map") if _coded(c) is not None]
    for call in coded:
        held = _coded(call)
        if call.name != "factorize" or held is None or not names_in(held, HELD) or names_in(held, TRAIN):
            continue
        for other in coded:
            mine = _coded(other)
            twin = (
                mine is not None
                and names_in(mine, TRAIN)
                and TRAIN.sub("", written(mine)) == HELD.sub("", written(held))
            )
            if other.scope is call.scope and twin:
                yield sighting(__name__, call, "the codes are counted anew on the test data", proof=[other])
                break


def _coded(call: Call) -> ast.expr | None:
    """The column that gets codes."""
    if call.name == "factorize" and not call.node.args:
        return call.receiver
    return call.receiver if call.name == "map" else call.node.args[0] if call.node.args else None


def _refitted(project: Project) -> Iterator[Evidence]:
    for call, other in refits(project, ENCODERS):
        yield sighting(__name__, call, "the codes are counted anew on the test data", proof=[other])
