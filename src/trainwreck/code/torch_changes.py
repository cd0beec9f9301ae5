"""Uses of what torch, torchvision, numpy and huggingface_hub deprecated or removed, by ``versions/torch.toml``."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence

from trainwreck.catalogue import releases, specifiers
from trainwreck.code import edits
from trainwreck.code.outdated import guarded
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.code.scopes import Scope
from trainwreck.code.surface import scope_at
from trainwreck.code.targets import Pin, pin_for
from trainwreck.core.evidence import Evidence, Severity
from trainwreck.core.fix import Fix
from trainwreck.core.row import Row

ROOTS = ("torch", "functorch", "torchvision", "numpy", "huggingface_hub")

MODULES = ("torch._six", "torch.distributed._sharded_tensor", "torchvision.transforms.functional_tensor")
"""Whole modules that the table names: whatever is taken from them is meant."""


class Use(Row):
    """One use. ``gone``: the release meant lacks it; otherwise it warns."""

    name: str
    gone: bool
    certain: bool
    pin: Pin | None
    node: ast.AST
    scope: Scope
    imported: bool

    @property
    def change(self) -> Mapping[str, object]:
        return releases.torch_changes()[self.name]

    @property
    def rule(self) -> str:
        """The id of the rule that speaks of it."""
        if said := self.change.get("rule"):
            return str(said)
        package = "numpy" if self.name.startswith("numpy.") else "torch"
        return f"{package}-removed" if self.gone else f"{package}-deprecated"

    @property
    def severity(self) -> Severity:
        if not self.gone:
            return "suggestion"
        return "critical" if self.pin is not None and self.certain else "warning"

    @property
    def sentence(self) -> str:
        change, library = self.change, self.name.split(".", 1)[0].replace("functorch", "torch")
        when = (
            f"gone since {library} {change['removed']}"
            if self.gone
            else str(change.get("what", "")).removeprefix("is ")
        )
        when = when or f"deprecated since {library} {change.get('deprecated', '')}"
        said = f" ({self.pin.text[:60]})" if self.pin is not None else ""
        return f"`{self.name}` is {when}{said}; use {change['instead']}"

    def fix(self) -> Fix:
        instead = str(self.change["instead"])
        words = f"use {instead}"
        if not self.change.get("safe") or not isinstance(self.node, ast.Attribute):
            return Fix(words)
        head, _, last = instead.rpartition(".")
        if head and head == self.name.rpartition(".")[0]:
            return edits.rename_attribute(self.node, last, self.scope, words, safe=True)
        return edits.replace(self.node, self.scope, last, words, safe=True) if not head else Fix(words)


def told(project: Project, rule: str, name: str) -> Iterator[Evidence]:
    """The uses that belong to the rule ``name``."""
    for use in uses(project):
        if use.rule == name:
            proof = [(use.pin.path, use.pin.line, use.pin.text)] if use.pin is not None and use.pin.line else []
            place = (use.node, use.scope)
            yield sighting(rule, place, use.sentence, proof=proof, fix=use.fix(), severity=use.severity)


def uses(project: Project) -> Sequence[Use]:
    if "torch changes" not in project.memo:
        project.memo["torch changes"] = list(_uses(project))
    found: Sequence[Use] = project.memo["torch changes"]
    return found


def _uses(project: Project) -> Iterator[Use]:
    lasts: set[str] | None = None
    for path, walked in project.walked.items():
        if not any(root in walked.top.module.text for root in ROOTS):
            continue
        if lasts is None:
            lasts = {name.rsplit(".", 1)[-1] for name in releases.torch_changes()}
        for scope in walked.scopes:
            for bindings in scope.bindings.values():
                for binding in bindings:
                    if binding.kind == "import" and isinstance(binding.node, ast.ImportFrom) and not binding.node.level:
                        yield from _use(project, path, binding.target, binding.node, scope, imported=True)
        for node in walked.parents:
            if isinstance(node, ast.Attribute) and node.attr in lasts and isinstance(node.ctx, ast.Load):
                scope = scope_at(walked.top, node.lineno)
                yield from _use(project, path, _dotted(project, node, scope), node, scope, imported=False)
        for call, scope in walked.calls:
            if isinstance(call.func, ast.Name):
                found = project.lookup(call.func.id, scope)
                if len(found) == 1 and found[0].kind == "import":
                    yield from _use(project, path, found[0].target, call.func, scope, imported=False)


def _dotted(project: Project, node: ast.Attribute, scope: Scope) -> str:
    first: ast.expr = node
    while isinstance(first, ast.Attribute):
        first = first.value
    if not isinstance(first, ast.Name):
        return ""
    bindings = project.lookup(first.id, scope)
    imported = bool(bindings) and all(b.kind == "import" and b.target.split(".")[0] in ROOTS for b in bindings)
    return project.dotted(node, scope) if imported else ""


def _use(project: Project, path: str, name: str, node: ast.AST, scope: Scope, *, imported: bool) -> Iterator[Use]:
    changes = releases.torch_changes()
    known = name if name in changes else next((k for k in _above(name) if k in changes), None)
    if known is None or guarded(project, node, scope):
        return
    change = changes[known]
    library = known.split(".", 1)[0].replace("functorch", "torch")
    pin = pin_for(project, library.replace("_", "-"), path)
    if pin is None and not project.assume_newest:
        return
    specifier = pin.specifier if pin is not None else ""
    removed, back = str(change.get("removed", "")), str(change.get("back", ""))
    gone = bool(removed) and specifiers.reaches(specifier, specifiers.parse(removed))
    if gone and back and (pin is None or specifiers.reaches(specifier, specifiers.parse(back))):
        return
    deprecated = str(change.get("deprecated", ""))
    if not gone and (change.get("quiet") or not deprecated):
        return
    if not gone and pin is not None and not specifiers.reaches(specifier, specifiers.parse(deprecated)):
        return
    certain = gone and specifiers.starts_at(specifier, specifiers.parse(removed))
    yield Use(known, gone, certain, pin, node, scope, imported)


def _above(name: str) -> Iterator[str]:
    """``torch._six`` for ``torch._six.inf``: only whole modules that the table names."""
    while name.count(".") > 1:
        name = name.rpartition(".")[0]
        if name in MODULES:
            yield name
