"""Mutated programs, notebooks, configurations and launch scripts through the whole of ``check``: no crash, no hang.

    TRAINWRECK_FUZZ=50000 python tools/fuzz_check.py [--seed N] [--workers 2]

Seeds are the examples of the rules, the project's own cases and tests, and scripts of installed packages. Each input
is one project of one to four files. A rule that raises counts as a failure, although a user would only miss its
findings; so does a fix whose result no longer parses. A failing project is written to the working directory and named.
"""
# ruff: noqa: E501

from __future__ import annotations

import ast
import json
import random
import signal
import sysconfig
import traceback
from collections import Counter
from pathlib import Path

import mutate
from fuzz_run import drive

HERE = Path(__file__).resolve().parent.parent
PACKAGES = (
    "trl",
    "peft",
    "accelerate",
    "datasets",
    "transformers/models/llama",
    "torch/utils/data",
    "torch/nn/modules",
)
MAX_SEED = 12_000
SLOW = 20
"""Seconds after which a project counts as a hang; a script of this size takes 0.02 s."""
CONFIGURATIONS = (".yaml", ".yml", ".json", ".toml", ".sh", ".txt", ".cfg", ".slurm", "dockerfile")
FORMATS = ("full", "concise", "json", "sarif", "github", "gitlab", "junit", "markdown", "html")
OWN: tuple[mutate.Seed, ...] = (
    ("ds.json", b'{"train_batch_size": 8, "zero_optimization": {"stage": 3}, "fp16": {"enabled": "auto"}}'),
    ("conf/a.yaml", b"defaults:\n  - model: net\n  - _self_\nlr: ${opt.lr}\nopt: &o\n  lr: 1e-3\nb: *o\nc:\n  <<: *o\n  _target_: train.Net\n"),
    ("run.sh", b"export LR=1\nfor i in 1 2; do\n torchrun --nproc_per_node=$((2*2)) train.py --lr $LR \\\n  --fp16\ndone\n"),
    ("requirements.txt", b"torch==2.1.0\ntransformers>=4.40,<5\ntrl @ git+https://x\n-r other.txt\npeft; python_version<'3.9'\n"),
    ("pyproject.toml", b"[project]\nname='x'\ndependencies=['torch>=2', 'trl==0.9.6']\n[tool.trainwreck]\nignore=['performance']\n"),
    ("job.slurm", b"#!/bin/bash\n#SBATCH --gres=gpu:4\nsrun python -m pkg.train \"$@\" | tee log\n"),
    ("accelerate.yaml", b"compute_environment: LOCAL_MACHINE\ndistributed_type: FSDP\nnum_processes: 4\nmixed_precision: bf16\n"),
    ("environment.yml", b"dependencies:\n  - python=3.10\n  - pip:\n    - torch==2.0\n"),
)  # fmt: skip


def seeds() -> tuple[list[mutate.Seed], list[mutate.Seed]]:
    """Programs and configurations that are like what users give us."""
    from trainwreck.code.rule import rules

    programs: list[mutate.Seed] = []
    configurations = list(OWN)
    for rule in rules():
        for text in (*rule.bad, *rule.good):
            for name, _, body in [p.partition("\n") for p in text.split("#--- ")[1:]] or [("train.py", "", text)]:
                target = configurations if name.strip().lower().endswith(CONFIGURATIONS) else programs
                target.append((name.strip(), body.encode()))
    roots = [HERE / "tests", HERE / "examples", *(Path(sysconfig.get_path("purelib")) / p for p in PACKAGES)]
    for root in roots:
        for path in sorted(root.rglob("*")):
            if path.is_file() and path.suffix in (".py", ".txt", ".yaml", ".toml", ".sh", ".json"):
                with path.open("rb") as stream:
                    data = stream.read(MAX_SEED)
                (programs if path.suffix == ".py" or path.name.endswith(".py.txt") else configurations).append(
                    (path.name, data)
                )
    return [p for p in programs if p[1].strip()], [c for c in configurations if c[1].strip()]


def project(rng: random.Random, programs: list[mutate.Seed], configurations: list[mutate.Seed]) -> dict[str, bytes]:
    """One to four files that may or may not go together."""
    files: dict[str, bytes] = {}
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        name, data = rng.choice(programs)
        kind = rng.random()
        if kind < 0.45:
            files[rng.choice(("train.py", "src/net.py", "data.py", f"p/{name.removesuffix('.txt')}"))] = mutate.program(
                data, rng, programs
            )
        elif kind < 0.6:
            files["try.ipynb"] = mutate.notebook(data, rng, programs)
        elif kind < 0.95:
            name, data = rng.choice(configurations) if rng.random() < 0.8 else rng.choice(OWN)
            files[name] = mutate.configuration(data, rng, configurations)
        else:
            start = rng.randrange(len(data))
            files["train.py"] = data[:start] + rng.randbytes(rng.randint(1, 40)) + data[start + rng.randint(0, 40) :]
    return files


def examine(files: dict[str, bytes], rng: random.Random) -> int:
    """Everything that ``check`` does but reading and writing. The number of findings. Raises what is wrong."""
    from trainwreck import engine
    from trainwreck.catalogue.load import catalogue
    from trainwreck.checking import check, fixes, suppress, units
    from trainwreck.checking.settings import Settings
    from trainwreck.core.source import from_bytes
    from trainwreck.report import render

    sources = [from_bytes(name, data) for name, data in files.items()]
    seen = units.look(sources, jobs=1)
    assert not seen.broken, seen.broken
    known = catalogue()
    result = check._fresh(sources, dict(files), set(files), known, lambda _: seen)
    texts = {s.name: s.text() for s in sources}
    done = check._finish(result, texts, Settings(preview=True), lambda _: Settings(preview=True), known, list(files))
    render(done.result, rng.choice(FORMATS))
    mended = fixes.apply(done.result.findings, done.texts, unsafe=True)
    for name, text in mended.texts.items():
        if name.endswith(".py"):
            ast.parse(text)
        elif name.endswith((".json", ".ipynb")):
            json.loads(text)
    suppress.add(done.result.findings, done.texts, "known")
    assert all(isinstance(f.line, int) and f.line >= 1 for f in done.result.findings)
    assert sorted(done.result.findings, key=engine.finding_order) == list(done.result.findings)
    return len(done.result.findings)


def work(job: tuple[int, int]) -> tuple[int, Counter[str], list[str]]:
    """``count`` projects from one seed number: (projects, what they were, failures)."""
    number, count = job
    rng = random.Random(number)
    programs, configurations = seeds()
    told: Counter[str] = Counter()
    failures: list[str] = []

    def alarm(*_: object) -> None:
        raise TimeoutError(f"no answer in {SLOW} s")

    signal.signal(signal.SIGALRM, alarm)
    for index in range(count):
        files = project(rng, programs, configurations)
        told.update({name.rsplit(".", 1)[-1].lower() for name in files})
        signal.alarm(SLOW)
        try:
            told["findings"] += examine(files, rng)
        except Exception:
            trace = traceback.format_exc(limit=-4)
            kept = Path(f"fuzz-failure-{number}-{index}.json")
            kept.write_text(json.dumps({name: data.decode("latin-1") for name, data in files.items()}))
            failures.append(f"{kept}\n{trace}")
        finally:
            signal.alarm(0)
    return count, told, failures


if __name__ == "__main__":
    raise SystemExit(drive(__doc__, work, 250, "projects"))
