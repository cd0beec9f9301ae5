"""A switch is given a value.

What: a flag declared with `action="store_true"` (or a switch of click) followed by `True`, `False` or `1`.
Why it matters: argparse ends with "unrecognized arguments"; where the script takes positional arguments the word
becomes one of them, and `False` switches the thing on.
When it is fine: where the script takes what is left over (`parse_known_args`) on purpose.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.settings.index import of
from trainwreck.code.settings.parsers import parser_of
from trainwreck.code.settings.told import told
from trainwreck.core.evidence import Evidence

BAD = (
    """
#--- train.py
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--fp16", action="store_true")
parser.add_argument("--lr", type=float)
args = parser.parse_args()
#--- run.sh
python train.py --fp16 True --lr 1e-4  # expect
python train.py --lr 1e-4 --fp16=1  # expect
python train.py --fp16 --lr 1e-4
""",
    """
#--- train.py
import click
@click.command()
@click.option("--bf16", is_flag=True)
def main(bf16):
    pass
#--- run.sh
python train.py --bf16 false  # expect
""",
)
GOOD = """
#--- train.py
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("data")
parser.add_argument("--fp16", action="store_true")
parser.add_argument("--bf16", type=str, default="no")
parser.add_argument("--tune", action=argparse.BooleanOptionalAction)
args = parser.parse_args()
#--- run.sh
python train.py --fp16 folder/train --bf16 true --no-tune
python train.py data --fp16
"""
_WORD = pattern(r"(?:true|false|yes|no|on|off|0|1)$", re.IGNORECASE)


def find(project: Project) -> Iterator[Evidence]:
    settings = of(project)
    for launch in settings.launches:
        path = settings.script_of(launch)
        parser = parser_of(project, path) if path is not None else None
        for flag in launch.flags() if parser is not None else ():
            option = parser.option(flag.written) if parser is not None else None
            value = flag.value
            if parser is None or option is None or option.takes != "nothing" or value is None or not value.known:
                continue
            if not _WORD.match(value.text) or (not flag.joined and not parser.closed):
                continue
            off = value.text.lower() in ("false", "no", "off", "0")
            text = f"{flag.written} is a switch and takes no value; {value.text!r} makes the parser end the program"
            fix = f"leave {flag.written} out" if off else f"write {flag.written} alone"
            proof = [(parser.path, int(getattr(option.node, "lineno", 1)), f"{flag.written} is a switch")]
            yield told(__name__, value.place, text, proof=proof, fix=fix, key=flag.name)
