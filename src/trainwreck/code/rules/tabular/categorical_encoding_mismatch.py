"""An encoder is fitted again on the test data.

What: one encoder is given ``fit_transform`` for the training part and ``fit_transform`` again for the test part; or an
embedding is asked about numbers of another dict (``{v: i for i, v in enumerate(set(column))}``) than in training.
Why it matters: the codes are counted anew: the same category has another number at test time.
When it is fine: for separate columns; with ``transform`` on the test part.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.facts import (
    refits,
)
from trainwreck.code.mappings import made_apart
from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.numbering import counted_anew
from trainwreck.code.rule import sighting
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
)
GOOD = """
from sklearn.preprocessing import LabelEncoder
def load(train, test, frame):
    enc = LabelEncoder()
    train["city"] = enc.fit_transform(train["city"])
    test["city"] = enc.transform(test["city"])
    for column in frame:
        frame[column] = LabelEncoder().fit_transform(frame[column])
    test["other"] = LabelEncoder().fit_transform(test["other"])
"""
ENCODERS = pattern(r"Encoder$|LabelBinarizer|Vectorizer$")


def find(project: Project) -> Iterator[Evidence]:
    words = any(True for _ in made_apart(project))  # told by the name of that fault
    yield from further(__name__, project, _refitted(project), *(() if words else (counted_anew,)))


def _refitted(project: Project) -> Iterator[Evidence]:
    for call, other in refits(project, ENCODERS):
        yield sighting(__name__, call, "the codes are counted anew on the test data", proof=[other])
