"""Options in configurations and launch scripts that the releases meant do not have any more.

YAML and JSON whose keys are fields of the training arguments (TRL, LLaMA-Factory, scripts with HfArgumentParser), and
the flags of ``trl``, ``vllm serve``, ``sglang.launch_server`` and of scripts that parse the arguments of a library.
Only what some release had is told: a key that none had may belong to the program itself.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from trainwreck.catalogue import releases
from trainwreck.catalogue.releases import TABLES, History, Rename
from trainwreck.code.beside import texts
from trainwreck.code.calls import Call
from trainwreck.code.libraries import configured
from trainwreck.code.outdated import grade
from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.rule import sign_of
from trainwreck.code.targets import Aim, aim, brackets
from trainwreck.core.evidence import Evidence, Where
from trainwreck.core.fix import Edit, Fix
from trainwreck.core.row import Row

if TYPE_CHECKING:
    from trainwreck.code.settings.launch import Launch

FEW = 3
"""Keys of the training arguments that a file must have to count as theirs. Configurations of other programs share one
or two (output_dir, learning_rate); those seen in the corpus with three were for the trainer."""
TRL = {
    "sft": "SFTConfig",
    "dpo": "DPOConfig",
    "grpo": "GRPOConfig",
    "kto": "KTOConfig",
    "reward": "RewardConfig",
    "rloo": "RLOOConfig",
}
"""The class whose fields are the flags of a command of trl."""
SERVERS = {"vllm": ("vllm", "AsyncEngineArgs"), "sglang": ("sglang", "ServerArgs")}
"""The class whose fields are the flags of a server."""
_KEY = pattern(r"""^(?:["']?)([A-Za-z_]\w*)(?:["']?)\s*:""")
_JSON_KEY = pattern(r'^\s{1,4}"([A-Za-z_]\w*)"\s*:')


class Option(Row):
    """One outdated option and where it is written."""

    name: str
    owner: str
    path: str
    line: int
    column: int
    text: str
    written: str
    where: Aim
    certain: bool
    history: History
    entry: Rename | None
    cell: int | None = None

    def evidence(self, rule: str) -> Evidence:
        new = self.entry.names.get(self.name, "") if self.entry is not None else ""
        instead = f"write {new}" if new.isidentifier() else new or (self.entry.instead if self.entry else "")
        pin = f" ({self.where.pin.text[:60]})" if self.where.pin is not None else ""
        package = self.history.table.package
        sentence = (
            f"`{self.written}` is no option from {package} {self.history.gone_by} on ({self.history.last} still had "
            f"it){pin}" + (f"; {instead}" if instead else "")
        )
        fix = Fix(instead) if instead else None
        if self.entry is not None and self.entry.safe and new.isidentifier() and self.written in self.text:
            dashed = new.replace("_", "-") if "-" in self.written[2:] else new
            start = self.column - 1
            line = self.text[:start] + self.text[start:].replace(self.written.lstrip("-"), dashed, 1)
            fix = Fix(instead, (Edit(self.path, self.line, self.line, line),), safe=True)
        proof = [[self.where.pin.path, self.where.pin.line, self.where.pin.text]] if self.where.pin is not None else []
        value = {"proof": proof} if proof and self.where.pin is not None and self.where.pin.line else None
        place = Where("config", path=self.path, line=self.line, column=self.column, key=self.name, cell=self.cell)
        severity = grade(self.where.pin is not None and self.certain)
        return Evidence(sign_of(rule), "direct", sentence, place, value, fix=fix, severity=severity)


def options(project: Project, rule: str, *, named: bool) -> Iterator[Evidence]:
    """Those that the rename table gives to the rule module, or (``named`` False) those that it gives to none."""
    if "options" not in project.memo:
        project.memo["options"] = [*_files(project), *_scripts(project)]
    name = sign_of(rule).removeprefix("code-")
    for item in project.memo["options"]:
        if (item.entry is not None and item.entry.rule == name) if named else item.entry is None:
            yield item.evidence(rule)


# ---------------------------------------------------------------------- keys of files
def _files(project: Project) -> Iterator[Option]:
    for path, text in texts(project, ("yaml", "json")):
        pattern = _JSON_KEY if path.lower().endswith(".json") else _KEY
        if "output_dir" not in text and "per_device" not in text:
            continue
        lines = text.split("\n")
        found = [(n, m[1], m.start(1) + 1) for n, line in enumerate(lines, 1) if (m := pattern.match(line))]
        keys = {name for _, name, _ in found}
        owner = _owner(keys)
        if owner is None:
            continue
        package, name, foreign = owner
        for number, key, column in found:
            option = _option(project, package, name, key, path)
            if option is None or (foreign and key != "evaluation_strategy" and option[0].pin is None):
                continue
            yield Option(key, name, path, number, column, lines[number - 1], key, *option)


def _owner(keys: set[str]) -> tuple[str, str, bool] | None:
    """(package, class, whether another program stands between) of a file with these keys."""
    home = releases.table("transformers")
    row = home.signature("TrainingArguments") if home is not None else None
    if row is None or len(keys & row["parameters"].keys()) < FEW or keys & {"base_model", "micro_batch_size"}:
        return None
    if {"stage", "finetuning_type"} <= keys or {"finetuning_type", "template"} <= keys:
        return "transformers", "Seq2SeqTrainingArguments", True
    if keys & {"packing", "dataset_text_field", "dataset_kwargs", "completion_only_loss", "assistant_only_loss"}:
        return "trl", "SFTConfig", False
    return "transformers", "TrainingArguments", False


_Found = tuple[Aim, bool, History, Rename | None]


def _option(project: Project, package: str, owner: str, name: str, path: str) -> _Found | None:
    """The releases and the history where ``owner`` had the option ``name`` and has it no more."""
    where = aim(project, package, path)
    if where is None:
        return None
    aims = {package: where}
    if package == "trl" and (base := aim(project, "transformers", path)) is not None:
        aims["transformers"] = base
    answer = releases.parameter(where.table, owner, name, brackets(aims))
    history = answer.history
    if answer.state != "gone" or history is None:
        return None
    culprit = history.table.package
    aimed = aims.get(culprit, where)
    certain = aimed.everywhere(history)
    entry = releases.rename(culprit, "argument", name, history.owner)
    return aimed, certain, history, entry


# ---------------------------------------------------------------------- flags of commands
def _scripts(project: Project) -> Iterator[Option]:
    if not configured(project):
        return
    from trainwreck.code.settings.index import of

    settings = of(project)
    lines = {path: text.split("\n") for path, text in texts(project, ("shell",))}
    for launch in settings.launches:
        flags = launch.flags()
        owner = SERVERS.get(launch.launcher) or _trl(launch) or _parsed(project, settings.script_of(launch))
        theirs = {f.name for f in flags} & {"per_device_train_batch_size", "save_strategy"}
        for flag in flags:
            # a script that is not here: only a flag that no other parser has, beside another one of the trainer
            lost = flag.name == "evaluation_strategy" and theirs and not settings.script_of(launch)
            use = owner or (("transformers", "TrainingArguments") if lost else None)
            option = _option(project, *use, flag.name, launch.path) if use is not None else None
            if option is not None and use is not None and flag.written.startswith("--"):
                rows, place = lines.get(launch.path, []), flag.place
                row = rows[place.line - 1] if place.cell is None and place.line <= len(rows) else ""
                column = row.find(flag.written, place.column - 1) + 1 or place.column
                yield Option(
                    flag.name, use[1], launch.path, place.line, column, row, flag.written, *option, cell=place.cell
                )


def _trl(launch: Launch) -> tuple[str, str] | None:
    return ("trl", TRL[launch.word]) if launch.launcher == "trl" and launch.word in TRL else None


def _parsed(project: Project, module: str | None) -> tuple[str, str] | None:
    """The class of a library whose fields the script of the project takes as flags."""
    for call in [*project.calls("HfArgumentParser", "TrlParser")] if module is not None else []:
        if call.scope.module.path == module:
            return _class(project, call)
    return None


def _class(project: Project, call: Call) -> tuple[str, str] | None:
    given = call.argument("dataclass_types", 0)
    items = given.elts if isinstance(given, ast.Tuple | ast.List) else [given] if given is not None else []
    for item in items:
        parts = project.dotted(item, call.scope).split(".")
        package = TABLES.get(parts[0])
        if package in ("transformers", "trl") and len(parts) > 1 and parts[-1].endswith(("Arguments", "Config")):
            home = releases.table(package)
            row: Mapping[str, object] | None = home.signature(parts[-1]) if home is not None else None
            if row is not None and parts[-1] not in ("ScriptArguments", "ModelConfig"):
                return package, parts[-1]
    return None
