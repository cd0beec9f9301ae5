"""The rules over settings end on any files: examples of the rules, torn, doubled and mixed."""

from __future__ import annotations

import importlib
import os
import pkgutil
import random

import pytest

import trainwreck.code.rules.config as config
import trainwreck.code.rules.launch as launch
from trainwreck.code.project import Project
from trainwreck.code.read import build
from trainwreck.core.source import from_bytes

MODULES = [
    importlib.import_module(info.name)
    for package in (config, launch)
    for info in pkgutil.iter_modules(package.__path__, package.__name__ + ".")
]
EXAMPLES = [
    text
    for module in MODULES
    for part in (module.BAD, module.GOOD)
    for text in ((part,) if isinstance(part, str) else part)
    if "#--- " in text
]
ROUNDS = int(os.environ.get("FUZZ_ROUNDS", "40"))


def files(text: str) -> dict[str, str]:
    return {name.strip(): body for name, _, body in (part.partition("\n") for part in text.split("#--- ")[1:])}


def torn(text: str, dice: random.Random) -> str:
    for _ in range(dice.randint(1, 4)):
        lines = text.split("\n")
        a, b = sorted(dice.randrange(len(text) + 1) for _ in range(2))
        match dice.randrange(6):
            case 0:
                text = text[:a] + text[min(b, a + 8) :]
            case 1:
                text = text[:a] + dice.choice("{}[]()\"'$:&*-#=\\\n\t ,|<>`é\x00") + text[a:]
            case 2:
                text = "\n".join(sorted(lines, key=lambda _: dice.random()))
            case 3:
                line = dice.choice(lines)
                text = "\n".join([*lines, line, line])
            case 4:
                text = text.replace(
                    dice.choice(["1", "true", "lr", "train", "  "]), dice.choice(["", "null", "[]", "{}", "-1"])
                )
            case _:
                text = text[: a + 20 * (b - a) // 21]
        if not text:
            return "x"
    return text


@pytest.mark.parametrize("seed", range(4))
def test_no_rule_fails_on_torn_files(seed: int) -> None:
    dice = random.Random(seed)
    for _ in range(ROUNDS):
        mixed = {**files(dice.choice(EXAMPLES)), **files(dice.choice(EXAMPLES))}
        changed = {name: torn(body, dice) for name, body in mixed.items()}
        project = Project(build([from_bytes(name, body.encode()) for name, body in changed.items()]))
        for module in MODULES:
            for item in module.find(project):
                assert item.where.line is not None
                assert item.where.line >= 1
                assert item.where.path in changed
