"""Everything beside the Python of a program that sets something: configurations, commands, variables; kept per project.

Files are parsed when first asked for. What names a file in a script or a configuration is matched with the files of the
project by its path, else by its last parts where only one fits.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from posixpath import normpath

from trainwreck.code.beside import texts
from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.settings.launch import Launch, launches
from trainwreck.code.settings.shell import Command, commands
from trainwreck.code.settings.tree import Document, Language, document
from trainwreck.core.program import Module

MAX_CHARS = 200_000
"""A longer YAML, JSON or TOML file is data, not a configuration that somebody wrote."""
KNOBS = pattern(
    r"learning_rate|(?:^|[\"'\s])lr[\"']?\s*[:=]|batch_size|train_micro_batch|zero_optimization|mixed_precision"
    r"|num_processes|per_device|max_steps|num_train_epochs|(?:^|\s)(?:max_)?epochs\s*:|optimizer|scheduler|bf16|fp16"
    r"|base_model|model_name_or_path|finetuning_type|lora_|_target_\s*:|(?:^|\n)defaults\s*:|seq_?len|max_length"
    r"|hidden_size|dropout|weight_decay|warmup|gradient_accumulation|tensor.parallel|max.model.len|dataset",
    re.MULTILINE,
)
"""Words of configurations of training and serving; files without any are not looked at."""
KINDS: Sequence[tuple[str, Language]] = (("yaml", "yaml"), ("json", "json"), ("settings-toml", "toml"))
_SHELL_MAGIC = pattern(r"^(\s*)pass  # ([!%].*)$|^# ([!%]?.*)$")
_HERE = pattern(
    r"^[ \t]*cat[ \t]*(?:>[ \t]*(?P<before>\S+\.(?:json|ya?ml))[ \t]*)?"
    r"<<-?[ \t]*(?P<quote>['\"]?)(?P<end>\w+)(?P=quote)[ \t]*"
    r"(?:>[ \t]*(?P<after>\S+\.(?:json|ya?ml))[ \t]*)?\n(?P<body>.*?)^[ \t]*(?P=end)[ \t]*$",
    re.MULTILINE | re.DOTALL,
)
_DOCKER = pattern(r"^(?P<word>RUN|CMD|ENTRYPOINT|ENV)\s+(?P<rest>.*)$", re.IGNORECASE)


class Settings:
    """The settings of one project. ``of(project)`` gives the one that is kept."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self._documents: dict[str, Document | None] = {}
        self._texts: dict[str, tuple[Language, str]] = {}
        for kind, language in KINDS:
            for path, text in texts(project, (kind,)):
                self._texts[path] = (language, text)
        self._written: dict[str, tuple[str, Language, str]] = {}
        for path, text in texts(project, ("shell",)):
            self._here_documents(path, text)
        self._by_base: dict[str, list[str]] = {}
        for path in dict.fromkeys([*self._texts, *project.walked, *self._written]):
            self._by_base.setdefault(path.rsplit("/", 1)[-1], []).append(path)

    # ------------------------------------------------------------------ configurations
    def text(self, path: str) -> str:
        return self._texts.get(path, ("yaml", ""))[1]

    @property
    def paths(self) -> Sequence[str]:
        """The configuration files of the project."""
        return list(self._texts)

    def document(self, path: str) -> Document | None:
        """The configuration in this file, None where there is none that can be read."""
        if path not in self._documents:
            self._documents[path] = self._read(path)
        return self._documents[path]

    def _here_documents(self, path: str, text: str) -> None:
        """Configurations that a script writes with ``cat > file <<EOF``; lines stay those of the script."""
        # an end that never comes is looked for to the end of the text, so many of them are not looked for at all
        for found in _HERE.finditer(text) if 0 < text.count("<<") < 200 else ():
            name = (found["after"] or found["before"] or "$").strip("\"'")
            body = found["body"]
            if "$" in name or len(body) > MAX_CHARS:
                continue
            language: Language = "json" if name.endswith(".json") else "yaml"
            blank = "\n" * text.count("\n", 0, found.start("body"))
            self._written[normpath(name)] = (path, language, blank + body)

    def _read(self, path: str) -> Document | None:
        shown = path
        if path in self._texts:
            language, text = self._texts[path]
        else:
            shown, language, text = self._written.get(path, (path, "yaml", ""))
        if not text.strip() or len(text) > MAX_CHARS or "{{" in text or "{%" in text:
            return None
        if language == "yaml":
            from trainwreck.code.settings.yaml_file import read_yaml as read
        elif language == "json":
            from trainwreck.code.settings.json_file import read_json as read
        else:
            from trainwreck.code.settings.toml_file import read_toml as read
        root = read(text.replace("\r\n", "\n").replace("\r", "\n"))
        return document(shown, language, root) if root is not None and root.kind == "mapping" else None

    @cached_property
    def documents(self) -> Sequence[Document]:
        """The configurations that speak of training or serving."""
        found = []
        every = [(p, t) for p, (_, t) in self._texts.items()] + [(p, t) for p, (_, _, t) in self._written.items()]
        for path, text in every:
            if KNOBS.search(text[:MAX_CHARS]) and (read := self.document(path)) is not None:
                found.append(read)
        return found

    def find(self, written: str, near: str = "") -> str | None:
        """The file of the project that is written as ``written`` in the file ``near``; None if none or several fit."""
        wanted = written.strip().replace("\\", "/")
        while wanted.startswith("./"):
            wanted = wanted[2:]
        if not wanted or "\x00" in wanted or "$" in wanted:
            return None
        fitting = self._by_base.get(wanted.rsplit("/", 1)[-1], [])
        folder = near.rpartition("/")[0]
        for base in dict.fromkeys((folder, "")):
            exact = normpath(f"{base}/{wanted}" if base else wanted)
            if exact in fitting:
                return exact
        tail = re.sub(r"^(?:\.\./)+|^/", "", wanted)
        ending = [p for p in fitting if p == tail or p.endswith("/" + tail) or ("/" + wanted).endswith("/" + p)]
        return ending[0] if len(ending) == 1 else None

    def named(self, base: str) -> Sequence[str]:
        """The files of the project with this name, whatever their directory."""
        return self._by_base.get(base, [])

    # ------------------------------------------------------------------ commands
    @cached_property
    def scripts(self) -> Sequence[tuple[str, Sequence[Command]]]:
        """The commands of each script and notebook, in order."""
        found: list[tuple[str, Sequence[Command]]] = []
        for path, text in texts(self.project, ("shell",)):
            if path.rsplit("/", 1)[-1].lower().endswith("dockerfile"):
                text = _docker(text)
            found.append((path, commands(path, text.replace("\r\n", "\n"))))
        for path, walked in self.project.walked.items():
            if path.endswith(".ipynb"):
                inside = list(_cells(walked.top.module))
                if inside:
                    found.append((path, inside))
        return found

    @cached_property
    def launches(self) -> Sequence[Launch]:
        """Every start of a program, over all scripts and notebooks."""
        return [launch for _, found in self.scripts for launch in launches(found)]

    def script_of(self, launch: Launch) -> str | None:
        """The path of the Python file of the project that ``launch`` starts."""
        if launch.script:
            return self.find(launch.script, launch.path) if launch.script.endswith(".py") else None
        if launch.module:
            stem = launch.module.replace(".", "/")
            for path in self.project.walked:
                plain = path.removesuffix(".py").removesuffix("/__main__")
                if plain == stem or plain.endswith("/" + stem):
                    return path
        return None


