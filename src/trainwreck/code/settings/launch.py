"""What a command starts: which launcher with how many processes, which script or module, with which arguments."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field

from trainwreck.catalogue.tables import settings_table
from trainwreck.code.pattern import pattern
from trainwreck.code.settings.shell import HOLE, Arg, Command, Variable, commands
from trainwreck.code.settings.tree import Place
from trainwreck.core.frozen import Frozen
from trainwreck.core.row import Row

_PYTHON = pattern(r"(?:python|pypy)[\d.]*$|python\d?\.exe$")
_WRAPPERS: Mapping[str, frozenset[str]] = {
    "nohup": frozenset(),
    "exec": frozenset(),
    "time": frozenset(),
    "sudo": frozenset(),
    "unbuffer": frozenset(),
    "nice": frozenset(["-n"]),
    "ionice": frozenset(["-c", "-n"]),
    "stdbuf": frozenset(["-i", "-o", "-e"]),
    "timeout": frozenset(["-s", "-k"]),
    "numactl": frozenset(),
    "taskset": frozenset(),
    "env": frozenset(["-u"]),
    "xvfb-run": frozenset(["-s", "-n"]),
    "srun": frozenset(["-n", "-N", "-c", "-w", "-p", "-t", "-A", "-J", "-o", "-e", "-G"]),
    "mpirun": frozenset(["-np", "-n", "-H", "-x", "-bind-to", "-map-by"]),
    "poetry": frozenset(),
    "pdm": frozenset(),
    "uv": frozenset(["--with", "--python", "-p", "--extra", "--group", "--project", "--directory"]),
    "pixi": frozenset(["-e", "--environment"]),
    "conda": frozenset(["-n", "--name", "-p", "--prefix"]),
    "micromamba": frozenset(["-n", "--name", "-p", "--prefix"]),
    "wandb": frozenset(),
}
"""Programs that run another one, with those of their options that take a separate value."""
_RUNNING = frozenset(["poetry", "pdm", "uv", "pixi", "conda", "micromamba"])
"""Of these, the ones that need the word ``run``."""
_MODULES = {
    "torch.distributed.run": "torchrun",
    "torch.distributed.launch": "torchrun",
    "accelerate.commands.launch": "accelerate",
    "accelerate.commands.accelerate_cli": "accelerate",
    "deepspeed.launcher.runner": "deepspeed",
    "deepspeed": "deepspeed",
}
SERVERS = {
    "vllm.entrypoints.openai.api_server": "vllm",
    "vllm.entrypoints.api_server": "vllm",
    "sglang.launch_server": "sglang",
}


class Flag(Row):
    """One option: ``name`` without dashes, dashes inside as underscores. ``values`` are the words that follow it up to
    the next option; ``joined`` where the value is written with ``=``."""

    name: str
    written: str
    values: tuple[Arg, ...]
    place: Place
    joined: bool = False

    @property
    def value(self) -> Arg | None:
        return self.values[0] if self.values else None

    @property
    def text(self) -> str | None:
        """The value where it is one and known."""
        return self.values[0].text if len(self.values) == 1 and self.values[0].known else None

    @property
    def integer(self) -> int | None:
        text = self.text or ""
        return int(text) if re.fullmatch(r"\d{1,9}", text) else None


class Launch(Frozen):
    """A program that a command starts.

    ``launcher``: python, torchrun, accelerate, deepspeed, vllm, sglang, trl, llamafactory, axolotl. ``options`` are the
    launcher's own, ``args`` what the script gets. ``script`` is a path as written, ``module`` that of ``-m``.
    ``open``: further arguments may come from what the script does not say. ``env``: the variables it would see.
    """

    command: Command
    launcher: str
    options: Sequence[Flag]
    script: str
    module: str
    args: Sequence[Arg]
    place: Place
    env: Mapping[str, Variable] = field(repr=False)
    word: str = ""
    wrappers: frozenset[str] = frozenset()

    @property
    def open(self) -> bool:
        return any(a.open for a in self.args)

    @property
    def path(self) -> str:
        return self.place.path

    def option(self, *names: str) -> Flag | None:
        """The last of the launcher's options with one of these names."""
        return next((f for f in reversed(self.options) if f.name in names), None)

    def flags(self) -> list[Flag]:
        """The options among the arguments of the script."""
        return list(flags(self.args))

    def flag(self, *names: str) -> Flag | None:
        return next((f for f in reversed(self.flags()) if f.name in names), None)

    def variable(self, name: str) -> Variable | None:
        return self.env.get(name)


_FLAG = pattern(r"--?[A-Za-z][\w.-]*$")


def flags(args: Sequence[Arg]) -> Iterator[Flag]:
    """Options with their values; a negative number is a value."""
    at = 0
    while at < len(args):
        arg = args[at]
        at += 1
        name, equals, rest = arg.text.partition("=")
        if not _FLAG.match(name):
            continue
        if equals:
            start = arg.place.column + len(name) + 1
            end = max(arg.place.end_column, start + 1)
            value = Arg(rest, Place(arg.place.path, arg.place.line, start, end, arg.place.cell))
            yield Flag(canonical(name), name, (value,), arg.place, True)
            continue
        first = at
        while at < len(args) and not _FLAG.match(args[at].text.partition("=")[0]):
            at += 1
        yield Flag(canonical(name), name, tuple(args[first:at]), arg.place)


def canonical(name: str) -> str:
    return name.lstrip("-").replace("-", "_")


def launches(found: Sequence[Command]) -> list[Launch]:
    """What these commands start, in order; commands that start no Python are left out."""
    started = []
    for command in [inner for outer in found for inner in (*_inside(outer), outer)]:
        launch = _launch(command)
        if launch is not None:
            started.append(launch)
    return started


