"""The settings that one reader gets, under its own names: training arguments, a DeepSpeed file, a server's flags.

A bag holds the effective value of each name with the place where it is written: defaults of a configuration file below
the flags of the command that names it. Python calls of the same classes give bags too, so that a rule on values asks
once and is answered for Python, YAML, JSON, TOML and shell alike.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from trainwreck.catalogue import releases
from trainwreck.code.calls import Call, written
from trainwreck.code.project import Project
from trainwreck.code.rule import at
from trainwreck.code.settings.index import Settings, of
from trainwreck.code.settings.launch import Flag, Launch
from trainwreck.code.settings.python_dict import dict_document
from trainwreck.code.settings.tree import UNKNOWN, Document, Place, Setting
from trainwreck.code.values import values

Reader = Literal["trainer", "llamafactory", "axolotl", "vllm", "sglang", "deepspeed", "accelerate", "other"]

FEW = 3
"""Names of the training arguments that a file must have to count as theirs (see code/outdated_files.py)."""
TRAINING = (
    "TrainingArguments",
    "Seq2SeqTrainingArguments",
    "SFTConfig",
    "DPOConfig",
    "GRPOConfig",
    "KTOConfig",
    "RewardConfig",
    "RLOOConfig",
    "ORPOConfig",
    "CPOConfig",
    "PPOConfig",
)
ENGINES = {"LLM": "vllm", "AsyncEngineArgs": "vllm", "EngineArgs": "vllm", "Engine": "sglang"}
TRL_COMMANDS = {
    "sft": "SFTConfig",
    "dpo": "DPOConfig",
    "grpo": "GRPOConfig",
    "kto": "KTOConfig",
    "reward": "RewardConfig",
    "rloo": "RLOOConfig",
}
DEEPSPEED_MARKS = (
    "zero_optimization",
    "train_micro_batch_size_per_gpu",
    "zero_allow_untested_optimizer",
    "steps_per_print",
)
ACCELERATE_MARKS = (
    "compute_environment",
    "distributed_type",
    "num_machines",
    "num_processes",
    "main_training_function",
)


@dataclass(frozen=True, eq=False)
class Bag:
    """``owner``: the class whose fields the names are, "" where it is not known. ``whole``: nothing else sets them."""

    reader: Reader
    values: Mapping[str, Setting]
    path: str
    owner: str = ""
    launch: Launch | None = None
    whole: bool = True
    document: Document | None = None
    call: Call | None = field(default=None, repr=False)

    def get(self, *names: str) -> Setting | None:
        """The setting of the first of these names that is there."""
        return next((self.values[n] for n in names if n in self.values), None)

    def number(self, *names: str) -> float | None:
        found = self.get(*names)
        return found.number if found is not None else None

    def true(self, *names: str) -> Setting | None:
        """The setting if it is on."""
        found = self.get(*names)
        return found if found is not None and found.true else None

    def off(self, *names: str) -> bool:
        """True if it is absent or written as off; False also where the value is unknown."""
        found = self.get(*names)
        return found is None or found.false or found.value is None

    @property
    def python(self) -> bool:
        return self.call is not None


def reader_of(document: Document) -> Reader:
    """Who reads a configuration, by the keys at its top."""
    top = document.top.keys()
    if {"finetuning_type", "stage"} <= top or {"finetuning_type", "template"} <= top:
        return "llamafactory"
    if "base_model" in top and top & {"datasets", "micro_batch_size", "sequence_len", "adapter", "sample_packing"}:
        return "axolotl"
    if sum(mark in top for mark in ACCELERATE_MARKS) >= 2 and "learning_rate" not in top:
        return "accelerate"
    if _is_deepspeed(document):
        return "deepspeed"
    row = _training_row()
    if row is not None and len(top & row) >= FEW:
        return "trainer"
    return "other"


def _is_deepspeed(document: Document) -> bool:
    top = document.top
    marks = sum(mark in top for mark in DEEPSPEED_MARKS)
    sections = sum(n in top and top[n].kind == "mapping" for n in ("fp16", "bf16", "optimizer", "scheduler"))
    return "zero_optimization" in top or marks + sections >= 2 or ("train_batch_size" in top and marks + sections >= 1)


def _training_row() -> set[str] | None:
    home = releases.table("transformers")
    row = home.signature("TrainingArguments") if home is not None else None
    return set(row["parameters"]) if row is not None else None


def top_values(document: Document) -> dict[str, Setting]:
    """Scalars at the top of a configuration by their names; lists of scalars as tuples."""
    found = {keys[0]: s for keys, s in document.settings.items() if len(keys) == 1}
    for name, node in document.top.items():
        if node.kind == "sequence" and all(i.kind == "scalar" for i in node.items):
            place = Place(document.path, node.line, node.column, node.end_column)
            items = tuple(i.value for i in node.items)
            text = ", ".join(i.text for i in node.items)
            key = document.key(name)
            own = Place(document.path, key.line, key.column, key.column + len(name)) if key is not None else place
            found[name] = Setting((name,), items, text, place, own, False, document.language)
    return found


def flag_setting(flag: Flag) -> Setting:
    """A flag as a setting; one without a value is on."""
    first = flag.value
    if first is None:
        return Setting((flag.name,), True, "", flag.place, flag.place, False, "shell")
    if len(flag.values) > 1:
        known = all(v.known for v in flag.values)
        value: Any = tuple(v.text for v in flag.values) if known else UNKNOWN
        text = " ".join(v.text for v in flag.values)
        return Setting((flag.name,), value, text, first.place, flag.place, False, "shell")
    value = first.text if first.known else UNKNOWN
    return Setting((flag.name,), value, first.text, first.place, flag.place, False, "shell")


def bags(project: Project) -> Sequence[Bag]:
    """All bags of the project, made once."""
    if "bags" not in project.memo:
        project.memo["bags"] = list(_bags(project))
    found: Sequence[Bag] = project.memo["bags"]
    return found


def training(project: Project) -> Iterator[Bag]:
    """The bags that set training: of the trainer, LLaMA-Factory and axolotl."""
    yield from (b for b in bags(project) if b.reader in ("trainer", "llamafactory", "axolotl"))


RECORDED = ("trainer_state.json",)
"""What a run writes down about itself: it holds values that were worked out, not asked for."""


def _bags(project: Project) -> Iterator[Bag]:
    settings = of(project)
    taken: set[int] = set()
    for launch in settings.launches:
        yield from _launched(project, settings, launch, taken)
    for document in settings.documents:
        if id(document) not in taken and not document.path.endswith(RECORDED):
            reader = reader_of(document)
            yield Bag(reader, top_values(document), document.path, _owner(document, reader), None, True, document)
    yield from _calls(project)


def _launched(project: Project, settings: Settings, launch: Launch, taken: set[int]) -> Iterator[Bag]:
    reader: Reader = "other"
    owner = ""
    if launch.launcher in ("vllm", "sglang"):
        reader = "vllm" if launch.launcher == "vllm" else "sglang"
    elif launch.launcher == "trl":
        reader, owner = "trainer", TRL_COMMANDS.get(launch.word, "")
    elif launch.launcher in ("llamafactory", "axolotl"):
        reader = "llamafactory" if launch.launcher == "llamafactory" else "axolotl"
    found: dict[str, Setting] = {}
    config = configuration_of(settings, launch)
    if config is not None:
        taken.add(id(config))
        found.update(top_values(config))
        if reader == "other":
            reader = reader_of(config)
            owner = _owner(config, reader)
    flags = launch.flags()
    found.update({flag.name: flag_setting(flag) for flag in flags})
    if reader == "other":
        row = _training_row() or set()
        if len(row & found.keys()) >= FEW or _parses_training(project, settings, launch):
            reader, owner = "trainer", owner or _library_class(project, settings, launch)
    yield Bag(reader, found, launch.path, owner, launch, not launch.open, config)


def configuration_of(settings: Settings, launch: Launch) -> Document | None:
    """The configuration of the project that the arguments of a launch name, that of DeepSpeed and accelerate apart."""
    for arg in launch.args:
        text = arg.text.partition("=")[2] or arg.text
        if arg.known and text.endswith((".yaml", ".yml", ".json", ".toml")):
            path = settings.find(text, launch.path)
            document = settings.document(path) if path is not None else None
            if document is not None and reader_of(document) not in ("deepspeed", "accelerate"):
                return document
    return None


def _parses_training(project: Project, settings: Settings, launch: Launch) -> bool:
    return bool(_library_class(project, settings, launch))


def _library_class(project: Project, settings: Settings, launch: Launch) -> str:
    """The class of training arguments whose fields the script takes as flags, "" if it does not."""
    from trainwreck.code.settings.parsers import parser_of

    path = settings.script_of(launch)
    parser = parser_of(project, path) if path is not None else None
    if parser is None:
        return ""
    return next((item.owner for item in parser.libraries if item.owner in TRAINING), "")


def _owner(document: Document, reader: Reader) -> str:
    if reader != "trainer":
        return ""
    top = document.top.keys()
    if top & {"num_generations", "max_completion_length", "reward_funcs", "num_iterations"}:
        return "GRPOConfig"
    if top & {"packing", "dataset_text_field", "dataset_kwargs", "completion_only_loss", "assistant_only_loss"}:
        return "SFTConfig"
    return "TrainingArguments"


def _calls(project: Project) -> Iterator[Bag]:
    """Calls of the classes of training arguments, and of the engines of vLLM and SGLang."""
    for name in TRAINING:
        for call in project.calls(name):
            if project.from_package(call, "transformers", "trl"):
                given = call.argument("deepspeed")
                found = dict_document(project, given, call.scope) if given is not None else None
                if found is not None:
                    yield Bag("deepspeed", top_values(found), found.path, document=found)
                yield Bag("trainer", _keywords(project, call), call.scope.module.path, name, call=call,
                          whole=not call.open_ended)  # fmt: skip
    for call in project.calls("initialize"):
        given = call.argument("config") or call.argument("config_params")
        if given is not None and project.called(call).startswith("deepspeed"):
            found = dict_document(project, given, call.scope)
            if found is not None:
                yield Bag("deepspeed", top_values(found), found.path, document=found)
    for name, package in ENGINES.items():
        for call in project.calls(name):
            if project.from_package(call, package):
                named = _keywords(project, call)
                if name == "LLM" and call.node.args and "model" not in named:
                    named["model"] = _setting(project, "model", call.node.args[0], call)
                reader: Reader = "vllm" if package == "vllm" else "sglang"
                yield Bag(reader, named, call.scope.module.path, name, call=call, whole=not call.open_ended)


def _keywords(project: Project, call: Call) -> dict[str, Setting]:
    return {k.arg: _setting(project, k.arg, k.value, call) for k in call.node.keywords if k.arg is not None}


def _setting(project: Project, name: str, node: Any, call: Call) -> Setting:
    known = values(project, node, call.scope)
    value = known[0].value if len(known) == 1 else UNKNOWN
    path, line, column, cell = at(node, call.scope)
    text = written(node)[:60]
    end = column + len(text) if node.end_lineno == node.lineno else column + 1
    place = Place(path, line, column, end, cell)
    key = Place(path, line, max(1, column - len(name) - 1), max(2, column - 1), cell)
    return Setting((name,), value, text, place, key, isinstance(value, str), "python")
