"""Where a program and the releases that it is for disagree: keywords, names and modules that they do not have.

Only what resolves by imports to a package with a table is judged; what the program defines itself, what ``**kwargs``
may take and what stands in a guarded branch is left alone. The rules of the families removed and environment each take
their share of one walk.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from trainwreck.catalogue import releases, specifiers
from trainwreck.catalogue.releases import TABLES, Bracket, History, Rename, State, Table
from trainwreck.code import edits, outdated_uses
from trainwreck.code.calls import Call
from trainwreck.code.guards import guarded as guarded
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting, sign_of
from trainwreck.code.scopes import Binding, Scope
from trainwreck.code.targets import Aim, Pin, aim, brackets
from trainwreck.code.values import literal
from trainwreck.core.evidence import Evidence, Severity
from trainwreck.core.fix import Fix
from trainwreck.core.row import Row

Kind = Literal["argument", "name", "module", "open", "task"]


class Mismatch(Row):
    """One thing that the releases meant do not have. ``entry``: what the rename table says of it, None if nothing."""

    kind: Kind
    name: str
    owner: str
    package: str
    state: State
    node: ast.AST
    scope: Scope
    call: ast.Call | None
    history: History | None
    entry: Rename | None
    pin: Pin | None
    certain: bool

    @property
    def severity(self) -> Severity:
        """critical where every release that the project allows lacks it; without a pin it is a warning."""
        return grade(self.pin is not None and self.certain)

    @property
    def sentence(self) -> str:
        """What, since which release, what instead."""
        return f"{self._what}{self._when}{self._instead}"

    @property
    def _what(self) -> str:
        if self.kind == "argument":
            return f"`{self.name}` is no argument of {self.owner}"
        if self.kind == "open":
            return f"`{self.name}` is no argument of {self.owner.rsplit('.', 1)[-1]}"
        if self.kind == "task":
            return f'the pipeline task "{self.name}" is gone'
        return f"{'module ' if self.kind == 'module' else ''}`{self.package}.{self.name}` does not exist"

    @property
    def _when(self) -> str:
        project = f" ({self.pin.text.strip()[:60]})" if self.pin is not None else ""
        if self.entry is not None and self.entry.said:
            return f": {self.entry.said}{project}"
        if self.history is None:
            since = self.entry.since if self.entry is not None else ""
            return f" since {self.package} {since}{project}" if since else f" in any release of {self.package}{project}"
        package = self.history.table.package
        if self.state == "not yet":
            return f" before {package} {self.history.first}{project}"
        return f" from {package} {self.history.gone_by} on ({self.history.last} still had it){project}"

    @property
    def _instead(self) -> str:
        if self.entry is None:
            return ""
        new = self.entry.names.get(self.name, "")
        words = f"write `{new}`" if new and new.isidentifier() else new or self.entry.instead
        return f"; {words}" if words and self.state != "not yet" else ""

    def fix(self) -> Fix | None:
        """The rename as an edit where it is nothing but one."""
        if self.entry is None or self.state == "not yet":
            return None
        new = self.entry.names.get(self.name, "")
        words = f"write {new} for {self.name}" if new else self.entry.instead
        if self.call is not None and self.entry.safe and new.isidentifier():
            return edits.rename_keyword(self.call, self.name, new, self.scope, words, safe=True)
        return Fix(words) if words else None


def grade(certain: bool) -> Severity:
    """How bad: certain where every release that the project pins is affected, else it may be another one."""
    return "critical" if certain else "warning"


def told(project: Project, rule: str, kinds: Sequence[Kind] = ()) -> Iterator[Evidence]:
    """The mismatches that the rename table gives to the rule module ``rule`` (its ``__name__``)."""
    name = sign_of(rule).removeprefix("code-")
    for item in mismatches(project):
        if item.entry is not None and item.entry.rule == name and (not kinds or item.kind in kinds):
            yield evidence(rule, item)
    from trainwreck.code.outdated_files import options

    yield from options(project, rule, named=True)


def unnamed(project: Project, rule: str, *, known: bool, kinds: Sequence[Kind]) -> Iterator[Evidence]:
    """Mismatches of no rule of their own: of things that some release has (``known``), or none."""
    for item in mismatches(project):
        if item.entry is None and item.kind in kinds and (item.history is not None) == known:
            yield evidence(rule, item)


def evidence(rule: str, item: Mismatch) -> Evidence:
    proof = [(item.pin.path, item.pin.line, item.pin.text)] if item.pin is not None and item.pin.line else []
    place = (item.node, item.scope)
    return sighting(rule, place, item.sentence, proof=proof, fix=item.fix(), severity=item.severity)


def mismatches(project: Project) -> Sequence[Mismatch]:
    """All of them, once, in the order of files and lines."""
    if "mismatches" not in project.memo:
        project.memo["mismatches"] = list(_mismatches(project))
    found: Sequence[Mismatch] = project.memo["mismatches"]
    return found


def _mismatches(project: Project) -> Iterator[Mismatch]:
    for path, walked in project.walked.items():
        used = _packages(walked.scopes)
        if not used:
            continue
        aims = {name: found for name in used if (found := aim(project, name, path)) is not None}
        if "trl" in aims and "transformers" not in aims and (base := aim(project, "transformers", path)) is not None:
            aims["transformers"] = base
        for scope in walked.scopes:
            yield from _imports(project, scope, aims)
        for node, scope in walked.calls:
            yield from _call(project, Call(node, scope), aims)


def _packages(scopes: Sequence[Scope]) -> set[str]:
    return {
        TABLES[root]
        for scope in scopes
        for bindings in scope.bindings.values()
        for b in bindings
        if b.kind == "import" and (root := b.target.split(".", 1)[0]) in TABLES
    }


# ---------------------------------------------------------------------- imports
def _imports(project: Project, scope: Scope, aims: Mapping[str, Aim]) -> Iterator[Mismatch]:
    for name, bindings in scope.bindings.items():
        for binding in bindings:
            if binding.kind != "import" or not isinstance(binding.node, ast.ImportFrom) or binding.node.level:
                continue
            if guarded(project, binding.node, scope) or len(bindings) > 1:
                continue
            found = _import(binding, aims)
            if found is not None:
                alias = next((a for a in binding.node.names if (a.asname or a.name) == name), None)
                yield _mismatch(found, alias or binding.node, scope)


class _Absent(Row):
    kind: Kind
    name: str
    package: str
    aim: Aim
    state: State
    history: History | None
    entry: Rename | None


def _import(binding: Binding, aims: Mapping[str, Aim]) -> _Absent | None:
    parts = binding.target.split(".")
    package = TABLES.get(parts[0], "")
    where = aims.get(package)
    if where is None:
        return None
    home, inner, name = where.table, parts[1:-1], parts[-1]
    if package == "lightning" and parts[0] == "lightning" and inner[:1] == ["pytorch"]:
        inner = inner[1:]
    if inner:
        return _module(home, ".".join(inner), where) or _moved(home, name, where)
    history = home.name(name)
    entry = releases.rename(package, "name", name)
    if history is None:
        if entry is not None and entry.since and _since(where, entry.since):
            return _Absent("name", name, package, where, "gone", None, entry)
        return None
    state = where.state(history)
    if state not in ("gone", "not yet") or _served_otherwise(home, name, where) or home.module(name) is not None:
        return None
    return _Absent("name", name, package, where, state, history, entry)


def _module(home: Table, name: str, where: Aim) -> _Absent | None:
    """A module that is gone. One that no release has may be in a part that the table leaves out."""
    history = home.module(name)
    entry = releases.rename(home.package, "module", name)
    if history is None and entry is not None and entry.since and _since(where, entry.since):
        return _Absent("module", name, home.package, where, "gone", None, entry)
    if history is None and name.count("."):
        return None
    state = where.state(history) if history is not None else "unknown"
    if state not in ("gone", "not yet"):
        return None
    return _Absent("module", name, home.package, where, state, history, entry)


def _moved(home: Table, name: str, where: Aim) -> _Absent | None:
    """A name imported from a module of the package, where neither its top nor any of its modules has it any more."""
    row, history = home.signature(name), home.name(name)
    entry = releases.rename(home.package, "name", name)
    if row is None or (history is None and entry is None) or (history and where.state(history) != "gone"):
        return None
    whole = History(home, "", row["ranges"])
    if where.state(whole) != "gone" or _served_otherwise(home, name, where):
        return None
    return _Absent("name", name, home.package, where, "gone", whole, entry)


def _served_otherwise(home: Table, name: str, where: Aim) -> bool:
    """transformers 5 makes tokenizer and image processor classes under their old names when they are asked for."""
    old = ("Tokenizer", "TokenizerFast", "ImageProcessor", "ImageProcessorFast")
    return home.package == "transformers" and name.endswith(old) and where.newest[1] > 0


def _since(where: Aim, since: str) -> bool:
    """True if the newest release that is allowed is ``since`` or later."""
    return where.newest[0] >= 0 and where.table.versions[where.newest[0]] >= specifiers.parse(since)


def _mismatch(found: _Absent, node: ast.AST, scope: Scope) -> Mismatch:
    certain = found.history is None or found.aim.everywhere(found.history)
    return Mismatch(
        found.kind, found.name, "", found.package, found.state, node, scope, None, found.history, found.entry,
        found.aim.pin, certain,
    )  # fmt: skip


# ---------------------------------------------------------------------- calls
def _call(project: Project, call: Call, aims: Mapping[str, Aim]) -> Iterator[Mismatch]:
    yield from _attribute(project, call, aims)
    if not isinstance(call.node.func, ast.Name | ast.Attribute):
        return
    used = outdated_uses.method(project, call)
    if used is not None and used[0] in aims:
        yield from _method(project, call, used, aims[used[0]])
    if not call.node.keywords:
        return
    found = callee(project, call) or outdated_uses.inherited(project, call)
    if found is None and used is not None:
        found = used[0], f"{used[1]}.{used[2]}"
    if found is None or found[0] not in aims:
        return
    package, owner = found
    where = aims[package]
    for name, node, holder in keywords(project, call):
        item = _argument(where, owner, name, aims) or _open_argument(where, owner, name)
        if item is None or guarded(project, call.node, call.scope):
            continue
        state, history, entry, aimed, certain = item
        kind: Kind = "open" if entry is not None and entry.kind == "open" else "argument"
        culprit = history.table.package if history is not None else package
        yield Mismatch(
            kind, name, owner, culprit, state, node, call.scope, holder, history, entry, aimed.pin, certain
        )  # fmt: skip


def _method(project: Project, call: Call, used: tuple[str, str, str], where: Aim) -> Iterator[Mismatch]:
    """``ppo_trainer.step(...)``: a method that the object's class has lost."""
    package, owner, name = used
    at = outdated_uses.within(where.table, owner, where.newest)
    history = outdated_uses.gone_method(where.table, owner, name, at)
    full = f"{owner}.{name}"
    entry = releases.rename(package, "name", full)
    older = history is None and entry is not None and _since(where, entry.since)
    if (history is None and not older) or guarded(project, call.node, call.scope):
        return
    entry = entry or releases.rename(package, "name", owner)
    found = _Absent("name", full, package, where, "gone", history, entry)
    yield _mismatch(found, call.node.func, call.scope)


