"""Attributes that are read and that nothing in the program sets."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Class, External, Obj, Place
from trainwreck.code.rehearsal.questions import Answer

PLAIN = frozenset(
    """torch.nn.Module torch.nn.modules.Module torch.nn.modules.module.Module torch.utils.data.Dataset
    torch.utils.data.IterableDataset builtins.object abc.ABC typing.Generic""".split()
)
"""Bases whose attributes are all known."""
MODULE = frozenset(
    """T_destination add_module apply bfloat16 buffers call_super_init children compile cpu cuda double dump_patches
    eval extra_repr float forward get_buffer get_extra_state get_parameter get_submodule half ipu load_state_dict
    modules mtia named_buffers named_children named_modules named_parameters parameters requires_grad_
    set_extra_state set_submodule share_memory state_dict to to_empty train training type xpu zero_grad
    functions""".split()
)
"""Public attributes of ``torch.nn.Module`` in torch 2.13, beside all that begin with ``register_``."""
DYNAMIC = pattern(r"setattr|__dict__|__getattr|getattr\(self|hasattr|__slots__|\bvars\(|\blocals\(|AttributeError")
"""Words of a class that may have attributes nobody can read off its text."""


def never_set(run: Rehearsing) -> Iterator[Answer]:
    """``self.x`` where the rehearsal found no ``x``, and no statement of the program sets an attribute of that name."""
    told: set[tuple[str, str]] = set()
    for obj, name, place in run.memo.get("absent", ()):
        if not isinstance(obj, Obj) or obj.cls is None or (obj.cls.name, name) in told:
            continue
        if name.startswith(("_", "register_")) or name in MODULE or not _plain(obj.cls):
            continue
        node = place[0]
        if not isinstance(node, ast.Attribute) or not _of_self(node, place) or _set_somewhere(run.project, name):
            continue
        texts = [ast.get_source_segment(c.scope.module.text, c.scope.node) for c in obj.cls.mro()]
        if any(text is None or DYNAMIC.search(text) for text in texts):
            continue
        told.add((obj.cls.name, name))
        made = (obj.place,) if obj.place is not None else ()
        yield Answer(place, f"self.{name} is read here, and nothing in the program sets it: AttributeError", made)


def _plain(cls: Class) -> bool:
    """True where every base is a class of the program, or one whose attributes are known."""
    bases = [b for c in cls.mro() for b in c.bases]
    return all(isinstance(b, Class) or (isinstance(b, External) and b.dotted in PLAIN) for b in bases)


def _of_self(node: ast.Attribute, place: Place) -> bool:
    args = getattr(getattr(place[1].node, "args", None), "args", [])
    return bool(args) and isinstance(node.value, ast.Name) and node.value.id == args[0].arg


def _set_somewhere(project: Project, name: str) -> bool:
    """True where an attribute of this name is set anywhere, a class defines it, or the name stands in a text."""
    if "set attributes" not in project.memo:
        found: set[str] = set()
        for walked in project.walked.values():
            for node in ast.walk(walked.top.module.tree):
                if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                    found.add(node.attr)
                elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.isidentifier():
                    found.add(node.value)
                elif isinstance(node, ast.ClassDef):
                    found |= _names(node)
        project.memo["set attributes"] = found
    known: set[str] = project.memo["set attributes"]
    return name in known


def _names(node: ast.ClassDef) -> set[str]:
    """What is bound in the body of a class."""
    found = {n.id for s in node.body for n in ast.walk(s) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    return found | {s.name for s in node.body if isinstance(s, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)}
