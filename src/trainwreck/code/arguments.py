"""Contradictions of arguments in Python calls: the table of ``catalogue.arguments`` asked with what calls are given."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from trainwreck.catalogue import arguments
from trainwreck.catalogue.arguments import ABSENT, UNKNOWN, Contradiction, Group
from trainwreck.code.calls import Call
from trainwreck.code.facts import complete, only, option
from trainwreck.code.libraries import configured
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting, sign_of
from trainwreck.code.scopes import Scope
from trainwreck.code.seek import keyword_place
from trainwreck.code.values import Proof, values
from trainwreck.core.evidence import Evidence
from trainwreck.core.fix import Fix

METHODS = frozenset(["generate"])
"""Names of a group that are methods of an object, not imported."""


def contradicted(project: Project, rule: str) -> Iterator[Evidence]:
    """Calls, configurations and commands that fulfil an entry of the table for the rule module ``rule`` (its name)."""
    if not configured(project):
        return
    from trainwreck.code.settings.contradictions import contradicted_settings

    name = sign_of(rule).removeprefix("code-")
    for entry in arguments.contradictions():
        if entry.id != name:
            continue
        group = arguments.groups()[entry.group]
        for call in _calls(project, group):
            given = given_to(project, call)
            closed = complete(project, call)
            if arguments.holds(entry, call.name, given, closed=closed):
                text = _sentence(entry, group, call.name, given, closed)
                fix = Fix(entry.fix) if entry.fix else None
                yield sighting(rule, _place(call, entry), text, proof=_proof(project, call, entry), fix=fix)
    yield from contradicted_settings(project, rule)


def _calls(project: Project, group: Group) -> Iterator[Call]:
    for call in project.calls(*group.names):
        if project.resolve(call.node.func, call.scope) is not None:
            continue
        method = call.name in METHODS and uses(project, call.scope, group.package)
        if method or imported(project, call, group.package):
            yield call


def uses(project: Project, scope: Scope, package: str) -> bool:
    """True if the module of ``scope`` imports ``package``, or a file of the program that does."""
    known: dict[tuple[str, str], bool] = project.memo.setdefault("uses", {})
    key = (scope.module.path, package)
    if key not in known:
        roots = {
            b.target.split(".", 1)[0]
            for s in project.walked[scope.module.path].scopes
            for bindings in s.bindings.values()
            for b in bindings
            if b.kind == "import"
        }
        known[key] = bool(roots & set(BUILDS.get(package, (package,))))
    return known[key]


BUILDS: Mapping[str, Sequence[str]] = {
    "transformers": ("transformers", "trl", "sentence_transformers", "optimum"),
    "peft": ("peft", "trl"),
}
"""Packages whose classes take the arguments of another one."""


def imported(project: Project, call: Call, package: str) -> bool:
    """True if what is called comes from ``package`` or one that builds on it (by its import)."""
    root = project.called(call).split(".", 1)[0]
    return root in BUILDS.get(package, (package,))


def given_to(project: Project, call: Call) -> Mapping[str, Any]:
    """What a call is given by keyword: values by name, UNKNOWN where one is not a single constant.

    An argument that is set as an attribute somewhere later (``args.fp16 = False``) is unknown.
    """
    known: dict[ast.Call, dict[str, Any]] = project.memo.setdefault("given", {})
    if call.node not in known:
        set_later = attributes_set(project)
        found: dict[str, Any] = {}
        for item in call.node.keywords:
            names = [item.arg] if item.arg is not None else _keys(project, call, item.value)
            for name in names:
                value = only(project, option(project, call, name))
                found[name] = UNKNOWN if value is ... or name in set_later else value
                if value is None and not _none(option(project, call, name)):
                    found[name] = UNKNOWN
        known[call.node] = found
    return known[call.node]


def attributes_set(project: Project) -> frozenset[str]:
    """Names of attributes that are assigned on any plain object (``args.x = ...``), not on ``self``."""
    if "attributes set" not in project.memo:
        project.memo["attributes set"] = frozenset(
            name.partition(".")[2] for scope in project.scopes for name in scope.bindings if "." in name
        )
    found: frozenset[str] = project.memo["attributes set"]
    return found


def _keys(project: Project, call: Call, value: ast.expr) -> list[str]:
    from trainwreck.code.values import literal

    found = literal(project, value, call.scope)
    if found is None or not isinstance(found[0], ast.Dict):
        return []
    return [k.value for k in found[0].keys if isinstance(k, ast.Constant) and isinstance(k.value, str)]


def _none(at: tuple[ast.expr, Scope] | None) -> bool:
    return at is not None and isinstance(at[0], ast.Constant) and at[0].value is None


def _sentence(entry: Contradiction, group: Group, owner: str, given: Mapping[str, Any], closed: bool) -> str:
    named = {group.aliases.get(name, name): value for name, value in given.items()}
    words = {}
    for condition in entry.conditions:
        for key in (condition["key"], *(v for k, v in condition.items() if k.endswith("_key") or k in _OTHER)):
            value = arguments.value_of(group, owner, named, closed, key)
            words[key] = "?" if value in (UNKNOWN, ABSENT) else value
    return entry.says.format_map(words)


_OTHER = ("differs_from", "no_multiple_of")


def _place(call: Call, entry: Contradiction) -> Call | tuple[ast.AST, Scope]:
    return next((place for name in entry.place if (place := keyword_place(call, name)) is not None), call)


def _proof(project: Project, call: Call, entry: Contradiction) -> list[tuple[str, int, str]]:
    """Where the values stand that the entry is about, as far as they are written elsewhere."""
    links: list[tuple[str, int, str]] = []
    for condition in entry.conditions:
        at = option(project, call, condition["key"])
        chain: Proof = next((k.proof for k in values(project, *at)), ()) if at is not None else ()
        links += [link for link in chain[-1:] if link not in links]
    return links
