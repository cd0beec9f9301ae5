"""An option or a key that nobody takes.

What: a flag of a launch command that the parser of its script does not have; a key of a DeepSpeed, accelerate or
trainer file that is one slip away from a real one.
Why it matters: argparse, click, tyro and HfArgumentParser end the program; DeepSpeed ignores the key in silence.
When it is fine: where the parser is open (`parse_known_args`, sub-commands, options added elsewhere), and for keys that
are close to nothing known.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.catalogue.tables import settings_table
from trainwreck.code.project import Project
from trainwreck.code.settings.accepted import CLOSE, OWN_OF_TRL, Verdict, close, library_names, nearest, verdict
from trainwreck.code.settings.bags import TRL_COMMANDS, bags
from trainwreck.code.settings.dataclass_model import takes
from trainwreck.code.settings.index import of
from trainwreck.code.settings.launch import Launch
from trainwreck.code.settings.loads import loads, use_of
from trainwreck.code.settings.parsers import Library, Parser, parser_of
from trainwreck.code.settings.told import told
from trainwreck.code.settings.tree import Document, Place, node_at
from trainwreck.core.evidence import Evidence, Severity

BAD = (
    """
#--- train.py
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--learning-rate", type=float, default=1e-3)
parser.add_argument("--epochs", type=int, default=3)
args = parser.parse_args()
#--- run.sh
EPOCHS=3
python train.py --learning-rate 1e-4 --epochs $EPOCHS
python train.py --epoch 2
python train.py --learnin-rate 2e-4  # expect
python train.py --learning_rate 1e-4  # expect
""",
    """
#--- sft.py
from dataclasses import dataclass
from transformers import HfArgumentParser, TrainingArguments
@dataclass
class Own:
    corpus: str = "x"
parser = HfArgumentParser((Own, TrainingArguments))
own, args = parser.parse_args_into_dataclasses()
#--- run.sh
torchrun --nproc_per_node 2 sft.py --corpus y --per_device_train_batch_size 4 \\
    --output_dir out --lr_scheduler cosine \\
    --learing_rate 1e-5  # expect
""",
    """
#--- ds_config.json
{
  "train_micro_batch_size_per_gpu": 4,
  "gradient_acumulation_steps": 8, // # expect
  "zero_optimization": {"stage": 2, "overlap_com": true}, // # expect
  "gradient_clip": 1.0, // # expect
  "bf16": {"enabled": true}
}
""",
    """
#--- acc.yaml
compute_environment: LOCAL_MACHINE
distributed_type: MULTI_GPU
num_process: 4  # expect
mixed_precision: bf16
num_machines: 1
""",
    """
#--- conf.yaml
output_dir: out
learning_rate: 1.0e-4
per_device_train_batchsize: 8  # expect
num_train_epochs: 3
save_steps: 100
bf16: true
""",
    """
#--- lf.yaml
model_name_or_path: x/y
stage: sft
finetuning_type: lora
templat: qwen  # expect
cutof_len: 2048  # expect
#--- run.sh
vllm serve org/model --max-modle-len 4096  # expect
python -m sglang.launch_server --model-path x --mem-fraction-statc 0.8  # expect
trl sft --model_name_or_path x --dataset_nam y --learnin_rate 1e-4  # expect
""",
    """
#--- conf.yaml
model:
  width: 8
  depht: 2  # expect
train: {lr: 0.1}
#--- train.py
import yaml
from dataclasses import dataclass
@dataclass
class Model:
    width: int
    depth: int = 3
def train(lr=0.1, **more):
    pass
cfg = yaml.safe_load(open("conf.yaml"))
net = Model(**cfg["model"])
train(**cfg["train"])
""",
)
GOOD = (
    """
#--- conf.yaml
model: {width: 8, name: x}
#--- train.py
import yaml
from pydantic import BaseModel
class Model(BaseModel):
    width: int
class Other:
    def __init__(self, **kwargs):
        pass
cfg = yaml.safe_load(open("conf.yaml"))
net = Model(**cfg["model"]), Other(**cfg["model"]), unknown(**cfg["model"])
""",
    """
