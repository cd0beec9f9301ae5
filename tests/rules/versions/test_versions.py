"""Releases, pins and what a program asks of them: Python, notebooks, YAML, shell and requirements together."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from trainwreck import engine
from trainwreck.catalogue import releases, specifiers
from trainwreck.core.results import Finding
from trainwreck.core.source import from_bytes

ROOT = releases.ROOT
ARGUMENTS = """from transformers import TrainingArguments
args = TrainingArguments("out", evaluation_strategy="epoch")
"""


def found(files: Mapping[str, str], targets: Mapping[str, str] | None = None) -> list[Finding]:
    result = engine.check([from_bytes(name, text.encode()) for name, text in files.items()], targets=targets)
    families = (
        "hf-",
        "trl-",
        "vllm-",
        "lightning-",
        "datasets-",
        "removed-api",
        "bad-kwarg",
        "version-",
        "numpy-",
        "torch-",
    )
    return [f for f in result.findings if f.id.startswith(families)]


def ids(files: Mapping[str, str], targets: Mapping[str, str] | None = None) -> list[tuple[str, str]]:
    return [(f.id, f.severity) for f in found(files, targets)]


@pytest.mark.parametrize(
    ("name", "pin"),
    [
        ("requirements.txt", "transformers==4.57.1  # stays"),
        ("requirements.txt", "accelerate\ntransformers[torch] >= 4.51"),
        ("requirements/base.txt", "transformers==5.0.0"),
        ("requirements.in", "transformers~=4.57.0"),
        ("uv.lock", '[[package]]\nname = "transformers"\nversion = "4.57.1"\n'),
        ("poetry.lock", '[[package]]\nname = "transformers"\nversion = "4.57.1"\ndescription = "x"\n'),
        (
            "pyproject.toml",
            "[project]\ndependencies = [\n  \"transformers[torch]>=4.52,<5; python_version > '3.8'\",\n]\n",
        ),
        ("pyproject.toml", '[tool.poetry.dependencies]\ntransformers = { version = "^4.52", extras = ["torch"] }\n'),
        ("environment.yml", "dependencies:\n  - python=3.11\n  - pip:\n    - transformers==4.57.1\n"),
        ("environment.yaml", "dependencies:\n  - conda-forge::transformers=4.57\n"),
        ("setup.sh", "set -e\npip install -U 'transformers==4.57.1' trl\n"),
    ],
)
def test_a_pin_that_lacks_the_argument_makes_it_critical(name: str, pin: str) -> None:
    assert ids({"train.py": ARGUMENTS, name: pin}) == [("hf-eval-strategy-renamed", "critical")]


@pytest.mark.parametrize(
    ("name", "pin"),
    [
        ("requirements.txt", "transformers==4.40.2"),
        ("requirements.txt", "transformers==4.30.0"),
        ("requirements.txt", "transformers<4.46"),
        ("requirements.txt", "transformers==4.44.0.dev0 ; sys_platform == 'linux'"),
        ("uv.lock", '[[package]]\nname = "transformers"\nversion = "4.45.2"\n'),
        ("pyproject.toml", '[tool.poetry.dependencies]\ntransformers = "4.40.1"\n'),
    ],
)
def test_a_pin_that_has_the_argument_is_left_alone(name: str, pin: str) -> None:
    assert ids({"train.py": ARGUMENTS, name: pin}) == []


def test_without_a_pin_it_is_a_warning_that_names_the_releases() -> None:
    (finding,) = found({"train.py": ARGUMENTS})
    assert finding.severity == "warning"
    assert re.search(r"from transformers 4\.5\d on \(4\.\d+ still had it\); write `eval_strategy`", finding.message)
    assert finding.fix is not None
    assert finding.fix.safe
    assert 'eval_strategy="epoch"' in finding.fix.edits[0].text


def test_a_pin_that_allows_both_is_a_warning() -> None:
    assert ids({"train.py": ARGUMENTS, "requirements.txt": "transformers>=4.40"}) == [
        ("hf-eval-strategy-renamed", "warning")
    ]


def test_the_target_that_was_asked_for_wins_over_the_pin() -> None:
    files = {"train.py": ARGUMENTS, "requirements.txt": "transformers==4.40.2"}
    assert ids(files, {"transformers": "4.57"}) == [("hf-eval-strategy-renamed", "critical")]
    assert ids({"train.py": ARGUMENTS}, {"transformers": "4.46"}) == []


def test_the_nearest_requirements_count() -> None:
    files = {
        "a/train.py": ARGUMENTS,
        "a/requirements.txt": "transformers==4.40.2",
        "requirements.txt": "transformers==5.0.0",
    }
    assert ids(files) == []
    assert ids({"a/train.py": ARGUMENTS, "b/requirements.txt": "transformers==4.40.2"}) != []


def test_a_feature_newer_than_the_pin() -> None:
    new = 'from transformers import TrainingArguments\nTrainingArguments("o", eval_strategy="epoch")\n'
    (finding,) = found({"train.py": new, "requirements.txt": "transformers==4.38.2"})
    assert (finding.id, finding.severity) == ("removed-api", "critical")
    assert "before transformers 4.41" in finding.message
    assert found({"train.py": new}) == []


def test_a_notebook_is_held_against_what_it_installs() -> None:
    cells = ["!pip install -q trl==0.9.6 transformers==4.40.2", ARGUMENTS, "from trl import SFTTrainer"]
    book = {"cells": [{"cell_type": "code", "source": text} for text in cells], "nbformat": 4, "nbformat_minor": 5}
    assert ids({"n.ipynb": json.dumps(book)}) == []
    book["cells"][0]["source"] = "%pip install transformers==4.57.1"  # type: ignore[index]
    (finding,) = found({"n.ipynb": json.dumps(book)})
    assert (finding.id, finding.severity, finding.cell) == ("hf-eval-strategy-renamed", "critical", 2)


SHELL = """#!/bin/bash
# vllm serve m --guided-decoding-backend x
torchrun --nproc_per_node 8 train.py \\
  --output_dir out \\
  --evaluation_strategy steps
