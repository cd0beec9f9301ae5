"""What the place that a report goes to can show: colour, letters, columns; from its stream and the environment."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from typing import IO, Any

COLOR = ("auto", "always", "never")
DEFAULT_WIDTH = 100


def options(stream: IO[str], color: str = "auto", environ: Mapping[str, str] | None = None) -> dict[str, Any]:
    """The options of ``report.render`` for this stream. ``color`` is what the user asked for: auto, always or never."""
    import os

    env = os.environ if environ is None else environ
    terminal = _is_terminal(stream)
    return {
        "color": _wants_color(color, terminal, env),
        "unicode": _shows_unicode(stream),
        "width": _columns(env) if terminal else DEFAULT_WIDTH,
    }


def _wants_color(color: str, terminal: bool, env: Mapping[str, str]) -> bool:
    """The flag decides; then NO_COLOR (any text) against, FORCE_COLOR or CLICOLOR_FORCE for; then whether it is a
    terminal that knows colour (https://no-color.org, https://force-color.org)."""
    if color != "auto":
        return color == "always"
    if env.get("NO_COLOR"):
        return False
    if env.get("FORCE_COLOR", "0") not in ("", "0", "false") or env.get("CLICOLOR_FORCE", "0") not in ("", "0"):
        return True
    return terminal and env.get("TERM", "") != "dumb"


def _shows_unicode(stream: IO[str]) -> bool:
    encoding = (getattr(stream, "encoding", None) or "utf-8").lower().replace("_", "-")
    return encoding.startswith(("utf", "cp65001", "gb18030"))


def _is_terminal(stream: IO[str]) -> bool:
    try:
        return stream.isatty()
    except (AttributeError, ValueError):
        return False


def _columns(env: Mapping[str, str]) -> int:
    told = env.get("COLUMNS", "")
    return int(told) if told.isdigit() and int(told) > 0 else shutil.get_terminal_size((DEFAULT_WIDTH, 40)).columns