#--- run.sh
vllm serve org/model --max-model-len 4096 --host 0.0.0.0 --port 8000 --served-model-name m --no-enable-prefix-caching
vllm serve org/model --enable-auto-tool-choice --tool-call-parser hermes --my-plugin-flag 3 -tp 2
python -m sglang.launch_server --model-path x --tp 2 --mem-fraction-static 0.8
trl sft --model_name_or_path x --dataset_name y --output_dir z --use_peft --config a.yaml
""",
    """
#--- train.py
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--learning-rate", type=float, default=1e-3)
args, rest = parser.parse_known_args()
#--- run.sh
python train.py --learning-rate 1e-4 --other 3 model=big
""",
    """
#--- train.py
import argparse
from lib import more
parser = argparse.ArgumentParser()
more(parser)
parser.add_argument("--lr", type=float)
args = parser.parse_args()
#--- run.sh
python train.py --lr 1e-4 --beam 3
python other.py --beam 3
""",
    """
#--- run.py
from transformers import HfArgumentParser, TrainingArguments
args, = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()
#--- run.sh
python run.py --output-dir x --no_remove_unused_columns --bf16 --learning_rate 1e-5 --deepspeed ds.json
#--- ds.json
{"zero_optimization": {"stage": 2, "overlap_comm": true}, "train_batch_size": "auto", "my_own_note": 3}
#--- trainer.yaml
output_dir: x
learning_rate: 1.0e-4
per_device_train_batch_size: 8
num_train_epochs: 3
dataset_path: data/x
""",
)


SHORTEST = 8
"""Letters from which the beginning of a known key counts as that key cut short."""


def find(project: Project) -> Iterator[Evidence]:
    settings = of(project)
    for launch in settings.launches:
        path = settings.script_of(launch)
        parser = parser_of(project, path) if path is not None else None
        if parser is not None and parser.closed:
            yield from _flags(project, launch, parser)
        else:
            yield from _commands(launch)
    yield from _expanded(project)
    seen: set[int] = set()
    for bag in bags(project):
        if bag.document is None or id(bag.document) in seen:
            continue
        seen.add(id(bag.document))
        if bag.reader in ("deepspeed", "accelerate"):
            yield from _tree(bag.document, bag.reader)
        elif bag.reader in ("trainer", "llamafactory"):
            yield from _trainer(bag.document, bag.owner, bag.reader)


def _expanded(project: Project) -> Iterator[Evidence]:
    """Sections that are handed to a function or a dataclass as keywords: keys that it does not take."""
    for load in loads(project):
        if len(load.documents) != 1 or not load.exact:
            continue
        document = load.documents[0]
        for keys, call in use_of(project, load).expanded:
            section = node_at(document.root, keys)
            known = takes(project, call)
            if known is None or section is None or section.kind != "mapping":
                continue
            for key, _ in section.pairs:
                if key.name in known[0]:
                    continue
                meant = close(key.name, frozenset(known[0]), CLOSE)
                place = Place(document.path, key.line, key.column, key.column + len(key.name))
                hint = f"; `{meant}` is meant?" if meant else ""
                text = f"`{key.name}` is no argument of {call.name}, which gets this section: a TypeError{hint}"
                proof = [(call.scope.module.path, call.line, f"{call.name}(**…)")]
                yield told(__name__, place, text, proof=proof, fix=f"write {meant}" if meant else None, key=key.name)


def _flags(project: Project, launch: Launch, parser: Parser) -> Iterator[Evidence]:
    told_names: set[str] = set()
    for flag in launch.flags():
        if flag.name in told_names or (launch.launcher == "deepspeed" and flag.name == "local_rank"):
            continue
        answer: Verdict = verdict(project, parser, flag.written)
        if answer != "refused" or flag.written.lstrip("-")[:1].isdigit():
            continue
        told_names.add(flag.name)
        meant = nearest(project, parser, flag.written)
        spelt = next((n for o in parser.options for n in o.names if n.lstrip("-").replace("-", "_") == meant), "")
        hint = f"; {spelt or '--' + meant} is meant?" if meant else ""
        where = f"{parser.path}:{getattr(parser.node, 'lineno', 1)}"
        place = Place(flag.place.path, flag.place.line, flag.place.column, flag.place.column + len(flag.written),
                      flag.place.cell)  # fmt: skip
        yield told(
            __name__,
            place,
            f"{flag.written} is no option of {parser.path}: the program ends at once{hint}",
            proof=[(parser.path, int(getattr(parser.node, "lineno", 1)), f"the parser of {where}")],
            fix=f"write {spelt or '--' + meant}" if meant else None,
            key=flag.name,
            severity="critical",
        )


COMMANDS = {
    "vllm": (("vllm", "AsyncEngineArgs"),),
    "sglang": (("sglang", "ServerArgs"),),
    "trl": (("trl", "ScriptArguments"), ("trl", "ModelConfig"), ("trl", "DatasetMixtureConfig")),
}
"""The classes whose fields the flags of a command are."""
SERVING = frozenset(settings_table("keys")["vllm"]["server"])
"""Flags of vLLM's server that are no fields of its engine."""


