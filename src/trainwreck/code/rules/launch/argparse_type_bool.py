"""An option whose type is `bool`.

What: `add_argument("--x", type=bool)`.
Why it matters: `bool("False")` is True: any text but the empty one switches it on, also `--x False`.
When it is fine: never with text from a command line; HfArgumentParser converts its fields itself.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.code.settings.index import of
from trainwreck.code.settings.parsers import parser_of
from trainwreck.core.evidence import Evidence
from trainwreck.core.fix import Fix

BAD = (
    """
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--shuffle", type=bool, default=True)  # expect
args = parser.parse_args()
""",
    """
#--- train.py
import argparse
def options(group):
    group.add_argument(
        "--amp",
        default=False,
        type=bool,  # expect
    )
parser = argparse.ArgumentParser()
options(parser)
args = parser.parse_args()
#--- run.sh
python train.py --amp False
""",
)
GOOD = """
import argparse
def bool(text):
    return text == "yes"
parser = argparse.ArgumentParser()
parser.add_argument("--shuffle", action="store_true")
parser.add_argument("--amp", type=lambda s: s == "true")
parser.add_argument("--x", type=bool)
args = parser.parse_args()
"""
FIX = Fix('action="store_true", or argparse.BooleanOptionalAction')


def find(project: Project) -> Iterator[Evidence]:
    for call in project.calls("add_argument"):
        given = call.argument("type")
        if not isinstance(given, ast.Name) or given.id != "bool" or project.lookup("bool", call.scope):
            continue
        if call.argument("action") is not None:
            continue
        names = [a.value for a in call.node.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
        name = next((n for n in names if n.startswith("--")), names[0] if names else "the option")
        used = _given(project, call.scope.module.path, names)
        text = f"type=bool makes {name} True for any text, `{name} False` too"
        yield sighting(__name__, (given, call.scope), text, fix=FIX, proof=used, severity="critical" if used else None)


def _given(project: Project, path: str, names: list[str]) -> list[tuple[str, int, str]]:
    """Where a command gives it a value that is meant to switch it off."""
    settings = of(project)
    found = []
    for launch in settings.launches:
        script = settings.script_of(launch)
        if script is None or parser_of(project, script) is None:
            continue
        for flag in launch.flags():
            if flag.written in names and (flag.text or "").lower() in ("false", "no", "off", "0") and path:
                found.append((flag.place.path, flag.place.line, f"{flag.written} {flag.text}"))
    return found
