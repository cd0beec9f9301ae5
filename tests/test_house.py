"""The house keeps its shape: imports run downward, start-up stays light, no failure-mode id stands in code."""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest

from trainwreck.catalogue.load import catalogue
from trainwreck.core.run import Outcome

SRC = Path(__file__).parent.parent / "src/trainwreck"
ORDER = [
    "core",
    "collect",
    "catalogue",
    "code",
    "runs",
    "failures",
    "joining",
    "reasoning",
    "engine",
    "checking",
    "record",
    "jax",
    "callbacks",
    "environment",
    "package",
    "cli",
]
ALLOWED_SIDEWAYS = {("report", "core"), ("cli", "report")}
HEAVY = ("torch", "jax", "numpy", "rich", "jinja2", "mcp", "yaml", "matplotlib", "orjson")


def room(path: Path) -> str:
    """The top-level part of the house that a file belongs to."""
    first = path.relative_to(SRC).parts[0]
    return first.removesuffix(".py")


def imports(path: Path) -> set[str]:
    """The rooms of ours that a file imports, wherever in the file."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = []
        if isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            names = (
                [node.module, *(f"{node.module}.{a.name}" for a in node.names)]
                if node.module == "trainwreck"
                else [node.module]
            )
        elif isinstance(node, ast.Import):
            names = [a.name for a in node.names]
        found |= {n.split(".")[1] for n in names if n.startswith("trainwreck.")}
    return found


FILES = sorted(SRC.rglob("*.py"))


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.relative_to(SRC).as_posix())
def test_imports_run_downward_only(path: Path) -> None:
    mine = room(path)
    if mine == "__init__" or mine == "__main__":
        return
    for other in imports(path) - {mine, "__version__"}:
        if (mine, other) in ALLOWED_SIDEWAYS:
            continue
        assert mine in ORDER, f"{mine} may import only core, not {other}"
        assert ORDER.index(other) < ORDER.index(mine), f"{path}: {mine} may not import {other}"


def test_what_is_loaded_into_the_users_process_imports_nothing_of_ours() -> None:
    for path in FILES:
        if "inside" in path.parts:
            assert not imports(path), path


def test_witnesses_meet_only_through_core() -> None:
    witnesses = {"code", "runs", "failures"}
    for path in FILES:
        if room(path) in witnesses:
            assert not imports(path) & (witnesses - {room(path)}), path


def loaded_by(statement: str) -> list[str]:
    program = f"import sys; {statement}; print(*sys.modules, sep='\\n')"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


@pytest.mark.parametrize(
    "statement",
    [
        "import trainwreck",
        "from trainwreck.cli import cli; from click.testing import CliRunner; CliRunner().invoke(cli, ['--help'])",
        "from trainwreck.catalogue.explain import explain; explain('labels-all-ignored')",
    ],
    ids=["import", "help", "explain"],
)
def test_start_up_loads_nothing_heavy(statement: str) -> None:
    modules = loaded_by(statement)
    assert not {m.split(".")[0] for m in modules} & set(HEAVY)


def test_import_trainwreck_is_almost_free() -> None:
    base, ours = loaded_by("pass"), loaded_by("import trainwreck")
    assert len(ours) - len(base) <= 3


def string_literals(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    documentation = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    return {
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documentation
    }


def test_no_failure_mode_id_stands_in_code() -> None:
    # How a run ended is a fact with a fixed set of words; four of them are also what explains the end.
    modes = set(catalogue().mode_ids) - set(get_args(Outcome))
    guilty = {}
    for path in FILES:
        if room(path) == "catalogue":
            continue
        named = {text for text in string_literals(path) if text in modes or text.removeprefix("code-") in modes}
        if named:
            guilty[path.relative_to(SRC).as_posix()] = sorted(named)
    assert not guilty


def test_ids_are_lower_case_kebab_and_unique_over_all_kinds() -> None:
    import re

    known = catalogue()
    ids = [*known.mode_ids, *known.sign_ids, *known.rules]
    assert len(ids) == len(set(ids))
    assert all(re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name) for name in ids)


def test_files_stay_small() -> None:
    long = {p.relative_to(SRC).as_posix(): n for p in FILES if (n := len(p.read_text().splitlines())) > 400}
    assert not long, f"over 400 lines, cut them: {long}"


def test_every_lazy_pattern_compiles_and_is_used_by_its_methods() -> None:
    compiled = 0
    for path in sorted((SRC / "code").rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        names = re.findall(r"^(\w+)(?:: [^\n=]+)? = pattern\(", text, re.MULTILINE)
        if not names:
            continue
        module = importlib.import_module(".".join(path.relative_to(SRC.parent).with_suffix("").parts))
        for name in names:
            assert getattr(module, name).pattern is not None
            assert not re.search(rf"\bre\.\w+\({name}\b", text), f"{path}: use {name}.search(...)"
            compiled += 1
    assert compiled > 200
