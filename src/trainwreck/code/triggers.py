"""Words without which a rule can see nothing, read off the rule's own source, so that most rules are never loaded.

A rule that loops over ``project.calls("backward")`` says nothing about a program in which that word does not stand.
The derivation is careful: what it does not understand needs no word, and the rule runs always. It knows

- loops, comprehensions and copies of ``project.calls(...)`` with names that are written out,
- helper functions of ``trainwreck.code``, by looking into them,
- early returns (``if not trains(project): return``) and words looked for in ``source(project)``.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trainwreck.code.libraries import LIBRARIES
from trainwreck.code.needs import Function, FunctionNode, Need

MAX_DEPTH = 12
BESIDE = "\0beside"
"""Stands for files beside the program (configurations, scripts, requirements) and shell lines in notebooks."""

KNOWN: Mapping[tuple[str, str], Sequence[str]] = {
    ("rehearsal.__init__", "rehearsals"): ("backward", "autograd", "training_step", "compute_loss", ".grad = "),
    ("rehearsal.questions.__init__", "answers"): ("backward", "autograd", "training_step", "compute_loss", ".grad = "),
    ("rehearsal.questions.__init__", "further"): ("backward", "autograd", "training_step", "compute_loss", ".grad = "),
    ("order", "training_steps"): ("backward", "manual_backward"),
    ("seek", "losses"): ("oss", "cross_entropy", "kl_div", "criterion", "criteria"),
    ("seek", "modules"): ("Module", "PreTrainedModel"),
    ("seek", "dataset_classes"): ("__getitem__", "IterableDataset"),
    ("facts", "handlers"): ("except",),
    ("huggingface", "trainer_calls"): ("transformers", "trl"),
    ("huggingface", "model_loads"): ("from_pretrained", "from_config", "transformers"),
    ("huggingface", "tokenizer_loads"): ("from_pretrained", "transformers"),
    ("jax", "traced"): ("jax", "flax", "optax"),
    ("lightning", "lightning_modules"): ("ightning",),
    ("torch_changes", "told"): ("torch", "numpy", "huggingface_hub"),
    ("outdated", "told"): (*LIBRARIES, BESIDE),
    ("outdated", "unnamed"): (*LIBRARIES, BESIDE),
    ("outdated", "options"): (*LIBRARIES, BESIDE),
    ("arguments", "contradicted"): (*LIBRARIES, BESIDE),
    ("settings.contradictions", "contradicted_settings"): (*LIBRARIES, BESIDE),
    ("settings.index", "of"): (BESIDE,),
    ("settings.bags", "bags"): (*LIBRARIES, BESIDE),
    ("settings.bags", "training"): (*LIBRARIES, BESIDE),
    ("settings.starts", "starts"): (*LIBRARIES, BESIDE),
    ("settings.hydra", "mains"): ("hydra",),
    ("settings.loads", "loads"): (BESIDE,),
    ("settings.requirements", "requirements"): (BESIDE,),
    ("settings.variables", "assigned"): ("environ", "putenv", BESIDE),
    ("targets", "pins"): (BESIDE,),
}
"""Helper functions that are too long to be understood, by file and name, with what was read off them by hand."""
HOLDERS = frozenset([("settings.index", "of")])
"""Those among them that return an object whose collections are all empty without the words."""


def index(code: Path) -> dict[str, list[Any]]:
    """For each rule module below ``code/rules`` (as ``family.name``): has it a ``find``, the words or None, and has it
    a ``trace``.

    An explicit ``WORDS = (...)`` in the module counts instead of what would be derived.
    """
    library = _Library(code)
    table: dict[str, list[Any]] = {}
    for path in sorted((code / "rules").glob("*/[!_]*.py")):
        module = library.module(path)
        finds = "find" in module.functions
        words: Need = frozenset()
        if "WORDS" in module.assigned:
            words = frozenset(module.constants(module.assigned["WORDS"]) or ())
        elif finds:
            words = library.need(module, "find")
        table[f"{path.parent.name}.{path.stem}"] = [
            finds,
            None if words is None else sorted(words),
            "trace" in module.functions or "trace" in module.imports,
        ]
    return table


@dataclass
class _Module:
    """Top-level functions, constants and imports of one file."""

    path: Path
    name: str
    library: _Library
    functions: dict[str, FunctionNode] = field(default_factory=dict)
    assigned: dict[str, ast.expr] = field(default_factory=dict)
    imports: dict[str, tuple[str, str]] = field(default_factory=dict)

    def need(self, name: str) -> Need:
        return self.library.need(self, name)

    def holds(self, name: str) -> bool:
        where = self.library.found(self, name)
        return where is not None and (where[0].name, where[1]) in HOLDERS

    def is_source(self, name: str) -> bool:
        return self.imports.get(name) == ("trainwreck.code.facts", "source")

    def constants(self, node: ast.expr) -> list[str] | None:
        """The words that ``node`` holds: a word, a literal collection or union of them, or a constant's name."""
        parts: list[ast.expr]
        match node:
            case ast.Constant(value=str(word)):
                return [word]
            case ast.Starred():
                return self.constants(node.value)
            case ast.List() | ast.Tuple() | ast.Set():
                parts = node.elts
            case ast.Dict() if all(node.keys):
                parts = [key for key in node.keys if key is not None]
            case ast.Call(func=ast.Name(id="frozenset" | "sorted" | "tuple" | "set"), args=[inner]):
                return self.constants(inner)
            case ast.BinOp(op=ast.BitOr() | ast.Add()):
                parts = [node.left, node.right]
            case ast.Name():
                where = self.library.found(self, node.id)
                known = where[0].assigned.get(where[1]) if where is not None else None
                return where[0].constants(known) if where is not None and known is not None else None
            case _:
                return None
        found = [self.constants(part) for part in parts]
        return None if None in found else [word for words in found for word in words or ()]


