"""Small tables of facts that the settings of programs are judged by: launchers, variables, ranges, packages."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent / "tables"


@cache
def settings_table(name: str) -> Mapping[str, Any]:
    """The table ``tables/<name>.toml``. Raises FileNotFoundError for a name that there is not."""
    return tomllib.loads((ROOT / f"{name}.toml").read_text(encoding="utf-8"))
