"""A capture holds the failing step, opens without unpickling, and can be replayed later; faults of ours stay ours."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

sys.path.insert(0, str(Path(__file__).parent))
from births import PROGRAMS, expected  # noqa: E402
from forked import plain, recorded  # noqa: E402

from trainwreck.core.errors import TrainwreckError  # noqa: E402
from trainwreck.engine import diagnose  # noqa: E402
from trainwreck.record import inspection  # noqa: E402
from trainwreck.record.inside import rows, tensors  # noqa: E402
from trainwreck.record.replay import captures, lines, replay, together  # noqa: E402

ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}
MASKED = PROGRAMS["masked attention, empty row"]


def capture(folder: Path) -> Path:
    return next(folder.glob("rec/capture-*"))


def test_safetensors_survive_a_round_trip(tmp_path: Path) -> None:
    given = {
        "a": torch.randn(3, 4),
        "half": torch.randn(5).half(),
        "b16": torch.randn(2, 1).bfloat16(),
        "flags": torch.tensor([True, False, True]),
        "empty": torch.zeros(0, 7),
        "scalar": torch.tensor(-3),
        "strided": torch.randn(4, 6)[:, ::2],
    }
    path = str(tmp_path / "x.safetensors")
    assert tensors.save(path, given) == []
    found = tensors.load(path)
    assert found.keys() == given.keys()
    assert all(torch.equal(found[k], given[k]) and found[k].dtype == given[k].dtype for k in given)
    reference = pytest.importorskip("safetensors.torch").load_file(path)
    assert all(torch.equal(reference[k], given[k]) for k in given)


@pytest.mark.parametrize("damage", [b"", b"\xff" * 40, b'\x20\0\0\0\0\0\0\0{"a": {"dtype": "F32", "shape": '])
def test_a_damaged_file_is_an_error_and_no_crash(damage: bytes, tmp_path: Path) -> None:
    (tmp_path / "x.safetensors").write_bytes(damage)
    with pytest.raises(ValueError, match=r"safetensors|damaged|JSON|Expecting|Unterminated|delimiter"):
        tensors.load(str(tmp_path / "x.safetensors"))


def test_a_capture_holds_batch_weights_state_and_source(tmp_path: Path) -> None:
    recorded(MASKED, tmp_path)
    folder = capture(tmp_path)
    facts = json.loads((folder / "capture.json").read_text())
    held = tensors.load(str(folder / "tensors.safetensors"))
    assert facts["step"] == 3
    assert facts["path"] == "train.py"
    assert facts["versions"]["torch"] == torch.__version__
    assert {"local/batch['ids']", "local/batch['labels']", "weight/Net.emb.weight", "random/0"} <= held.keys()
    assert any(name.startswith("optimizer/") for name in held)
    assert torch.equal(held["local/batch['ids']"][8], torch.zeros(5, dtype=torch.long))
    assert (folder / "sources.zip").is_file()


def test_what_is_beyond_the_budget_is_said_to_be_absent(tmp_path: Path) -> None:
    recorded(MASKED, tmp_path, {"capture_bytes": 2000})
    facts = json.loads((capture(tmp_path) / "capture.json").read_text())
    assert any(text.startswith("weights") for text in facts["absent"])


@pytest.mark.parametrize(
    "name", ["masked attention, empty row", "class trainer, division by a count of zero", "slope of sqrt at zero"]
)
def test_a_capture_is_replayed_later_with_the_same_answer(name: str, tmp_path: Path) -> None:
    recorded(PROGRAMS[name], tmp_path)
    folder = capture(tmp_path)
    before = json.loads((folder / "origin.json").read_text())
    after = replay(folder, "cpu")
    assert (after["kind"], after["op"], after["line"]) == (before["kind"], before["op"], before["line"])
    assert before["text"].split(";")[0] in lines(after)[0]


def test_a_capture_with_damaged_weights_is_replayed_from_the_step_that_damaged_them(tmp_path: Path) -> None:
    source = PROGRAMS["slope of sqrt at zero"]
    recorded(source, tmp_path)
    folder = captures([tmp_path / "rec"])[0]
    facts = json.loads((folder / "capture.json").read_text())
    facts |= {"weights_damaged": ["Net.weight"], "step": facts["step"] + 20}  # as a device tells it, at the flush
    (folder / "capture.json").write_text(json.dumps(facts))
    told = replay(folder)
    line, kind, _ = expected(source)
    assert (told["kind"], told["line"], told["step"]) == (kind, line, facts["step"] - 20)
    assert "were damaged" in told["notes"][0]


def test_a_script_that_does_not_come_there_is_one_sentence(tmp_path: Path) -> None:
    recorded(MASKED, tmp_path)
    (tmp_path / "train.py").write_text("print('nothing')\n")
    with pytest.raises(TrainwreckError, match=r"before it came to train\.py"):
        replay(capture(tmp_path))
    with pytest.raises(TrainwreckError, match="did you mean"):
        replay(tmp_path / "rec")


FAULTS = {
    "fork": "import os\ndef fork():\n    raise OSError('no more processes')\nos.fork = fork\n",
    "writing": (
        "import trainwreck.record.inside.package as p\n"
        "def write(*a):\n    raise OSError('disk full')\np.write = write\n"
    ),
    "replay": "import trainwreck.record.inside.replay as r\nr.Replay.answer = lambda self: 1 / 0\n",
    "death": "import trainwreck.record.inside.isolate as i, os\ni.child = lambda *a: os.kill(os.getpid(), 9)\n",
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_of_ours_leaves_the_training_alone(fault: str, tmp_path: Path) -> None:
    end = "\nprint('end', [p.sum().item() for p in net.parameters()], torch.rand(2).tolist())\n"
    printed = recorded(FAULTS[fault] + MASKED + end, tmp_path / "with")
    expected = plain(MASKED + end, tmp_path / "without")
    assert [s for s in printed.splitlines() if s.startswith("end")] == expected.splitlines()


def test_failing_samples_are_told_from_the_others() -> None:
    ids = torch.tensor([[3, 4, 5], [0, 0, 0], [2, 2, 0], [0, 0, 0]])
    label = torch.tensor([1, 2, 0, 2])
    value = torch.tensor([[1.0], [9.0e6], [2.0], [8.0e6]])
    said = rows.sentences([1, 3], 4, [("ids", ids), ("label", label), ("value", value), ("other", torch.rand(4))])
    assert said == [
        "ids is 0 throughout in the failing rows (others 0..5)",
        "label is 2 throughout in the failing rows (others 0..1)",
        "value reaches 9e+06 in the failing rows (others 2)",
    ]


def test_a_crash_leaves_the_variables_of_its_frames(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        "import torch\nfrom torch import nn\nemb = nn.Embedding(10, 4)\nids = torch.tensor([[1, 12]])\n"
        "def step(batch):\n    return emb(batch)\nstep(ids).sum().backward()\n"
    )
    words = [sys.executable, "-m", "trainwreck", "run", "--record-to", "rec", "train.py"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, env=ENVIRONMENT, check=False)
    assert done.returncode == 1
    facts = json.loads((tmp_path / "rec/capture-crash/capture.json").read_text())
    assert (facts["path"], facts["line"]) == ("train.py", 6)
    frame = next(f for f in facts["frames"] if f["function"] == "step")
    assert frame["variables"]["batch"]["max"] == 12
    table = next(f for f in facts["frames"] if f["function"] == "embedding")
    assert table["variables"]["weight"]["shape"] == [10, 4]


def test_failing_steps_are_compared_with_healthy_ones(tmp_path: Path) -> None:
    source = PROGRAMS["plain loop, log of zero"].replace(
        "    logits = model(x * (1 if i < 3 else 4000))",
        "    inputs = x * (1 if i < 4 else 4000)\n    logits = model(inputs)",
    )
    recorded(source, tmp_path)
    told = next(s for s in diagnose([tmp_path / "rec"]).symptoms if s.id == "live-failing-steps-alike")
    assert "inputs has a max of " in told.text
    assert "healthy steps" in told.text
    assert " y " not in told.text


REPEATED = """\
import torch
from torch import nn
torch.manual_seed(0)
emb, head = nn.Embedding(50, 8), nn.Linear(8, 3)
opt = torch.optim.SGD([*emb.parameters(), *head.parameters()], lr=0.01)
stored = torch.randn(60, 16, 4)
stored[30, 2, 1] = stored[41, 7, 1] = stored[52, 4, 1] = float("inf")
for i in range(60):
    bad = i in (30, 41, 52)
    ids = torch.randint(1, 50, (16, 12 if not bad else 40))
    labels = torch.randint(3, (16,)) if not bad else torch.full((16,), 2)
    value = stored[i]
    hidden = emb(ids).mean(1)
    loss = nn.functional.cross_entropy(head(hidden), labels) + value.sum() * 0
    opt.zero_grad()
    if loss.isfinite():
        loss.backward()
        opt.step()
    else:
        loss.backward()
        opt.zero_grad()
"""


def test_several_failing_steps_are_compared_and_replayed_together(tmp_path: Path) -> None:
    recorded(REPEATED, tmp_path)
    folders = captures([tmp_path / "rec"])
    assert len(folders) >= 2
    told = next(s for s in diagnose([tmp_path / "rec"]).symptoms if s.id == "live-failing-steps-alike")
    every = f"in all {len(folders)} failing steps"
    assert f"ids has a length of 40 {every} (healthy steps 12..12)" in told.text
    assert f"labels holds only 2 {every}" in told.text
    assert "value is not finite" in told.text
    assert "always in column 1" in told.text
    text = "\n".join(inspection.text(inspection.inspect(tmp_path / "rec")))
    assert f"ids has a length of 40 {every}" in text
    origins = [json.loads((f / "origin.json").read_text()) for f in folders]
    assert together(origins) == f"{len(folders)} replays: {len(folders)} in value at train.py:12"


def test_healthy_variables_of_a_single_failing_step_are_not_told(tmp_path: Path) -> None:
    recorded(PROGRAMS["masked attention, empty row"], tmp_path)
    assert not any(s.id == "live-failing-steps-alike" for s in diagnose([tmp_path / "rec"]).symptoms)