class _Library:
    def __init__(self, code: Path) -> None:
        self.code = code
        self.modules: dict[Path, _Module] = {}
        self.needs: dict[tuple[Path, str], Need] = {}
        self.open: set[tuple[Path, str]] = set()

    def module(self, path: Path) -> _Module:
        if path not in self.modules:
            module = self.modules[path] = _Module(path, self.name(path), self)
            for node in ast.parse(path.read_bytes()).body:
                if isinstance(node, FunctionNode):
                    module.functions[node.name] = node
                elif isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
                    module.assigned[node.targets[0].id] = node.value
                elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None:
                    module.assigned[node.target.id] = node.value
                elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
                    for alias in node.names:
                        module.imports[alias.asname or alias.name] = (node.module, alias.name)
        return self.modules[path]

    def name(self, path: Path) -> str:
        """The module's name below ``trainwreck.code``."""
        return ".".join(path.relative_to(self.code).with_suffix("").parts)

    def found(self, module: _Module, name: str) -> tuple[_Module, str] | None:
        """The module that ``name`` of ``module`` comes from, and its name there."""
        if name in module.functions or name in module.assigned:
            return module, name
        if name not in module.imports:
            return None
        dotted, member = module.imports[name]
        if not dotted.startswith("trainwreck.code."):
            return None
        base = self.code.joinpath(*dotted.split(".")[2:])
        path = base.with_suffix(".py") if base.with_suffix(".py").is_file() else base / "__init__.py"
        return self.found(self.module(path), member) if path.is_file() else None

    def need(self, module: _Module, name: str) -> Need:
        """What has to stand in the program for function ``name`` to yield, or to return something that is true."""
        where = self.found(module, name)
        if where is None or where[1] not in where[0].functions:
            return None
        if (known := KNOWN.get((where[0].name, where[1]))) is not None:
            return frozenset(known)
        key = (where[0].path, where[1])
        if key in self.open or len(self.open) > MAX_DEPTH:
            return None
        if key not in self.needs:
            self.open.add(key)
            self.needs[key] = Function(where[0], where[0].functions[where[1]]).need()
            self.open.discard(key)
        return self.needs[key]