def _attribute(project: Project, call: Call, aims: Mapping[str, Aim]) -> Iterator[Mismatch]:
    """``datasets.load_metric(...)``: a name of the package reached through the module."""
    node: ast.expr = call.node.func
    while isinstance(node, ast.Attribute) and isinstance(node.value, ast.Attribute):
        node = node.value
    if not isinstance(node, ast.Attribute) or not isinstance(node.value, ast.Name):
        return
    bindings = project.lookup(node.value.id, call.scope)
    if len(bindings) != 1 or not isinstance(bindings[0].node, ast.Import) or bindings[0].target not in TABLES:
        return
    binding = bindings[0]
    found = _import(Binding(node.attr, "import", node, call.scope, target=f"{binding.target}.{node.attr}"), aims)
    if found is not None and not guarded(project, call.node, call.scope):
        yield _mismatch(found, node, call.scope)


def callee(project: Project, call: Call) -> tuple[str, str] | None:
    """(package, class or function or class.method) of a call into a package with a table; None for anything else."""
    dotted = project.called(call)
    parts = dotted.split(".")
    if len(parts) < 2 or parts[0] not in TABLES or parts[:2] == ["lightning", "fabric"]:
        return None  # classes of Fabric bear the names of others
    first = call.node.func
    while isinstance(first, ast.Attribute):
        first = first.value
    if not isinstance(first, ast.Name):
        return None
    bindings = project.lookup(first.id, call.scope)
    if not bindings or any(b.kind != "import" or b.target.split(".")[0] != parts[0] for b in bindings):
        return None
    owner = ".".join(parts[-2:]) if len(parts) > 2 and parts[-2][:1].isupper() else parts[-1]
    return TABLES[parts[0]], owner


