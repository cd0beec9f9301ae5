"""Settings from outside: the command line and the environment, with their defaults."""

from __future__ import annotations

from trainwreck.code.rehearsal.calling import Asked
from trainwreck.code.rehearsal.domain import (
    UNKNOWN,
    Items,
    Table,
    Value,
)
from trainwreck.code.rehearsal.library import function, method
from trainwreck.code.rehearsal.rehearsing import Rehearsing
from trainwreck.code.rehearsal.storing import GROUND


@function("os.environ.get", "os.getenv")
def _environment(run: Rehearsing, asked: Asked) -> Value:
    default = asked.get("default", 1)
    name = asked.get("key", 0)
    name = name if isinstance(name, str) else ""
    return default if isinstance(default, GROUND) else run.node("option", (), asked.place, name=name)


@function("argparse.ArgumentParser", "argparse.ArgumentParser.add_argument_group")
def _parser(run: Rehearsing, asked: Asked) -> Value:
    made = run.thing("argparse.ArgumentParser", asked.args, asked.options, asked.place)
    made.attributes["defaults"] = Table({})
    return made


@method("argparse.ArgumentParser", "add_argument")
def _add_argument(run: Rehearsing, asked: Asked) -> Value:
    names = [a for a in asked.args if isinstance(a, str)]
    long = next((n for n in names if n.startswith("--")), names[0] if names else "")
    name = asked.options.get("dest") or long.lstrip("-").replace("-", "_")
    default = asked.options.get("default")
    if "default" not in asked.options:
        action = asked.options.get("action")
        default = {"store_true": False, "store_false": True}.get(action) if isinstance(action, str) else None
        if default is None and (asked.options.get("required") is True or not long.startswith("-")):
            default = run.node("option", (), asked.place, name=str(name))
    run.parser_defaults(asked.receiver)[str(name)] = default
    return UNKNOWN


@method("argparse.ArgumentParser", "add_argument_group", "add_mutually_exclusive_group")
def _group(run: Rehearsing, asked: Asked) -> Value:
    return asked.receiver


@method("argparse.ArgumentParser", "set_defaults")
def _set_defaults(run: Rehearsing, asked: Asked) -> Value:
    run.parser_defaults(asked.receiver).update(asked.options)
    return None


@method("argparse.ArgumentParser", "parse_args", "parse_known_args")
def _parse(run: Rehearsing, asked: Asked) -> Value:
    made = run.thing("argparse.Namespace", (), {}, asked.place)
    made.attributes.update(run.parser_defaults(asked.receiver))
    return made if asked.name == "parse_args" else (made, Items([]))
