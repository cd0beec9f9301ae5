"""Put the real answer of `trainwreck diagnose examples/siamese-nan` into the README.

python tools/update_readme.py
"""

from __future__ import annotations

import re
from pathlib import Path

from trainwreck.engine import diagnose
from trainwreck.report import render

HERE = Path(__file__).resolve().parent.parent
BLOCK = re.compile(
    r"(<!-- demo[^>]*-->\n```console\n\$ trainwreck diagnose examples/siamese-nan\n).*?(```\n<!-- /demo -->)", re.DOTALL
)
WIDTH = 100


def answer() -> str:
    """The report as a terminal of 100 columns without colour shows it, read from the repository's root."""
    return render(diagnose(["examples/siamese-nan"]), "full", color=False, unicode=True, width=WIDTH)


def updated(text: str) -> str:
    """``text`` with the block between the demo marks replaced by today's answer."""
    return BLOCK.sub(lambda match: match[1] + answer() + match[2], text)


if __name__ == "__main__":
    readme = HERE / "README.md"
    readme.write_text(updated(readme.read_text(encoding="utf-8")), encoding="utf-8")
