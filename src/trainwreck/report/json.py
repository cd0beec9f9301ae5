"""The published JSON object, one object a line for streams, and the schema of the object."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson

from trainwreck.core.results import Result
from trainwreck.report.safe import encodable, json_text

SCHEMA_FILE = Path(__file__).with_name("schema.json")


def render(result: Result, form: str = "json", **_: Any) -> str:
    """``json``: the whole object, indented. ``jsonl``: a line per root cause, finding and symptom, then the summary."""
    answer = result.to_json()
    if form == "json":
        return dumps(answer, indent=True) + "\n"
    lines = [{"kind": kind, **item} for kind in ("root_causes", "findings", "symptoms") for item in answer[kind]]
    lines.append({"kind": "summary", "status": answer["status"], **answer["summary"]})
    return "".join(dumps(line) + "\n" for line in lines)


def dumps(value: Any, *, indent: bool = False) -> str:
    """``value`` as JSON that is harmless to print: hidden and control characters are escapes."""
    option = orjson.OPT_INDENT_2 if indent else 0
    try:
        data = orjson.dumps(value, option=option)
    except TypeError:
        data = orjson.dumps(_writable(value), option=option)
    return json_text(data.decode("utf-8"))


def schema() -> str:
    """The JSON Schema (draft 2020-12, as text) that every answer in the format ``json`` fulfils."""
    return SCHEMA_FILE.read_text(encoding="utf-8")


def _writable(value: Any) -> Any:
    """``value`` less what JSON or orjson cannot write: lone surrogates, integers beyond 64 bits, other types."""
    if isinstance(value, str):
        return encodable(value)
    if isinstance(value, bool) or value is None or isinstance(value, float):
        return value
    if isinstance(value, int):
        return value if -(2**63) <= value < 2**64 else str(value)
    if isinstance(value, dict):
        return {encodable(str(key)): _writable(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_writable(item) for item in value]
    return encodable(str(value))
