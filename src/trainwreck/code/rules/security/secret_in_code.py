"""A credential is written in the source.

What: a literal that has the form of a token of Hugging Face, OpenAI, Weights & Biases or AWS, given to a login, a
key or an environment variable.
Why it matters: whoever reads the code, its history or a notebook can use the account.
When it is fine: for placeholders.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.calls import Call, written
from trainwreck.code.facts import (
    only,
)
from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.core.evidence import Evidence

BAD = (
    """
from huggingface_hub import login
login(token="hf_AbCdEfGhIjKlMnOpQrStUvWxYz01234567")  # expect
""",
    """
import os
os.environ["WANDB_API_KEY"] = "0123456789abcdef0123456789abcdef01234567"  # expect
""",
    """
import wandb
KEY = "89abcdef0123456789abcdef0123456789abcdef"
wandb.login(key=KEY)  # expect
""",
)
GOOD = """
import os
from huggingface_hub import login
login(token=os.environ["HF_TOKEN"])
login(token="hf_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx")
login(token="YOUR_TOKEN")
os.environ["WANDB_API_KEY"] = "<your key>"
commit = "0123456789abcdef0123456789abcdef01234567"
"""
OWN = pattern(r"^(hf_[A-Za-z0-9]{30,}|sk-[A-Za-z0-9_-]{32,}|AKIA[A-Z0-9]{16}|ghp_[A-Za-z0-9]{36})$")
HEX = pattern(r"^[0-9a-f]{40}$")
KEYS = pattern(r"api_?key|token|secret|password", re.IGNORECASE)


def find(project: Project) -> Iterator[Evidence]:
    for walked in project.walked.values():
        text = walked.top.module.text
        if not KEYS.search(text) and "login" not in text:
            continue
        for node, scope in walked.calls:
            call = Call(node, scope)
            if call.name == "login":
                for value in (*node.args, *(k.value for k in node.keywords)):
                    known = only(project, (value, scope))
                    if isinstance(known, str) and _secret(known, named=True):
                        yield sighting(__name__, call, "a credential stands in the source")
            for item in node.keywords:
                if (
                    item.arg
                    and KEYS.search(item.arg)
                    and call.name != "login"
                    and isinstance(item.value, ast.Constant)
                    and isinstance(item.value.value, str)
                    and _secret(item.value.value, named=False)
                ):
                    yield sighting(__name__, call, "a credential stands in the source")
        for scope in walked.scopes:
            for assign in project.within(scope, ast.Assign):
                assert isinstance(assign, ast.Assign)
                value = assign.value
                if (
                    isinstance(value, ast.Constant)
                    and isinstance(value.value, str)
                    and KEYS.search(written(assign.targets[0]))
                    and _secret(value.value, named="environ" in written(assign.targets[0]))
                ):
                    yield sighting(__name__, (assign, scope), "a credential stands in the source")


def _secret(text: str, named: bool) -> bool:
    """True if the literal has the form of a real token: no placeholder of one repeated letter."""
    varied = len(set(text)) > 8
    return varied and bool(OWN.match(text) or (named and HEX.match(text)))
