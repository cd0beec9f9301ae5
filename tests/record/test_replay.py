"""The replay names the op and the line at which a value that is not finite was born, in programs of many shapes."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from births import PROGRAMS, expected
from forked import plain, recorded

from trainwreck.engine import diagnose

DIFFERENT = 0.05
"""Share of programs in which another op or line may be named."""


def origins(folder: Path) -> list[dict[str, Any]]:
    """The origins of a recording, the first alarm's first."""
    found = [json.loads(p.read_text()) for p in folder.glob("rec/capture-*/origin.json")]
    return sorted(found, key=lambda o: o["step"])


def told(origin: dict[str, Any]) -> tuple[Any, Any, set[Any]]:
    """(line, kind, names that stand for the op) of an origin."""
    names = {origin.get("call"), origin.get("op"), origin.get("why")}
    names |= {d["name"] for d in origin.get("data", [])}
    return origin.get("line"), origin.get("kind"), names


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str | None]:
    """For every program None if op, kind and line are right, else what was said."""
    found: dict[str, str | None] = {}
    for number, (name, source) in enumerate(PROGRAMS.items()):
        folder = tmp_path_factory.mktemp(f"program{number}")
        printed = recorded(source, folder)
        answer = origins(folder)
        line, kind, op = expected(source)
        if not answer:
            found[name] = f"no origin; printed {printed[-400:]}"
            continue
        said_line, said_kind, names = told(answer[0])
        right = said_line == line and said_kind == kind and op in {"*", *names}
        found[name] = None if right else f"{answer[0].get('text')} (expected {kind} {op} at {line})"
    return found


def test_there_are_enough_programs() -> None:
    assert len(PROGRAMS) >= 30


def test_op_and_line_of_birth_are_right(answers: dict[str, str | None]) -> None:
    wrong = {name: said for name, said in answers.items() if said is not None}
    assert len(wrong) <= DIFFERENT * len(answers), wrong


def test_a_mask_that_softmax_swallows_is_no_birth(tmp_path: Path) -> None:
    source = (
        PROGRAMS["masked attention, empty row"]
        .replace("ids[40] = 0", "ids[:, 4] = 0")
        .replace(
            "self.head(self.attn(self.emb(ids), ids.eq(0)).mean(1))",
            "self.head(self.attn(self.emb(ids), ids.eq(0)).mean(1)) / (ids[:, :1] - 1).float()",
        )
    )
    recorded(source, tmp_path)
    assert origins(tmp_path)[0]["kind"] == "division"


def test_data_is_drawn_once_only(tmp_path: Path) -> None:
    source = PROGRAMS["data with NaN in a column"].replace("for xb, yb in", "drawn = 0\nfor xb, yb in")
    recorded(source.replace("    loss = F", "    drawn += 1\n    loss = F") + "\nprint('drawn', drawn)\n", tmp_path)
    assert "drawn 8" in (tmp_path / "out.txt").read_text()


def test_rows_columns_and_the_array_behind_the_batch_are_named(tmp_path: Path) -> None:
    recorded(PROGRAMS["data with NaN in a column"], tmp_path)
    origin = origins(tmp_path)[0]
    assert origin["data"][0]["rows"] == [2]
    assert origin["data"][0]["columns"] == [2]
    assert origin["sources"][0]["name"] == "x"


def test_a_healthy_run_leaves_nothing(tmp_path: Path) -> None:
    recorded(PROGRAMS["plain loop, log of zero"].replace("4000", "1"), tmp_path)
    assert not origins(tmp_path)


@pytest.mark.parametrize("name", ["masked attention, empty row", "slope of sqrt at zero", "data with NaN in a column"])
def test_the_diagnosis_stands_on_the_origin(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recorded(PROGRAMS[name], tmp_path)
    monkeypatch.chdir(tmp_path)
    first = diagnose(["rec"], code=["train.py"]).root_causes[0]
    assert any(e.sign.startswith("origin-") for e in first.evidence)
    assert first.confidence > 0.9
    assert first.location is not None
    assert first.location.line is not None
    assert first.location.path == "train.py"
    line = 8 if "data" in name else expected(PROGRAMS[name])[0]
    assert abs(first.location.line - line) <= 2


CATEGORICAL = """\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(6, 6)
    def forward(self, v):
        return self.a(v).exp().exp()
net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
net.a.weight.data[0, 0] = float("nan")
for i in range(2):
    loss = net(x).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""


def test_damaged_weights_are_told_as_such(tmp_path: Path) -> None:
    head = PROGRAMS["plain loop, log of zero"].split("model =")[0]
    recorded(head + CATEGORICAL, tmp_path)
    origin = origins(tmp_path)[0]
    assert (origin["kind"], origin["module"]) == ("weights", "Net.a.weight")


@pytest.mark.parametrize(
    "name", ["plain loop, log of zero", "recurrent net with a carried state", "two networks against each other"]
)
def test_the_training_is_the_same_bit_for_bit(name: str, tmp_path: Path) -> None:
    end = "\nprint('random', torch.rand(3).tolist())\n"
    model = "model" if "model =" in PROGRAMS[name] else ("rnn" if "rnn" in PROGRAMS[name] else "G")
    end += f"print([p.sum().item() for p in {model}.parameters()])\n"
    printed = recorded(PROGRAMS[name] + end, tmp_path / "with")
    without = plain(PROGRAMS[name] + end, tmp_path / "without")
    with_us = [s for s in printed.splitlines() if not s.startswith("trainwreck")]
    assert with_us == without.splitlines()
    assert origins(tmp_path / "with")
