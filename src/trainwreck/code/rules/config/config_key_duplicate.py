"""A configuration has the same key twice in one section.

What: two lines of one YAML or JSON mapping with the same key and different values.
Why it matters: the last one wins without a word, and the first is the one that people see.
When it is fine: where both say the same.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.project import Project
from trainwreck.code.settings.index import of
from trainwreck.code.settings.told import told
from trainwreck.code.settings.tree import Document, Key, Place, node_at
from trainwreck.core.evidence import Evidence

BAD = (
    """
#--- conf.yaml
learning_rate: 1.0e-4
epochs: 3
optimizer: adamw
learning_rate: 5.0e-5  # expect
""",
    """
#--- conf.json
{"batch_size": 8, "model": {"dropout": 0.1, "layers": 2,
  "dropout": 0.5}} // # expect
""",
)
GOOD = """
#--- conf.yaml
defaults: &base
  lr: 1.0e-4
  epochs: 3
one:
  <<: *base
  lr: 2.0e-4
two:
  lr: 1
  optimizer: sgd
  optimizer: sgd
"""


def find(project: Project) -> Iterator[Evidence]:
    for document in of(project).documents:
        for keys, first, second in document.twice:
            if _values(document, keys, first) == _values(document, keys, second):
                continue
            place = Place(document.path, second.line, second.column, second.column + len(second.name))
            text = f"`{second.name}` stands here a second time and wins over line {first.line} without a word"
            proof = [(document.path, first.line, f"{first.name}: …")]
            yield told(__name__, place, text, proof=proof, fix="remove one of the two", key=".".join(keys))


def _values(document: Document, keys: tuple[str, ...], key: Key) -> object:
    above = node_at(document.root, keys[:-1])
    found = [v for k, v in above.pairs if k is key] if above is not None else []
    return (found[0].kind, found[0].text) if found and found[0].kind == "scalar" else id(key)
