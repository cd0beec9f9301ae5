"""A flag gets a value that its parser refuses.

What: text where the parser wants a number, a value outside `choices`, or no value where one is needed.
Why it matters: argparse, click and HfArgumentParser end the program before anything is loaded.
When it is fine: where the value comes from outside the script, or the option converts it itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainwreck.code.project import Project
from trainwreck.code.settings.index import of
from trainwreck.code.settings.launch import Flag
from trainwreck.code.settings.parsers import Option, parser_of
from trainwreck.code.settings.shell import Arg
from trainwreck.code.settings.told import told
from trainwreck.core.evidence import Evidence

BAD = (
    """
#--- train.py
import argparse
def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--optimizer", choices=["sgd", "adamw"], default="adamw")
    parser.add_argument("--lr", type=float)
    return parser.parse_args()
#--- run.sh
python train.py --lr 1e-4 \\
    --steps 1e5  # expect
python train.py --optimizer adam  # expect
python train.py --lr=1e-4,2e-4  # expect
python train.py --lr --steps 10  # expect
""",
    """
#--- train.py
import click
@click.command()
@click.option("--width", type=int, default=64)
@click.option("--net", type=click.Choice(["small", "large"]))
def main(width, net):
    pass
#--- run.sh
python train.py --net medium  # expect
python train.py --width 64.0  # expect
""",
    """
#--- train.py
from dataclasses import dataclass
from transformers import HfArgumentParser
@dataclass
class Own:
    rank: int = 8
    use_cache: bool = True
own, = HfArgumentParser(Own).parse_args_into_dataclasses()
#--- run.sh
python train.py --rank eight --use_cache maybe  # expect
""",
)
GOOD = (
    """
#--- train.py
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=lambda s: int(float(s)))
parser.add_argument("--lr", type=float)
parser.add_argument("--ids", type=int, nargs="+")
parser.add_argument("--shift", type=int)
parser.add_argument("--opt", choices=sorted(TABLE))
parser.add_argument("--name")
args = parser.parse_args()
#--- run.sh
python train.py --steps 1e5 --lr $LR --ids 1 2 3 --shift -3 --opt any --name run-1
for lr in 1e-3 1e-4; do python train.py --lr $lr --ids "$@"; done
python train.py --lr 5 --name=
""",
    """
#--- train.py
from dataclasses import dataclass
from typing import Optional
from transformers import HfArgumentParser
@dataclass
class Own:
    rank: Optional[int] = 8
    use_cache: bool = True
own, = HfArgumentParser(Own).parse_args_into_dataclasses()
#--- run.sh
python train.py --rank 1_000 --use_cache no --no_use_cache
python train.py --use_cache --rank 4
""",
)
_TRUTH = frozenset(["yes", "true", "t", "y", "1", "no", "false", "f", "n", "0"])
"""What HfArgumentParser (and distutils before it) takes for a bool."""


def find(project: Project) -> Iterator[Evidence]:
    settings = of(project)
    for launch in settings.launches:
        path = settings.script_of(launch)
        parser = parser_of(project, path) if path is not None else None
        if parser is None:
            continue
        flags = launch.flags()
        for number, flag in enumerate(flags):
            option = parser.option(flag.written)
            if option is None or option.positional:
                continue
            last = number == len(flags) - 1
            wrong = _wrong(option, flag, last, parser.kind)
            if wrong:
                proof = [(parser.path, int(getattr(option.node, "lineno", 1)), f"{flag.written} is declared here")]
                value = flag.value
                place = value.place if value is not None else flag.place
                yield told(__name__, place, wrong, proof=proof, key=flag.name)


def _wrong(option: Option, flag: Flag, last: bool, kind: str) -> str:
    """What the parser would say, "" if it takes the value."""
    if not flag.values:
        needs = option.takes == "one" and kind in ("argparse", "click")
        return f"{flag.written} needs a value and gets none" if needs and not (last and flag.joined) else ""
    if option.takes not in ("one", "maybe") or not flag.values[0].known:
        return ""
    value = flag.values[0]
    if option.choices is not None:
        texts = [str(c) for c in option.choices]
        same = {str: str, int: int}.get(type(option.choices[0]) if option.choices else str)
        if same is not None and value.text not in texts and option.type in ("", "str", "int"):
            shown = ", ".join(texts[:8])
            return f"{flag.written} takes one of {shown}, not {value.text!r}"
        return ""
    return _typed(option, flag, value, kind)


def _typed(option: Option, flag: Flag, value: Arg, kind: str) -> str:
    text = value.text
    if option.type == "int" and not re.fullmatch(r"\s*[-+]?\d+(?:_\d+)*\s*", text):
        return f"{flag.written} takes a whole number, not {text!r}"
    if option.type == "float":
        try:
            float(text)
        except ValueError:
            return f"{flag.written} takes a number, not {text!r}"
    if option.type == "bool" and kind in ("hf", "trl") and text.lower() not in _TRUTH:
        return f"{flag.written} takes true or false, not {text!r}"
    return ""
