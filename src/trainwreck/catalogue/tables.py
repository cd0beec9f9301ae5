"""Small tables of facts that the settings of programs are judged by: launchers, variables, ranges, packages."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from trainwreck.catalogue.load import catalogue


@cache
def settings_table(name: str) -> Mapping[str, Any]:
    """The table ``tables/<name>.toml``. Raises KeyError for a name that there is not."""
    table: Mapping[str, Any] = catalogue().raw("tables")[name]
    return table


_FAMILIES = (
    r"(?P<llama>llama)|(?P<mixtral>mixtral)|(?P<mistral>mistral)|(?P<qwen>qwen|qwq)|(?P<gemma>gemma)|(?P<phi>\bphi\W?\d)"
    r"|(?P<deepseek>deepseek)|(?P<falcon>falcon)|(?P<bloom>bloom)|(?P<gpt2>gpt2)|(?P<neox>pythia|gpt-neox)|(?P<opt>\bopt-)"
    r"|(?P<glm>glm)|(?P<yi>\byi-)|(?P<internlm>internlm)|(?P<baichuan>baichuan)|(?P<smollm>smollm)|(?P<olmo>olmo)"
)


def family(name: str) -> str:
    """The family of language models that a name speaks of, "" for none; distilled models speak of two and get ""."""
    found = {m.lastgroup for m in re.finditer(_FAMILIES, name.rsplit("/", 1)[-1], re.IGNORECASE) if m.lastgroup}
    return found.pop() if len(found) == 1 else ""
