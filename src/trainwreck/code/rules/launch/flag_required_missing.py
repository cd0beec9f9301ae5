"""A launch command leaves out a flag that its script requires.

What: an option with `required=True` (or a dataclass field without a default) that the command does not give.
Why it matters: the parser ends the program at once.
When it is fine: where the command is completed from outside (`"$@"`, `$EXTRA`), or the values come from a file.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.project import Project
from trainwreck.code.settings.index import of
from trainwreck.code.settings.launch import Launch
from trainwreck.code.settings.parsers import Option, Parser, parser_of
from trainwreck.code.settings.told import told
from trainwreck.core.evidence import Evidence

BAD = (
    """
#--- train.py
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--data", required=True)
parser.add_argument("--out", default="x")
args = parser.parse_args()
#--- run.sh
python train.py --out y  # expect
python train.py --data z
""",
    """
#--- train.py
from dataclasses import dataclass, field
from transformers import HfArgumentParser
@dataclass
class Own:
    model_name: str
    rank: int = 8
own, = HfArgumentParser(Own).parse_args_into_dataclasses()
#--- run.sh
python train.py --rank 4  # expect
""",
    """
#--- train.py
import click
@click.command()
@click.option("--data", required=True)
@click.option("--n", default=1)
def main(data, n):
    pass
#--- run.sh
torchrun --standalone --nproc_per_node=2 train.py --n 2  # expect
""",
)
GOOD = (
    """
#--- train.py
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--data", required=True)
parser.add_argument("--out", default="x")
args = parser.parse_args()
#--- run.sh
python train.py --out y "$@"
python train.py --out y $EXTRA
python train.py --dat z
python train.py --help
#--- other.sh
ARGS=(--data q)
python train.py "${ARGS[@]}"
""",
    """
#--- train.py
from dataclasses import dataclass
from transformers import HfArgumentParser
@dataclass
class Own:
    model_name: str
own, = HfArgumentParser(Own).parse_args_into_dataclasses()
#--- run.sh
python train.py config.json
python train.py --model-name x
""",
)


def find(project: Project) -> Iterator[Evidence]:
    settings = of(project)
    for launch in settings.launches:
        path = settings.script_of(launch)
        parser = parser_of(project, path) if path is not None else None
        if parser is None or not parser.closed or launch.open or any(not a.known for a in launch.args):
            continue
        missing = list(_missing(launch, parser))
        if missing:
            names = ", ".join(o.names[0] for o in missing)
            proof = [(parser.path, int(getattr(o.node, "lineno", 1)), f"{o.names[0]} is required") for o in missing]
            text = f"{path} requires {names}, which this command does not give: the program ends at once"
            yield told(__name__, launch.place, text, proof=proof, severity="critical")


def _missing(launch: Launch, parser: Parser) -> Iterator[Option]:
    flags = launch.flags()
    given = {f.written for f in flags}
    first = launch.args[0].text if launch.args else ""
    if given & {"-h", "--help", "--version", "--config"} or first.endswith((".json", ".yaml", ".yml")):
        return
    for option in parser.options:
        if not option.required or option.positional:
            continue
        begun = parser.prefixes and any(n.startswith(g) for n in option.names for g in given if g.startswith("--"))
        if not given & set(option.names) and not begun:
            yield option