def keywords(project: Project, call: Call) -> Iterator[tuple[str, ast.AST, ast.Call | None]]:
    """(name, where it is written, the call that it is written in) of the keywords, those of literal ``**`` included."""
    for item in call.node.keywords:
        if item.arg is not None:
            yield item.arg, item, call.node
            continue
        found = literal(project, item.value, call.scope) or _dict_call(project, item.value, call.scope)
        if found is None or found[1].module is not call.scope.module:
            continue
        value = found[0]
        if isinstance(value, ast.Dict):
            for key in value.keys:
                if isinstance(key, ast.Constant) and isinstance(key.value, str):
                    yield key.value, key, None
        elif isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "dict":
            for inner in value.keywords:
                if inner.arg is not None:
                    yield inner.arg, inner, value


def _dict_call(project: Project, node: ast.expr, scope: Scope) -> tuple[ast.expr, Scope] | None:
    """The ``dict(a=1)`` that a name was bound to, once."""
    bindings = project.lookup(node.id, scope) if isinstance(node, ast.Name) else []
    value = bindings[0].value if len(bindings) == 1 and bindings[0].kind == "assign" and not bindings[0].path else None
    return (value, bindings[0].scope) if isinstance(value, ast.Call) else None


_Refused = tuple[State, History | None, Rename | None, Aim, bool]