def _commands(launch: Launch) -> Iterator[Evidence]:
    """Flags of servers and of trl that are one slip away from one that they have in some release."""
    classes = COMMANDS.get(launch.launcher, ())
    names: set[str] = set()
    for package, owner in classes:
        names |= library_names(Library(package, owner))
    if launch.launcher == "trl":
        names |= library_names(Library("trl", TRL_COMMANDS.get(launch.word, "SFTConfig"))) | OWN_OF_TRL
    elif launch.launcher == "vllm":
        names |= SERVING
    for flag in launch.flags() if names else ():
        plain = flag.name.removeprefix("no_")
        if not flag.written.startswith("--") or plain in names or any(n.startswith(flag.name) for n in names):
            continue
        meant = close(plain.partition(".")[0], names)
        if meant and plain.partition(".")[0] not in names:
            spelt = "--" + (meant.replace("_", "-") if "-" in flag.written[2:] else meant)
            text = f"{flag.written} is no option of {launch.launcher} in any known release; {spelt} is meant?"
            yield told(__name__, flag.place, text, fix=f"write {spelt}", key=flag.name, severity="critical")


def _tree(document: Document, reader: str) -> Iterator[Evidence]:
    """Keys close to a known one of the same section; a section's names are those of ``tables/keys.toml``."""
    known = {name: frozenset(keys) for name, keys in settings_table("keys")[reader].items()}
    silent = "DeepSpeed ignores it in silence" if reader == "deepspeed" else "accelerate refuses the file"
    seen: set[tuple[str, ...]] = set()
    for keys in document.settings:
        for depth in range(1, min(len(keys), 2) + 1):
            section = keys[: depth - 1]
            if keys[:depth] in seen:
                continue
            seen.add(keys[:depth])
            names = known.get(".".join(section) or "top")
            name = keys[depth - 1]
            if names is None or name in names:
                continue
            longer = [n for n in names if n.startswith(name)] if len(name) >= SHORTEST else []
            meant = close(name, names) or (longer[0] if len(longer) == 1 else "")
            key = document.key(*keys[:depth])
            if meant and key is not None and not document.has(*section, meant):
                place = Place(document.path, key.line, key.column, key.column + len(name))
                inside = f" {'.'.join(section)}" if section else ""
                text = f"`{name}` is no key of {reader}{inside}; `{meant}` is meant? {silent}"
                yield told(__name__, place, text, fix=f"write {meant}", key=name, severity="critical")


def _trainer(document: Document, owner: str, reader: str) -> Iterator[Evidence]:
    package = "transformers" if owner in ("TrainingArguments", "") else "trl"
    names = library_names(Library(package, owner or "Seq2SeqTrainingArguments"))
    if reader == "llamafactory":
        names |= set(settings_table("keys")["llamafactory"]["top"])
    own = set(document.top)
    for name in document.top:
        meant = close(name, names) if name not in names else ""
        key = document.key(name)
        if meant and meant not in own and key is not None:
            place = Place(document.path, key.line, key.column, key.column + len(name))
            text = f"`{name}` is no argument of any known release; `{meant}` is meant?"
            severity: Severity = "critical" if reader == "llamafactory" else "warning"
            yield told(__name__, place, text, fix=f"write {meant}", key=name, severity=severity)
