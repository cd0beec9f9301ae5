"""Questions about programs of PyTorch Lightning: modules, manual optimisation, trainers."""

from __future__ import annotations

import ast

from trainwreck.code.calls import Call, last_name
from trainwreck.code.facts import made
from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.scopes import Scope

ROOTS = ("lightning", "pytorch_lightning")
TRAINING = pattern(r"^training_step$")


def lightning_modules(project: Project) -> list[Scope]:
    """Classes of the program that are a LightningModule, by their bases."""
    if "lightning modules" not in project.memo:
        project.memo["lightning modules"] = [
            c
            for c in project.classes
            if any(
                n.rsplit(".", 1)[-1] == "LightningModule" and n.split(".")[0] in ROOTS for n in project.base_names(c)
            )
        ]
    found: list[Scope] = project.memo["lightning modules"]
    return found


def manual(project: Project, owner: Scope) -> bool | None:
    """True where ``automatic_optimization`` is switched off, None where that is not certain."""
    states: set[bool | None] = set()
    for binding in project.attribute(owner, "automatic_optimization"):
        value = binding.value
        states.add(not value.value if isinstance(value, ast.Constant) and isinstance(value.value, bool) else None)
    for base in project.bases(owner):
        if base.method("automatic_optimization") is not None:
            states.add(None)
    if not states:
        return False
    return states.pop() if len(states) == 1 else None


def own(project: Project, owner: Scope, name: str) -> Scope | None:
    """The method of the class or of its bases inside the program."""
    return project.find_method(owner, name)


def trainers(project: Project) -> list[Call]:
    """Calls that make a Trainer of Lightning."""
    return [c for c in project.calls("Trainer") if project.called(c).split(".")[0] in ROOTS]


def calls_in(project: Project, function: Scope, *names: str) -> list[Call]:
    """Calls of these last names in the body of ``function``."""
    return [c for c in project.calls(*names) if c.scope is function]


def fitted(project: Project, owner: Scope) -> list[Call]:
    """The trainers whose ``fit`` gets an object of ``owner``."""
    found = []
    for call in project.calls("fit"):
        model = call.argument("model", 0)
        if model is None or call.receiver is None or project.class_of(model, call.scope) is not owner:
            continue
        found += [c for c in made(project, call.receiver, call.scope) if last_name(c.node.func) == "Trainer"]
    return found