def _argument(where: Aim, owner: str, name: str, aims: Mapping[str, Aim]) -> _Refused | None:
    at = {**brackets(aims), where.table.package: outdated_uses.within(where.table, owner, where.newest)}
    answer = releases.parameter(where.table, owner, name, at)
    history = answer.history
    if answer.state in ("there", "unknown"):
        return None
    culprit = history.table.package if history is not None else where.table.package
    entry = releases.rename(culprit, "argument", name, history.owner if history is not None else owner)
    entry = entry or releases.rename(where.table.package, "argument", name, owner)
    aimed = aims.get(culprit, where)
    certain = all(
        releases.parameter(where.table, owner, name, {**at, culprit: _in(aimed, owner, one)}).state
        in ("gone", "not yet")
        for one in aimed.allowed
    )
    return answer.state, history, entry, aimed, certain


def _in(where: Aim, owner: str, at: Bracket) -> Bracket:
    return outdated_uses.within(where.table, owner, at)


def _open_argument(where: Aim, owner: str, name: str) -> _Refused | None:
    """A keyword that travelled through ``**kwargs`` and that nothing takes any more."""
    entry = releases.rename(where.table.package, "open", name, owner.rsplit(".", 1)[-1])
    if entry is None or not _since(where, entry.since):
        return None
    since = specifiers.parse(entry.since)
    certain = all(low >= 0 and where.table.versions[low] >= since for low, _ in where.allowed)
    return "gone", None, entry, where, certain
