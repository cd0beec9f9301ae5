"""Write the golden answers anew: ``tests/golden/<name>.json`` for every folder of ``tests/golden/inputs``.

Run it after a deliberate change of knowledge, weights or contract, and read the difference before it is committed.
"""

from __future__ import annotations

import os
from pathlib import Path

from trainwreck import report
from trainwreck.engine import diagnose

GOLDEN = Path(__file__).parent.parent / "tests/golden"


def answer(name: str) -> str:
    """The answer for one input as JSON, with paths relative to the folder of inputs."""
    before = Path.cwd()
    os.chdir(GOLDEN / "inputs")
    try:
        return report.render(diagnose([name]), "json")
    finally:
        os.chdir(before)


def main() -> None:
    for folder in sorted((GOLDEN / "inputs").iterdir()):
        path = GOLDEN / f"{folder.name}.json"
        text = answer(folder.name)
        changed = not path.exists() or path.read_text(encoding="utf-8") != text
        path.write_text(text, encoding="utf-8")
        print(f"{path.relative_to(GOLDEN.parent.parent)}: {'changed' if changed else 'as before'}")


if __name__ == "__main__":
    main()
