"""Layers are kept in a plain Python list or dict.

What: ``self.layers = [nn.Linear(...) ...]`` in a Module.
Why it matters: ``parameters()``, ``to()``, ``state_dict()`` do not see them: never trained, never moved, never
saved.
When it is fine: where the same layers are also registered (``nn.ModuleList(self.layers)``,
``nn.Sequential(*layers)``).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.calls import last_name, written
from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.constant_tables import never_learns
from trainwreck.code.rehearsal.questions.registering import in_plain_containers
from trainwreck.code.rule import sighting
from trainwreck.code.scopes import Scope
from trainwreck.code.seek import modules
from trainwreck.core.evidence import Evidence

BAD = (
    """
from torch import nn
class Net(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.layers = [nn.Linear(d, d) for _ in range(3)]  # expect
    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x
""",
    """
from torch import nn
class Net(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.heads = {}
        for name in "ab":
            self.heads[name] = nn.Linear(d, 1)  # expect
""",
)
GOOD = """
from torch import nn
class Net(nn.Module):
    def __init__(self, d):
        super().__init__()
        layers = [nn.Linear(d, d) for _ in range(3)]
        self.net = nn.Sequential(*layers)
        self.blocks = [nn.Linear(d, d) for _ in range(2)]
        self.stack = nn.ModuleList(self.blocks)
        self.losses = [nn.MSELoss(), nn.L1Loss()]
        self.acts = [nn.ReLU(), nn.Tanh()]
        self.sizes = [d, d]
"""
WITHOUT_PARAMETERS = pattern(
    r"Loss$|ReLU|Tanh$|Sigmoid$|GELU$|SiLU$|Dropout|MaxPool|AvgPool|Flatten$|Identity$|Softmax|Upsample$|Pad|ELU$|Softplus$"
)
PLAIN = pattern(r"^(list|dict)$")


def find(project: Project) -> Iterator[Evidence]:
    yield from further(__name__, project, _written(project), in_plain_containers, never_learns)


def _written(project: Project) -> Iterator[Evidence]:
    for owner in modules(project):
        text = written(owner.node)
        for name, bindings in owner.attributes.items():
            kept = [b for b in bindings if b.value is not None and not b.path]
            if _registered(text, name) or not any(_container(b.value) for b in kept if b.kind == "assign"):
                continue
            for binding in kept:
                value = binding.value
                assert value is not None
                layers = binding.kind == "append" or _container(value)
                if layers and _holds_layers(project, value, binding.scope):
                    text_ = f"self.{name} is a plain container: its layers are not registered with the module"
                    yield sighting(__name__, (binding.node, binding.scope), text_)
                    break


def _registered(text: str, name: str) -> bool:
    escaped = re.escape(f"self.{name}")
    return bool(
        re.search(rf"(ModuleList|ModuleDict|Sequential|ParameterList)\([^)]*{escaped}\b", text)
        or re.search(r"(add_module|register_module|register_parameter|setattr)\([^\n]*", text)
        or re.search(rf"self\.{re.escape(name)} = nn\.Module", text)
    )


def _container(value: ast.expr | None) -> bool:
    if isinstance(value, ast.List | ast.ListComp | ast.Dict | ast.DictComp | ast.Tuple):
        return True
    return isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and bool(PLAIN.match(value.func.id))


def _holds_layers(project: Project, value: ast.expr, scope: Scope) -> bool:
    """True if every element that is made here is a layer with parameters."""
    match value:
        case ast.ListComp():
            return _is_layer(project, value.elt, scope)
        case ast.DictComp():
            return _is_layer(project, value.value, scope)
        case ast.List() | ast.Tuple():
            return any(_is_layer(project, e, scope) for e in value.elts)
        case ast.Dict():
            return any(_is_layer(project, v, scope) for v in value.values)
        case ast.Call():
            return _is_layer(project, value, scope)
    return False


def _is_layer(project: Project, node: ast.expr, scope: Scope) -> bool:
    if not isinstance(node, ast.Call):
        return False
    name = project.dotted(node.func, scope)
    last = last_name(node.func)
    if name.startswith("torch.nn.") and last[:1].isupper():
        if last == "Sequential":
            return any(_is_layer(project, a, scope) for a in node.args)
        return not WITHOUT_PARAMETERS.search(last)
    owner = project.resolve(node.func, scope)
    return owner is not None and owner.kind == "class" and project.is_a(owner, "Module")
