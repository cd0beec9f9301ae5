"""What the README shows is what the tool says, and what it names exists."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

from trainwreck.cli import cli

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_demo_is_the_real_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    spec = importlib.util.spec_from_file_location("update_readme", ROOT / "tools/update_readme.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.updated(README) == README, "run tools/update_readme.py"


def test_every_verb_that_the_readme_uses_exists() -> None:
    for verb in re.findall(r"^trainwreck (\w+)", README, re.MULTILINE):
        assert verb in cli.commands


def test_every_file_that_the_readme_links_exists() -> None:
    for target in re.findall(r"\]\((?!https?:)([^)#]+)\)", README):
        assert (ROOT / target).exists(), target