def _inside(outer: Command) -> Sequence[Command]:
    """The commands of ``bash -c "…"`` and ``eval "…"``, each word at the place of the text."""
    words = list(outer.args)
    while words and (name := words[0].text.rsplit("/", 1)[-1]) in _WRAPPERS:
        words = _unwrapped(name, words, {}) or []
    texts: list[Arg] = []
    if len(words) > 2 and words[0].text.rsplit("/", 1)[-1] in ("bash", "sh") and words[1].text in ("-c", "-lc", "-ec"):
        texts = words[2:3]
    elif len(words) > 1 and words[0].text == "eval":
        texts = [Arg(" ".join(a.text for a in words[1:]), words[1].place)]
    found: list[Command] = []
    for text in texts:
        for inner in commands(text.place.path, text.text):
            args = [Arg(a.text, text.place) for a in inner.args]
            own = {n: Variable(v.text, text.place, None, True) for n, v in inner.env.items() if v.words is None}
            found.append(Command(args, outer.certain and inner.certain, {**outer.env, **own}))
    return found


def _launch(command: Command) -> Launch | None:
    args = list(command.args)
    env = dict(command.env)
    wrappers: set[str] = set()
    while args:
        name = args[0].text.rsplit("/", 1)[-1]
        if name not in _WRAPPERS:
            break
        wrappers.add(name)
        rest = _unwrapped(name, args, env)
        if rest is None or len(rest) >= len(args):
            return None
        args = rest
    if not args or HOLE in args[0].text:
        return None
    head, name = args[0], args[0].text.rsplit("/", 1)[-1]
    rest = args[1:]
    launcher = "python" if _PYTHON.match(name) else name if name in ("torchrun", "deepspeed") else ""
    kept = frozenset(wrappers)
    if name in ("accelerate", "accelerate-launch"):
        if name == "accelerate":
            if not rest or rest[0].text != "launch":
                return None
            rest = rest[1:]
        launcher = "accelerate"
    elif name in ("vllm", "sglang"):
        if not rest or rest[0].text != "serve":
            return None
        return Launch(command, name, (), "", "", rest[1:], head.place, env, "serve", kept)
    elif name in ("trl", "llamafactory-cli", "lmf", "axolotl"):
        launcher = {"llamafactory-cli": "llamafactory", "lmf": "llamafactory"}.get(name, name)
        word = rest[0].text if rest else ""
        return Launch(command, launcher, (), "", "", rest[1:], head.place, env, word, kept)
    elif not launcher and name.endswith(".py"):
        return Launch(command, "python", (), args[0].text, "", rest, head.place, env, "", kept)
    if not launcher:
        return None
    return _program(command, launcher, rest, head, env, kept)


def _program(
    command: Command, launcher: str, rest: list[Arg], head: Arg, env: dict[str, Variable], wrappers: frozenset[str]
) -> Launch | None:
    options, at, module = _options(launcher, rest)
    if launcher == "python" and module:
        if module in _MODULES:
            return _program(command, _MODULES[module], rest[at:], head, env, wrappers)
        if module in SERVERS:
            return Launch(command, SERVERS[module], (), "", module, rest[at:], head.place, env, "serve", wrappers)
        return Launch(command, "python", options, "", module, rest[at:], head.place, env, "", wrappers)
    if at >= len(rest):
        return None
    target = rest[at].text
    if HOLE in target and not target.endswith(".py"):
        return None
    named = any(f.name in ("m", "module") for f in options)
    script, module = ("", target) if named else (target, "")
    return Launch(command, launcher, options, script, module, rest[at + 1 :], head.place, env, "", wrappers)


def _options(launcher: str, args: Sequence[Arg]) -> tuple[list[Flag], int, str]:
    """The launcher's own options, where the script stands, and the module of ``python -m``."""
    alone = settings_table("launchers")[launcher]["alone"]
    found: list[Flag] = []
    at = 0
    while at < len(args):
        text = args[at].text
        if not text.startswith("-") or text == "-":
            break
        name, equals, value = text.partition("=")
        plain = canonical(name)
        if launcher == "python" and plain == "m":
            module = args[at + 1].text if at + 1 < len(args) else ""
            return found, at + 2, module
        if launcher == "python" and plain == "c":
            return found, len(args), ""
        if equals:
            place = args[at].place
            start = place.column + len(name) + 1
            inner = Arg(value, Place(place.path, place.line, start, max(place.end_column, start + 1), place.cell))
            found.append(Flag(plain, name, (inner,), place, True))
        elif plain in alone or (launcher == "python" and len(plain) > 1):
            found.append(Flag(plain, name, (), args[at].place))
        else:
            following = tuple(args[at + 1 : at + 2])
            found.append(Flag(plain, name, following, args[at].place))
            at += 1
        at += 1
    return found, at, ""


def _unwrapped(name: str, args: list[Arg], env: dict[str, Variable]) -> list[Arg] | None:
    """The command that a wrapper runs, None where it runs none."""
    taking = _WRAPPERS[name]
    rest = args[1:]
    if name in _RUNNING:
        place = next((n for n, a in enumerate(rest) if a.text == "run"), None)
        if place is None:
            return None
        rest = rest[place + 1 :]
    seen_number = name != "timeout"
    while rest:
        text = rest[0].text
        if text.startswith("-") and len(text) > 1:
            rest = rest[2:] if text in taking else rest[1:]
        elif name == "env" and re.match(r"[A-Za-z_]\w*=", text):
            key, _, value = text.partition("=")
            env[key] = Variable(value, rest[0].place, None, True)
            rest = rest[1:]
        elif name in ("timeout", "taskset") and not seen_number:
            rest, seen_number = rest[1:], True
        else:
            break
    return rest