def of(project: Project) -> Settings:
    """The settings of ``project``, made once."""
    if "settings" not in project.memo:
        project.memo["settings"] = Settings(project)
    found: Settings = project.memo["settings"]
    return found


def _docker(text: str) -> str:
    """A Dockerfile as a script: instructions blanked out, so that every word keeps its place."""
    rows: list[str] = []
    for row in text.split("\n"):
        found = _DOCKER.match(row)
        if found is None:
            rows.append(row if rows and rows[-1].rstrip().endswith("\\") else "")
            continue
        word, rest = found["word"].upper(), row[found.start("rest") :]
        if word in ("CMD", "ENTRYPOINT") and rest.lstrip().startswith("["):
            rest = re.sub(r'[\[\]",]', " ", rest)
        # blanks instead of the instruction keep the columns; those of variables move by three
        rows.append(f"export {rest}" if word == "ENV" and "=" in rest else " " * found.start("rest") + rest)
    return "\n".join(rows)


def _cells(module: Module) -> Iterator[Command]:
    """The shell lines of a notebook: ``!command``, ``%env A=b``, cells of ``%%bash``."""
    starts = list(module.cells or ())
    for number, start in enumerate(starts, 1):
        end = starts[number] - 1 if number < len(starts) else len(module.lines)
        rows = module.lines[start - 1 : end]
        if not any("# " in row for row in rows):
            continue
        text = _cell_script(rows)
        if text.strip():
            yield from commands(module.path, text, cell=number)


def _cell_script(rows: Sequence[str]) -> str:
    body: list[str] = []
    bash = False
    continued = False
    for row in rows:
        found = _SHELL_MAGIC.match(row)
        raw = (found[1] + found[2] if found[2] else found[3]) if found else None
        if raw is not None and re.match(r"\s*%%(?:bash|sh|script bash)\b", raw):
            bash = True
            body.append("")
        elif raw is not None and (bash or continued):
            body.append(raw)
            continued = raw.rstrip().endswith("\\")
        elif raw is not None and (magic := re.match(r"(\s*)(!+|%(?:env|set_env|pip|sx|system)\b)(.*)$", raw)):
            line = magic[3]
            word = magic[2].strip()
            if word in ("%env", "%set_env"):
                pair = re.match(r"\s+(\w+)(?:\s*=\s*|\s+)(.*)$", line)
                # at the end of the blanks that stood before the name, so that the value keeps its column
                body.append(f"export {pair[1]}={pair[2]}" if pair else "")
            else:
                body.append(magic[1] + " " * len(magic[2]) + ("" if word != "%pip" else "pip ") + line)
            continued = raw.rstrip().endswith("\\")
        else:
            body.append("")
            continued = False
    return "\n".join(body)
