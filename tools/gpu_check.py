"""What only a machine with a GPU can show of captures and replays: one run of at most ten minutes.

    python tools/gpu_check.py OUT

Writes OUT/gpu.json: for each program whether a capture was taken on the device, and whether ``trainwreck replay`` names
kind and line there and with ``--device cpu``. Exit code 1 if one is wrong on the device.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests" / "record")]
NAMES = (
    "plain loop, log of zero",
    "masked attention, empty row",
    "slope of sqrt at zero",
    "where hides a branch",
    "half precision matmul",
    "accumulation over micro-batches",
)
LIMIT_SECONDS = 90


def on_device(source: str) -> str:
    """``source`` with everything that it makes on the GPU, by default device."""
    return source.replace("import torch\n", "import torch\ntorch.set_default_device('cuda')\n", 1)


def check(name: str, source: str, folder: Path) -> dict[str, object]:
    """Record a program on the device, then replay its capture on the device and on the CPU."""
    from births import expected

    folder.mkdir(parents=True, exist_ok=True)
    source = on_device(source)
    (folder / "train.py").write_text(source)
    began = time.monotonic()
    _run("run", "--record-to", "rec", "train.py", folder=folder)
    told: dict[str, object] = {"program": name, "run_seconds": round(time.monotonic() - began, 1), "right": False}
    captures = sorted((folder / "rec").glob("capture-*"))
    told["captures"] = [c.name for c in captures]
    if not captures:
        return told
    line, kind, _ = expected(source)
    for device in ([], ["--device", "cpu"]):
        if device:  # The script asks for the GPU by name: the CPU's copy of it must not.
            (folder / "train.py").write_text(source.replace("'cuda'", "'cpu'"))
        answer = _run("replay", f"rec/{captures[0].name}", "--format", "json", *device, folder=folder)
        try:
            origin = json.loads(answer)
        except ValueError:
            origin = {"text": answer[-300:]}
        told["cpu" if device else "gpu"] = [origin.get("kind"), origin.get("line"), origin.get("text")]
        told["right" if not device else "right_on_cpu"] = (origin.get("kind"), origin.get("line")) == (kind, line)
    return told


def _run(*words: str, folder: Path) -> str:
    command = [sys.executable, "-m", "trainwreck", *words]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=LIMIT_SECONDS, check=False
    )
    return done.stdout


def main() -> int:
    """Run all programs; the exit code."""
    from births import PROGRAMS

    out = Path(sys.argv[1])
    found = []
    for number, name in enumerate(NAMES):
        try:
            found.append(check(name, PROGRAMS[name], out / f"program{number}"))
        except subprocess.TimeoutExpired:
            found.append({"program": name, "right": False, "timeout": True})
        print(json.dumps(found[-1]))
        (out / "gpu.json").write_text(json.dumps(found, indent=1))
    return 0 if all(f["right"] for f in found) else 1


if __name__ == "__main__":
    sys.exit(main())
