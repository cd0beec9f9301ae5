"""Command lines: which options a script takes, whether these are all, and which values count in the end."""

from __future__ import annotations

import pytest

from trainwreck.code.project import Project
from trainwreck.code.read import build
from trainwreck.code.settings.accepted import verdict
from trainwreck.code.settings.bags import bags
from trainwreck.code.settings.loads import loads, use_of
from trainwreck.code.settings.parsers import Parser, parser_of
from trainwreck.code.settings.starts import starts
from trainwreck.core.source import from_bytes


def project(files: dict[str, str]) -> Project:
    return Project(build([from_bytes(name, text.encode()) for name, text in files.items()]))


def parser(text: str, **more: str) -> Parser | None:
    others = {f"{name}.py": body for name, body in more.items()}
    return parser_of(project({"train.py": text, **others}), "train.py")


CLOSED = {
    "written in the script": "import argparse\np = argparse.ArgumentParser()\np.add_argument('--lr')\np.parse_args()\n",
    "in a function": """
from argparse import ArgumentParser
def options():
    p = ArgumentParser()
    p.add_argument('--lr')
    return p
def main():
    args = options().parse_args()
""",
    "groups and helpers": """
import argparse
def more(parser):
    group = parser.add_argument_group('optimizer')
    group.add_argument('--lr')
parser = argparse.ArgumentParser()
more(parser)
parser.set_defaults(x=1)
args = parser.parse_args()
""",
    "another module": "from options import parse\nargs = parse()\n",
    "tyro": "import tyro\nfrom dataclasses import dataclass\n@dataclass\nclass A:\n lr: int = 1\nx = tyro.cli(A)\n",
    "click": "import click\n@click.command()\n@click.option('--lr', default=1)\ndef main(lr):\n    pass\n",
    "HfArgumentParser": """
from dataclasses import dataclass
from transformers import HfArgumentParser
@dataclass
class A:
    lr: float = 1.0
a, = HfArgumentParser(A).parse_args_into_dataclasses()
""",
}
OPTIONS = """
import argparse
def parse():
    p = argparse.ArgumentParser()
    p.add_argument('--lr')
    return p.parse_args()
"""
START = "import argparse\np = argparse.ArgumentParser()\n"


@pytest.mark.parametrize("text", CLOSED.values(), ids=CLOSED)
def test_all_options_are_seen(text: str) -> None:
    found = parser(text, options=OPTIONS)
    assert found is not None
    assert found.closed
    assert found.option("--lr") is not None


OPEN = {
    "unknown ones are kept": START + "p.add_argument('--lr')\np.parse_known_args()\n",
    "handed to a library": "import argparse, x\np = argparse.ArgumentParser()\nx.add(p)\np.parse_args()\n",
    "names made in a loop": """
import argparse
p = argparse.ArgumentParser()
for n in names:
    p.add_argument('--' + n)
p.parse_args()
""",
    "sub-commands": "import argparse\np = argparse.ArgumentParser()\ns = p.add_subparsers()\np.parse_args()\n",
    "parents": "import argparse\np = argparse.ArgumentParser(parents=[q])\np.add_argument('--lr')\np.parse_args()\n",
    "another list": START + "p.add_argument('--lr')\np.parse_args(['--lr', '1'])\n",
    "remaining strings": """
from transformers import HfArgumentParser, TrainingArguments
a, rest = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses(return_remaining_strings=True)
""",
    "a class that is not here": """
from transformers import HfArgumentParser
from elsewhere import Own
a, = HfArgumentParser(Own).parse_args_into_dataclasses()
""",
    "a parser in a container": "import argparse\np = argparse.ArgumentParser()\nkeep = [p]\np.parse_args()\n",
}


@pytest.mark.parametrize("text", OPEN.values(), ids=OPEN)
def test_where_more_may_be_taken_nothing_is_refused(text: str) -> None:
    found = parser(text)
    assert found is None or not found.closed


def test_two_parsers_of_one_script_are_none() -> None:
    assert parser(START + "p.parse_args()\nq = argparse.ArgumentParser()\nq.parse_args()\n") is None


