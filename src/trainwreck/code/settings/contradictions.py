"""The table of contradictory arguments (``catalogue.arguments``) asked with what configurations and flags say."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from trainwreck.catalogue import arguments
from trainwreck.catalogue.arguments import ABSENT, UNKNOWN, Contradiction
from trainwreck.code.project import Project
from trainwreck.code.rule import sign_of
from trainwreck.code.settings.bags import Bag, bags
from trainwreck.code.settings.told import told
from trainwreck.code.settings.tree import Setting
from trainwreck.core.evidence import Evidence

GROUPS = {"trainer": "trainer", "llamafactory": "trainer", "vllm": "engine"}
"""The group of the table that speaks of what a reader takes."""
OWNERS = {"vllm": "LLM", "llamafactory": "Seq2SeqTrainingArguments"}
_WORDS = {"true": True, "false": False, "none": None, "null": None}


def contradicted_settings(project: Project, rule: str) -> Iterator[Evidence]:
    """Configurations and commands that fulfil an entry of the table for the rule module ``rule``."""
    name = sign_of(rule).removeprefix("code-")
    wanted = [entry for entry in arguments.contradictions() if entry.id == name]
    for bag in bags(project) if wanted else ():
        group = GROUPS.get(bag.reader)
        if bag.python or group is None:
            continue
        owner = bag.owner or OWNERS.get(bag.reader, "TrainingArguments")
        given = {key: plain(setting) for key, setting in bag.values.items()}
        closed = bag.launch is not None and bag.whole and bag.reader != "llamafactory"
        for entry in wanted:
            if entry.group == group and arguments.holds(entry, owner, given, closed=closed):
                yield from _told(bag, entry, owner, given, closed, rule)


def plain(setting: Setting) -> Any:
    """The value as the table compares it: numbers and truth of flags are text on the command line."""
    value = setting.value
    if isinstance(value, str) and setting.language == "shell":
        if value.lower() in _WORDS:
            return _WORDS[value.lower()]
        number = setting.number
        if number is not None:
            return int(number) if number.is_integer() and "." not in value and "e" not in value.lower() else number
        return value
    if isinstance(value, str) and not setting.quoted and setting.number is not None:
        return setting.number
    return value if isinstance(value, bool | int | float | str) or value is None else UNKNOWN


def _told(
    bag: Bag, entry: Contradiction, owner: str, given: dict[str, Any], closed: bool, rule: str
) -> Iterator[Evidence]:
    group = arguments.groups()[entry.group]
    named = {group.aliases.get(name, name): value for name, value in given.items()}
    settings = {group.aliases.get(name, name): setting for name, setting in bag.values.items()}
    words: dict[str, Any] = {}
    proof: list[Setting] = []
    for condition in entry.conditions:
        others = [v for k, v in condition.items() if k.endswith("_key") or k in ("differs_from", "no_multiple_of")]
        for key in (condition["key"], *others):
            value = arguments.value_of(group, owner, named, closed, key)
            words[key] = "?" if value is UNKNOWN or value is ABSENT else value
            if key in settings:
                proof.append(settings[key])
    place = next((settings[name] for name in entry.place if name in settings), None) or next(iter(proof), None)
    if place is not None:
        rest = [s for s in proof if s is not place]
        yield told(rule, place, entry.says.format_map(words), proof=rest, fix=entry.fix or None)
