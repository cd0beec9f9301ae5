"""A tree is taken apart into its programs: what belongs together stays together, what does not answers for itself."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from trainwreck.checking import units
from trainwreck.checking.check import check
from trainwreck.code import partition
from trainwreck.code.read import build
from trainwreck.code.rule import Rule, rules
from trainwreck.code.witness import witness
from trainwreck.core.source import Source, from_bytes

TRAIN = """
import torch
from torch import nn
model = nn.Linear(4, 2)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
def train(loader):
    for x, y in loader:
        loss = nn.functional.cross_entropy(model(x).softmax(-1), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
"""


def sources(files: Mapping[str, str]) -> list[Source]:
    return [from_bytes(name, text.encode()) for name, text in files.items()]


def parts(files: Mapping[str, str]) -> list[list[str]]:
    return [[s.name for s in part] for part in partition.programs(sources(files))]


def test_scripts_that_do_not_import_each_other_are_programs_of_their_own() -> None:
    assert parts({"a.py": "import torch", "b.py": "import torch"}) == [["a.py"], ["b.py"]]


@pytest.mark.parametrize(
    "line",
    [
        "import net",
        "import net as n, os",
        "from net import Net",
        "from .net import Net",
        "from . import net",
        "from src import (\n    data,\n    net,  # the model\n)",
        "from src.net import Net",
        "if True:\n    import src.net",
    ],
)
def test_an_import_makes_one_program(line: str) -> None:
    found = parts({"src/train.py": line, "src/net.py": "class Net: ...", "src/other.py": "import torch"})
    assert found == [["src/train.py", "src/net.py"], ["src/other.py"]]


def test_the_nearest_of_two_modules_with_one_name_is_meant() -> None:
    files = {"a/net.py": "", "a/train.py": "import net", "b/net.py": "", "b/train.py": "import net"}
    assert parts(files) == [["a/net.py", "a/train.py"], ["b/net.py", "b/train.py"]]


def test_a_notebook_imports_like_a_script() -> None:
    book = '{"cells": [{"cell_type": "code", "source": ["import torch\\n", "from net import Net\\n"]}]}'
    assert parts({"try.ipynb": book, "net.py": ""}) == [["try.ipynb", "net.py"]]


def test_what_is_imported_by_a_computed_name_lies_below() -> None:
    files = {"zoo/load.py": "import importlib\nimportlib.import_module(name)", "zoo/nets/a.py": "", "b.py": ""}
    assert parts(files) == [["zoo/load.py", "zoo/nets/a.py"], ["b.py"]]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("run.sh", "torchrun train.py --lr 1"),
        ("go.sh", "python -m train --lr 1"),
        ("net.yaml", "_target_: train.Net\n"),
        ("conf/exp.yaml", "program: train.py\n"),
    ],
)
def test_a_configuration_or_launch_script_goes_with_what_it_names(name: str, text: str) -> None:
    found = parts({"train.py": "class Net: ...", "other.py": "import torch", name: text})
    assert found == [["train.py", name], ["other.py"]]


def test_a_program_goes_with_the_configurations_that_it_names() -> None:
    files = {
        "train.py": "import yaml\nyaml.safe_load(open('conf/a.yaml'))",
        "app.py": "import hydra\n@hydra.main(config_path='settings')\ndef main(cfg): ...",
        "conf/a.yaml": "lr: 1",
        "settings/model/b.yaml": "lr: 1",
    }
    assert parts(files) == [["train.py", "conf/a.yaml"], ["app.py", "settings/model/b.yaml"]]


def test_a_configuration_that_nothing_names_holds_its_neighbours_together() -> None:
    files = {"a.py": "", "b.py": "", "conf/x.yaml": "learning_rate: 1", ".github/w.yml": "train: 1"}
    assert parts(files) == [["a.py", "b.py", "conf/x.yaml"], [".github/w.yml"]]


def test_pins_count_for_every_program() -> None:
    files = {"a.py": "", "b.py": "", "requirements.txt": "torch==2.1", "setup.sh": "pip install trl==0.9"}
    assert parts(files) == [["a.py", "requirements.txt", "setup.sh"], ["b.py", "requirements.txt", "setup.sh"]]


def test_a_program_that_is_too_large_is_cut_by_folders(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partition, "MAX_BYTES", 100)
    files = {f"lib/{folder}/{n}.py": "from lib import base\n" + "#" * 20 for folder in "abc" for n in range(2)}
    found = parts({"lib/base.py": "#" * 20, **files})
    assert sorted(name for part in found for name in part) == sorted(["lib/base.py", *files])
    assert all(len(part) <= 3 for part in found)
    assert ["lib/b/0.py", "lib/b/1.py"] in found


SEVERAL = [(rule, text) for rule in rules() for text in (*rule.bad, *rule.good) if "#--- " in text]


@pytest.mark.parametrize(("rule", "text"), SEVERAL, ids=lambda v: v.sign if isinstance(v, Rule) else "")
def test_taking_apart_loses_nothing_of_an_example_of_several_files(rule: Rule, text: str) -> None:
    pieces = (part.partition("\n") for part in text.split("#--- ")[1:])
    files = sources({name.strip(): body for name, _, body in pieces})
    whole = {(e.where.path, e.where.line) for e in witness(build(files)).evidence if e.sign == rule.sign}
    apart = {(e.where.path, e.where.line) for e in units.look(files, jobs=1).evidence if e.sign == rule.sign}
    assert apart == whole


def test_a_finding_in_a_file_of_several_programs_is_told_once() -> None:
    files = {"a.py": "import torch", "b.py": "import torch", "requirements.txt": "torch==2.0\ntransformers==5.24.0\n"}
    seen = [(e.sign, e.where.path, e.where.line) for e in units.look(sources(files)).evidence]
    assert len(seen) == len(set(seen))


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    project = tmp_path / "project"
    project.mkdir()
    for number in range(6):
        (project / f"train_{number}.py").write_text(TRAIN + f"# {number}\n")
    monkeypatch.chdir(project)
    return project


def test_several_processes_give_the_same_bytes_as_one(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(units, "WORTH_A_PROCESS", 10)
    (tree / "broken.py").write_text("import torch\ndef f(:\n")
    one, two = (check(["."], use_cache=False, jobs=n).result for n in (1, 3))
    assert one == two
    assert len([f for f in one.findings if f.id == "softmax-before-cross-entropy"]) == 6


def test_only_what_changed_is_looked_at_again(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[str] = []
    real = units._look_at

    def counted(job: units.Job) -> units.Seen:
        looked.extend(name for name, _ in job[0])
        return real(job)

    monkeypatch.setattr(units, "_look_at", counted)
    first = check(["."]).result
    assert len(looked) == 6
    looked.clear()
    (tree / "train_3.py").write_text("\n" + TRAIN)
    second = check(["."]).result
    assert looked == ["train_3.py"]
    assert [f.path for f in first.findings] == [f.path for f in second.findings]
    assert check(["."], use_cache=False).result.to_json() == second.to_json()


def test_a_damaged_store_of_answers_is_worked_out_again(tree: Path, tmp_path: Path) -> None:
    before = check(["."]).result
    for path in (tmp_path / "cache/trainwreck/check").iterdir():
        path.write_text('{"": "dict", "items": [["x", 3]]}')
    assert check(["."]).result.to_json() == before.to_json()