vllm serve m --guided-decoding-backend outlines --max-model-len 4096
python other.py --no_cuda --warmup_ratio 0.1
"""
PARSER = "from transformers import HfArgumentParser, TrainingArguments\np = HfArgumentParser((TrainingArguments,))\n"
YAML = "output_dir: y\nevaluation_strategy: epoch\nmax_seq_length: 2048\npacking: true\nlearning_rate: 2.0e-5\n"


def test_flags_of_launch_scripts() -> None:
    lines = [(f.id, f.line) for f in found({"run.sh": SHELL, "train.py": PARSER})]
    assert lines == [("hf-eval-strategy-renamed", 5), ("vllm-guided-decoding-removed", 6)]
    assert ids({"run.sh": "python train.py --no_cuda --evaluation_strategy x\n", "train.py": "import argparse\n"}) == []


def test_keys_of_configurations() -> None:
    found_here = found({"recipe.yaml": YAML})
    assert [(f.id, f.line) for f in found_here] == [("hf-eval-strategy-renamed", 2), ("trl-max-seq-length-renamed", 3)]
    assert found_here[0].fix is not None
    assert found_here[0].fix.edits[0].text == "eval_strategy: epoch"
    assert ids({"recipe.yaml": YAML, "requirements.txt": "trl==0.11.4\ntransformers==4.44.2"}) == []
    assert ids({"app.yaml": "output_dir: x\nevaluation_strategy: mine\n"}) == []


def test_pins_that_cannot_live_together() -> None:
    (finding,) = found({"requirements.txt": "transformers==4.57.6\ntokenizers==0.15.0\n"})
    assert (finding.id, finding.line) == ("version-incompatibility", 2)
    assert found({"requirements.txt": "transformers==4.57.6\ntokenizers==0.22.1\ntorch>=2\n"}) == []


def test_torch_functions_by_the_pinned_release() -> None:
    code = "import torch\nx = torch.symeig(torch.eye(2))\n"
    assert ids({"t.py": code, "requirements.txt": "torch==1.8.1"}) == []
    assert ids({"t.py": code, "requirements.txt": "torch==1.12"}) == [("torch-deprecated", "suggestion")]
    assert ids({"t.py": code, "requirements.txt": "torch==2.4.0"}) == [("torch-removed", "critical")]
    assert ids({"t.py": code}) == [("torch-removed", "warning")]


def test_every_rename_is_true_of_the_tables() -> None:
    """Old names of arguments and classes are in some release and not in the newest; new ones are in the newest."""
    wrong = []
    for entry in releases.renames():
        home = releases.table(entry.package)
        assert home is not None
        if entry.kind == "name" and not entry.since:
            for old in entry.names:
                history = home.name(old)
                if history is not None and history.state(home.newest) == "there":
                    wrong.append((entry.package, old))
        owners = [o for o in entry.owners if home.signature(o) is not None] if entry.kind == "argument" else []
        for owner in owners:
            at = {name: t.newest for name in set(releases.TABLES.values()) if (t := releases.table(name)) is not None}
            for old, new in entry.names.items():
                if releases.parameter(home, owner, old, at).state == "there" and owner == owners[0]:
                    wrong.append((entry.package, owner, old))
                if entry.safe and new and releases.parameter(home, owner, new, at).state == "gone":
                    wrong.append((entry.package, owner, new))
    assert not wrong


def test_every_function_of_torchfix_is_known() -> None:
    for name in ("torch.solve", "torch.qr", "torch.symeig", "torch.norm", "torch.lu_solve", "functorch.hessian"):
        assert name in releases.torch_changes()


@pytest.mark.parametrize(
    ("specifier", "version", "allowed"),
    [("~=4.46", "4.57.1", True), ("~=4.46.1", "4.47.0", False), (">=4.40,<5,!=4.45.*", "4.45.2", False),
     ("^0.9", "0.10.1", False), ("==4.46.*", "4.46.3", True), (">4.46", "4.46", False), ("", "1.0", True)],
)  # fmt: skip
def test_specifiers(specifier: str, version: str, allowed: bool) -> None:
    assert specifiers.allows(specifier, specifiers.parse(version)) is allowed


def test_tables_are_small_and_loaded_only_when_needed() -> None:
    assert sum(path.stat().st_size for path in Path(ROOT).iterdir()) < 2 << 20
    releases.table.cache_clear()
    found({"a.py": "import os\nprint(os.getcwd())\n", "requirements.txt": "numpy==1.26\n"})
    assert releases.table.cache_info().currsize == 0
