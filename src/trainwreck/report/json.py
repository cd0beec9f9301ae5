"""The published JSON object, and one object a line for streams."""

from __future__ import annotations

from typing import Any

import orjson

from trainwreck.core.results import Result


def render(result: Result, form: str = "json", **_: Any) -> str:
    """``json``: the whole object, indented. ``jsonl``: one line per root cause, finding and symptom, then the summary."""
    answer = result.to_json()
    if form == "json":
        return orjson.dumps(answer, option=orjson.OPT_INDENT_2).decode() + "\n"
    lines = [{"kind": kind, **item} for kind in ("root_causes", "findings", "symptoms") for item in answer[kind]]
    lines.append({"kind": "summary", "status": answer["status"], **answer["summary"]})
    return "".join(orjson.dumps(line).decode() + "\n" for line in lines)