def test_fields_of_a_library_are_options() -> None:
    text = """
from transformers import HfArgumentParser, TrainingArguments
a, = HfArgumentParser((TrainingArguments,)).parse_args_into_dataclasses()
"""
    whole = project({"train.py": text})
    found = parser_of(whole, "train.py")
    assert found is not None
    given = {
        name: verdict(whole, found, name) for name in ("--learning_rate", "--bf16", "--no_bf16", "--learning-rate")
    }
    assert set(given.values()) == {"taken"}
    assert verdict(whole, found, "--learnin_rat") == "refused"
    assert verdict(whole, found, "--learning_r") == "unknown"  # argparse takes an unambiguous beginning


def test_flags_win_over_the_file_that_they_name() -> None:
    whole = project(
        {
            "conf.yaml": "output_dir: o\nlearning_rate: 1.0e-4\nnum_train_epochs: 3\nper_device_train_batch_size: 8\n",
            "run.sh": "LR=3e-5\ntrl sft --config conf.yaml --learning_rate $LR --bf16\n",
        }
    )
    (bag,) = bags(whole)
    assert bag.number("learning_rate") == 3e-5
    assert bag.get("learning_rate").place.path == "run.sh"  # type: ignore[union-attr]
    assert bag.number("per_device_train_batch_size") == 8
    assert bag.true("bf16") is not None


WORLDS = [
    ("torchrun --nnodes 2 --nproc_per_node=4 train.py", 8),
    ("torchrun train.py", 1),
    ("torchrun --nproc_per_node=gpu train.py", None),
    ("CUDA_VISIBLE_DEVICES=0,1,2 torchrun --nproc_per_node=gpu train.py", 3),
    ("accelerate launch --num_processes 6 train.py", 6),
    ("accelerate launch --config_file acc.yaml train.py", 4),
    ("accelerate launch train.py", None),
    ("deepspeed --num_gpus 2 --num_nodes 3 train.py", 6),
    ("deepspeed --include localhost:0,2,5 train.py", 3),
    ("deepspeed --hostfile h train.py", None),
    ("srun torchrun --nproc_per_node 8 train.py", None),
    ("torchrun --nproc_per_node $GPUS train.py", None),
]


@pytest.mark.parametrize(("command", "size"), WORLDS)
def test_the_number_of_processes(command: str, size: int | None) -> None:
    accelerate = "compute_environment: LOCAL_MACHINE\ndistributed_type: MULTI_GPU\nnum_machines: 1\nnum_processes: 4\n"
    found = starts(project({"run.sh": command + "\n", "acc.yaml": accelerate}))
    world = next(s.world for s in found if s.launch is not None)
    assert (world.size if world is not None else None) == size


def test_readings_of_a_configuration_are_followed() -> None:
    text = """
import yaml
def main():
    with open("conf/a.yaml") as stream:
        cfg = yaml.safe_load(stream)
    model = cfg["model"]
    print(model["width"], cfg["model"]["depth"], cfg.get("seed"), "x" in cfg)
"""
    whole = project({"train.py": text, "conf/a.yaml": "model: {width: 1}\n"})
    (load,) = loads(whole)
    use = use_of(whole, load)
    assert not use.whole
    assert {(".".join(r.keys), r.optional) for r in use.reads} == {
        ("model", False),
        ("model.width", False),
        ("model.depth", False),
        ("seed", True),
        ("x", True),
    }


@pytest.mark.parametrize(
    "line", ["cfg['x'] = 1", "cfg.update(y)", "use(cfg)", "cfg = fill(cfg)", "return cfg", "a, b = cfg, 1"]
)
def test_a_configuration_that_is_handed_on_may_be_read_anywhere(line: str) -> None:
    text = f"import yaml\ndef main():\n    cfg = yaml.safe_load(open('a.yaml'))\n    print(cfg['lr'])\n    {line}\n"
    whole = project({"train.py": text, "a.yaml": "lr: 1\n"})
    (load,) = loads(whole)
    assert use_of(whole, load).whole
