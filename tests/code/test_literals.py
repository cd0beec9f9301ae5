"""Numbers of a run are found where the program writes them: by the name beside them, else by being the only one."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainwreck.code.literals import written_as
from trainwreck.code.project import Project
from trainwreck.code.read import build
from trainwreck.collect import collect

NAMES = ("weight_?decay|^wd$", "decay")


def line(tmp_path: Path, text: str, value: float, words: tuple[str, ...] = NAMES) -> int | None:
    (tmp_path / "train.py").write_text(text)
    found = written_as(Project(build(collect([tmp_path / "train.py"]).sources)), value, words)
    return found.line if found is not None else None


@pytest.mark.parametrize(
    "text",
    [
        "a = 7.0\ncfg = {'optim': {'wd': 7.0}}\n",
        "class A:\n    x = 7.0\nclass B:\n    weight_decay: float = 7.0\n",
        "rate = 7.0\nparser.add_argument('--weight-decay', type=float, default=7.0)\n",
        "k = 7.0\ndef f(lr=1.0, weight_decay=7.0):\n    pass\n",
        "k = 7.0\nopt = AdamW(p, weight_decay=7.0)\n",
    ],
)
def test_the_name_beside_a_number_decides(text: str, tmp_path: Path) -> None:
    wanted = max(n for n, row in enumerate(text.splitlines(), 1) if "7.0" in row)
    assert line(tmp_path, text, 7.0) == wanted


def test_the_only_one_is_found_without_a_name(tmp_path: Path) -> None:
    assert line(tmp_path, "a = 1\nb = f(-0.0375)\n", -0.0375) == 2


def test_common_numbers_and_several_need_a_name(tmp_path: Path) -> None:
    assert line(tmp_path, "a = 0.5\n", 0.5) is None
    assert line(tmp_path, "a = 7.0\nb = 7.0\n", 7.0) is None
    assert line(tmp_path, "a = 7.0\n", 8.0) is None
