"""Data that is not finite: which rows and columns, and in which variables of the program it is so already."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from types import FrameType
from typing import Any

import torch

from . import sites, tensors, values

MAX_LISTED = 8
MAX_BYTES = 256 << 20
"""Bytes of arrays that are searched for non-finite values; enough for a table of a million rows."""


def damage(tensor: Any) -> dict[str, Any]:
    """Ranges of ``tensor`` and, where it has them, the rows and the columns (last axis) with non-finite values."""
    facts = tensors.ranges(tensor)
    bad = ~torch.isfinite(tensor.detach())
    if bad.dim() >= 2:
        rows = bad.flatten(1).any(1).nonzero().flatten().tolist()
        columns = bad.reshape(-1, bad.shape[-1]).any(0).nonzero().flatten().tolist()
        facts |= {"rows": rows[:MAX_LISTED], "bad_rows": len(rows)}
        if len(columns) < bad.shape[-1] or bad.shape[-1] == 1:
            facts |= {"columns": columns[:MAX_LISTED], "bad_columns": len(columns)}
    elif bad.dim() == 1:
        facts |= {"rows": bad.nonzero().flatten().tolist()[:MAX_LISTED], "bad_rows": int(bad.sum())}
    return facts


def words(facts: dict[str, Any]) -> str:
    """``facts`` of ``damage`` in words."""
    parts = [f"{facts.get('nan', 0)} NaN" if facts.get("nan") else f"{facts.get('inf', 0)} infinite values"]
    shape = "x".join(str(n) for n in facts["shape"]) or "a scalar"
    if facts.get("bad_rows") and facts["shape"]:
        parts.append(f"in {facts['bad_rows']} of {facts['shape'][0]} rows")
    if facts.get("columns"):
        listed = ", ".join(map(str, facts["columns"]))
        parts.append(f"column{'s' if facts['bad_columns'] > 1 else ''} {listed}")
    return f"{' '.join(parts[:2])} of {shape}" + "".join(f", {p}" for p in parts[2:])


def sources(frame: FrameType, name: str) -> list[dict[str, Any]]:
    """Variables of the running functions, and arrays of data sets among them, that hold non-finite values already.

    Each with name, path and line of its assignment, and the line of a function called there that writes NaN itself;
    the outermost and earliest first. Only arrays beside the batch itself are told.
    """
    found: list[dict[str, Any]] = []
    budget = [MAX_BYTES]
    level: FrameType | None = frame
    seen: set[str] = set()
    while level is not None and len(found) < MAX_LISTED:
        path = level.f_code.co_filename
        spaces = [(level.f_code.co_name, level.f_locals)]
        if level.f_code.co_name == "<module>" or level.f_back is None:
            pass
        for _, space in spaces:
            for label, value in _arrays(space):
                key = f"{path}:{label}"
                if key in seen or (level is frame and label.split("[")[0].split(".")[0] == name):
                    continue
                seen.add(key)
                facts = _array_facts(value, budget)
                if facts is not None:
                    line = _made(level, label)
                    if line is not None:
                        found.append({"name": label, "path": path, **facts, **line})
        if level.f_code.co_name == "<module>" and not values.on_the_way(path):
            break
        level = level.f_back
    return sorted(found, key=lambda s: s["line"])


def _arrays(space: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    numpy = sys.modules.get("numpy")
    for name, value in list(space.items()):
        if name.startswith("__"):
            continue
        if (
            isinstance(value, torch.Tensor)
            or (numpy is not None and isinstance(value, numpy.ndarray))
            or (type(value).__name__ == "DataFrame" and hasattr(value, "to_numpy"))
        ):
            yield name, value


def _array_facts(value: Any, budget: list[int]) -> dict[str, Any] | None:
    """Shape and damage of a floating array, None if it is finite, of another kind, or too large to search."""
    numpy = sys.modules.get("numpy")
    try:
        if type(value).__name__ == "DataFrame":
            value = value.select_dtypes("number").to_numpy()
        if numpy is not None and isinstance(value, numpy.ndarray):
            if value.dtype.kind != "f" or value.nbytes > budget[0]:
                return None
            value = torch.from_numpy(numpy.ascontiguousarray(value))
        if value.requires_grad or not value.is_floating_point() or tensors.size(value) > budget[0]:
            return None
        budget[0] -= tensors.size(value)
        if not tensors.nonfinite(value):
            return None
        facts = damage(value)
        return {k: facts[k] for k in ("shape", "nan", "inf", "bad_rows", "columns") if k in facts}
    except Exception:
        return None


def _made(frame: FrameType, name: str) -> dict[str, Any] | None:
    """Line of the first assignment of ``name`` in the code of ``frame``; where a function called there writes NaN."""
    try:
        tree = sites.parse(frame.f_code.co_filename)
        scope = sites.site(frame.f_code, frame.f_lasti).scope
    except sites.NoSlice:
        return None
    for node in ast.walk(scope):
        targets: list[ast.expr] = []
        if isinstance(node, ast.Assign):
            targets = node.targets
        elif isinstance(node, (ast.AnnAssign, ast.AugAssign)):
            targets = [node.target]
        names = {n.id for t in targets for n in ast.walk(t) if isinstance(n, ast.Name)}
        if name in names and isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
            written = _writes_nan(tree, node)
            return {"line": node.lineno, **({"written": written} if written else {})}
    return None


def _writes_nan(tree: ast.Module, node: ast.stmt) -> int | None:
    """Line at which a function of the same file that ``node`` calls stores NaN or infinity, if there is just one."""
    called = {c.func.id for c in ast.walk(node) if isinstance(c, ast.Call) and isinstance(c.func, ast.Name)}
    lines = {
        inner.lineno
        for definition in ast.walk(tree)
        if isinstance(definition, ast.FunctionDef) and definition.name in called
        for inner in ast.walk(definition)
        if isinstance(inner, ast.Assign) and _is_nonfinite(inner.value)
    }
    return lines.pop() if len(lines) == 1 else None


def _is_nonfinite(node: ast.expr) -> bool:
    if isinstance(node, ast.Attribute):
        return node.attr in ("nan", "NaN", "NAN", "inf")
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "float":
        return (
            bool(node.args)
            and isinstance(node.args[0], ast.Constant)
            and str(node.args[0].value).lower()
            in (
                "nan",
                "inf",
            )
        )
    return False
