"""Where a value that is not finite was born, found by itself in the loops of frameworks and in several processes."""

from __future__ import annotations

import importlib
import json
import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from births import expected
from forked import in_fork, record, recorded
from framework_births import PROGRAMS, RANKS
from test_replay import origins, told

FRAMEWORKS = {"lightning": "lightning.pytorch", "HF": "transformers.trainer", "Accelerate": "accelerate"}


def test_op_and_line_of_birth_are_right_under_frameworks(tmp_path: Path) -> None:
    wrong = {}
    for number, (name, source) in enumerate(PROGRAMS.items()):
        framework = FRAMEWORKS.get(name.split()[0].rstrip(","))
        try:
            importlib.import_module(framework or "torch")  # once, for all programs
        except ModuleNotFoundError:
            continue
        folder = tmp_path / str(number)
        printed = recorded(source, folder)
        found = origins(folder)
        line, kind, op = expected(source)
        if not found:
            wrong[name] = f"no origin; printed {printed[-600:]}"
            continue
        said_line, said_kind, names = told(found[0])
        if (said_line, said_kind) != (line, kind) or op not in {"*", *names}:
            wrong[name] = f"{found[0].get('text')} (expected {kind} {op} at {line})"
    assert not wrong


def test_the_rank_that_broke_says_where_and_the_other_says_that_it_came_from_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch = pytest.importorskip("torch")
    if not (torch.distributed.is_available() and torch.distributed.is_gloo_available()):
        pytest.skip("torch was built without gloo")
    monkeypatch.setenv("STORE", str(tmp_path / "store"))

    def both() -> None:
        other = os.fork()
        os.environ["RANK"] = "0" if other else "1"
        record(None)
        if not other:
            os._exit(0)
        os.waitpid(other, 0)

    printed = in_fork(RANKS, tmp_path, both)
    found = {o["rank"]: o for o in reversed(origins(tmp_path))}
    assert set(found) == {0, 1}, printed[-2000:]
    line, kind, op = expected(RANKS)
    assert (found[1]["line"], found[1]["kind"], found[1]["call"]) == (line, kind, op)
    assert found[0]["kind"] == "communication"
    assert json.loads((tmp_path / "rec/capture-6-rank1/capture.json").read_text())["rank"] == 1
