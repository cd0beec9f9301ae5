"""Whether a parser takes an option, and which one is meant where it does not."""

from __future__ import annotations

from typing import Literal

from trainwreck.catalogue import releases
from trainwreck.code.project import Project
from trainwreck.code.settings.parsers import Library, Parser
from trainwreck.code.targets import aim, brackets

CLOSE = 0.8
"""Similarity (difflib) from which a known name is offered as the one that was meant."""
SLIP = 0.9
"""Similarity from which a name counts as a slip of a known one: one or two letters of a name of usual length."""

Verdict = Literal["taken", "refused", "unknown"]
OWN_OF_TRL = frozenset(["config", "env"])
"""TrlParser's own options."""


def verdict(project: Project, parser: Parser, written: str) -> Verdict:
    """Whether the option written like ``--lr`` is one of the parser's."""
    if parser.option(written) is not None or written in ("-h", "--help"):
        return "taken"
    if not written.startswith("--") and parser.kind == "argparse":
        short = [n for o in parser.options for n in o.names if not n.startswith("--")]
        if any(written.startswith(n) for n in short if n.startswith("-")):
            return "taken"  # -n5, or several short options in one word
    name = written.lstrip("-").replace("-", "_")
    if parser.kind == "trl" and name in OWN_OF_TRL:
        return "taken"
    beginnings = parser.beginning(written) if written.startswith("--") else []
    if beginnings:
        return "taken"
    if parser.kind == "tyro" and ("." in written or parser.option("--" + name) is not None):
        return "unknown" if "." in written else "taken"
    states = [_library(project, parser, item, name) for item in parser.libraries]
    if "taken" in states or "unknown" in states:
        return "taken" if "taken" in states else "unknown"
    return "refused"


def _library(project: Project, parser: Parser, item: Library, name: str) -> Verdict:
    where = aim(project, item.package, parser.path)
    if where is None:
        return "unknown"
    aims = {item.package: where}
    if item.package == "trl" and (base := aim(project, "transformers", parser.path)) is not None:
        aims["transformers"] = base
    for wanted in (name, name.removeprefix("no_")):
        answer = releases.parameter(where.table, item.owner, wanted, brackets(aims))
        if answer.state == "there":
            return "taken"
        if answer.state != "gone" or answer.history is not None:
            return "unknown"  # what releases removed is told by the rules of the versions
    # any field may be meant by its beginning
    if any(n.startswith(name) for n in library_names(item)):
        return "unknown"
    return "refused"


def library_names(item: Library) -> set[str]:
    """Names of the fields of a class of a library and of its bases, over all releases."""
    found: set[str] = set()
    todo = [(item.package, item.owner)]
    seen: set[str] = set()
    while todo:
        package, owner = todo.pop()
        home = releases.table(package)
        row = home.signature(owner) if home is not None else None
        if row is None and package == "trl":
            home = releases.table("transformers")
            row = home.signature(owner) if home is not None else None
            package = "transformers"
        if row is None or owner in seen:
            continue
        seen.add(owner)
        found |= set(row["parameters"])
        for entry in row["bases"]:
            names = [entry] if isinstance(entry, str) else entry[2]
            todo += [(package, n.split("[", 1)[0]) for n in names]
    return found


def nearest(project: Project, parser: Parser, name: str) -> str:
    """The name that was probably meant, "" where none is close."""
    own = {n.lstrip("-").replace("-", "_") for o in parser.options for n in o.names if not o.positional}
    every = own.union(*(library_names(item) for item in parser.libraries))
    return close(name.lstrip("-").replace("-", "_"), every, CLOSE)


def close(name: str, known: set[str] | frozenset[str], least: float = SLIP) -> str:
    """The known name that ``name`` is a slip of."""
    from difflib import get_close_matches  # most names are known

    return next(iter(get_close_matches(name, sorted(known), 1, least)), "")
