"""Hydra's composition. The expected keys are those that hydra-core 1.3.8 gave for the same files."""

from __future__ import annotations

import pytest

from trainwreck.code.project import Project
from trainwreck.code.read import build
from trainwreck.code.settings.hydra import compose, mains, overrides
from trainwreck.code.settings.tree import Place
from trainwreck.core.source import from_bytes

SCRIPT = '@hydra.main(version_base=None, config_path="conf", config_name="config")\ndef main(cfg):\n    pass\n'
FILES = {
    "train.py": "import hydra\n" + SCRIPT,
    "conf/model/small.yaml": "defaults:\n  - head: linear\nwidth: 8\n",
    "conf/model/large.yaml": "# @package _global_\nmodel:\n  width: 64\nbatch: 1\n",
    "conf/model/head/linear.yaml": "classes: 10\n",
    "conf/model/head/deep.yaml": "# @package x.y\nlayers: 3\n",
    "conf/opt/adam.yaml": "lr: 0.1\n",
}
COMPOSED = [
    ("defaults:\n  - model: small\n", [], "model model.head model.head.classes model.width seed"),
    ("defaults:\n  - model: large\n", [], "batch model model.width seed"),
    ("defaults:\n  - model: small\n", ["model=large"], "batch model model.width seed"),
    ("defaults:\n  - opt@inner.place: adam\n", [], "inner inner.place inner.place.lr seed"),
    ("defaults:\n  - opt@_global_: adam\n", [], "lr seed"),
    ("", ["+opt=adam"], "opt opt.lr seed"),
    ("defaults:\n  - optional local: mine\n", [], "seed"),
    ("defaults:\n  - model/head: deep\n", [], "seed x x.y x.y.layers"),
    ("defaults:\n  - opt/adam\n", [], "opt opt.lr seed"),
]


@pytest.mark.parametrize(("first", "words", "keys"), COMPOSED)
def test_the_composed_keys_are_those_of_hydra(first: str, words: list[str], keys: str) -> None:
    files = {**FILES, "conf/config.yaml": f"{first}seed: 1\n"}
    project = Project(build([from_bytes(name, text.encode()) for name, text in files.items()]))
    chosen = list(overrides([(word, Place("run.sh", 1, 1, 2)) for word in words]))
    composed = compose(project, next(mains(project)), chosen)
    assert composed is not None
    assert composed.complete
    assert sorted(".".join(k) for k in composed.keys) == keys.split()


CYCLE = {
    "conf/config.yaml": "defaults:\n  - a\n",
    "conf/a.yaml": "defaults:\n  - b\n",
    "conf/b.yaml": "defaults:\n  - a\n",
}


def test_files_that_name_one_another_end() -> None:
    project = Project(build([from_bytes(n, t.encode()) for n, t in {**FILES, **CYCLE}.items()]))
    composed = compose(project, next(mains(project)))
    assert composed is not None
    assert not composed.complete


def test_what_is_not_here_makes_it_incomplete() -> None:
    files = {**FILES, "conf/config.yaml": "defaults:\n  - base_schema\n  - model: ${choice}\nseed: 1\n"}
    project = Project(build([from_bytes(n, t.encode()) for n, t in files.items()]))
    composed = compose(project, next(mains(project)))
    assert composed is not None
    assert not composed.complete
