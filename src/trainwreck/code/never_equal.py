"""Comparisons of text that can never come out true: what is sure of both sides rules it out."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.project import Project
from trainwreck.code.scopes import FunctionNode, Scope

Facts = frozenset[str]
NOTHING: Facts = frozenset()
KINDS = frozenset(["text", "number", "list"])
KEEPS = {"strip": {"lower", "upper", "solid"}, "lower": {"trimmed", "solid"}, "upper": {"trimmed", "solid"},
         "lstrip": {"lower", "upper", "solid"}, "rstrip": {"lower", "upper", "solid"},
         "replace": {"none"}, "title": {"none"}, "capitalize": {"none"}, "removeprefix": {"lower", "upper", "solid"},
         "removesuffix": {"lower", "upper", "solid"}}  # fmt: skip
"""Methods of text that give text, and which facts outlast them."""
MAX_DEPTH = 8


def never_true(project: Project, scope: Scope) -> Iterator[tuple[ast.expr, str]]:
    """The comparisons of a function that can't be met, each with the reason."""
    for node in project.within(scope, ast.Compare, ast.Call):
        match node:
            case ast.Compare(left=left, ops=[ast.Eq() | ast.NotEq()], comparators=[right]):
                one, other = facts(project, left, scope), facts(project, right, scope)
                why = _apart(one, right) or _apart(other, left) or _kinds(one, other)
            case ast.Compare(left=left, ops=[ast.In()], comparators=[ast.Tuple(elts=e) | ast.List(elts=e)]) if e:
                one = facts(project, left, scope)
                found = [_apart(one, item) for item in e]
                why = found[0] if all(found) else ""
            case ast.Compare(left=ast.Constant(value=str()) as left, ops=[ast.In()], comparators=[right]):
                why = _cased(facts(project, right, scope), left)
            case ast.Call(func=ast.Attribute(value=text, attr="startswith" | "endswith"), args=[ast.Constant() as end]):
                why = _cased(facts(project, text, scope), end)
            case _:
                why = ""
        if why and isinstance(node, ast.expr):
            yield node, why


def _cased(known: Facts, node: ast.expr) -> str:
    value = node.value if isinstance(node, ast.Constant) else None
    if not isinstance(value, str):
        return ""
    if "lower" in known and value != value.lower():
        return f"lower-case text never holds {value!r}"
    return f"upper-case text never holds {value!r}" if "upper" in known and value != value.upper() else ""


def _apart(known: Facts, node: ast.expr) -> str:
    """Why what is ``known`` of one side never equals a text that is written out."""
    value = node.value if isinstance(node, ast.Constant) else None
    if not isinstance(value, str):
        return ""
    if cased := _cased(known, node):
        return cased.replace("holds", "equals")
    if "trimmed" in known and value != value.strip():
        return f"text without blanks at its ends never equals {value!r}"
    return f"one word never equals {value!r}" if "solid" in known and len(value.split()) > 1 else ""


def _kinds(one: Facts, other: Facts) -> str:
    kinds = [sorted(f & KINDS) for f in (one, other)]
    if all(len(k) == 1 for k in kinds) and kinds[0] != kinds[1]:
        return f"a {kinds[0][0]} never equals a {kinds[1][0]}"
    return ""


def facts(project: Project, node: ast.expr, scope: Scope, depth: int = 0) -> Facts:
    """What is sure of a value: its kind, and of text which case it has and that it has no blanks (at its ends)."""
    if depth > MAX_DEPTH:
        return NOTHING
    match node:
        case ast.Constant(value=str()) | ast.JoinedStr():
            return frozenset(["text"])
        case ast.Constant(value=int() | float()):
            return frozenset(["number"])
        case ast.List() | ast.ListComp():
            return frozenset(["list"])
        case ast.IfExp(body=body, orelse=other):
            return facts(project, body, scope, depth + 1) & facts(project, other, scope, depth + 1)
        case ast.Subscript(value=ast.Call(func=ast.Attribute(value=text, attr="split"), args=[]), slice=index) if not (
            isinstance(index, ast.Slice) or _of_columns(text)
        ):
            return (facts(project, text, scope, depth + 1) & {"lower", "upper"}) | {"text", "solid", "trimmed"}
        case ast.Call():
            return _called(project, node, scope, depth)
        case ast.Name():
            return _named(project, node, scope, depth)
    return NOTHING


def _called(project: Project, node: ast.Call, scope: Scope, depth: int) -> Facts:
    match node.func:
        case ast.Name(id="str") if project.dotted(node.func, scope) in ("str", "builtins.str"):
            return frozenset(["text"])
        case ast.Name(id="int" | "float" | "len") if (
            project.dotted(node.func, scope).rsplit(".", 1)[-1] == node.func.id
        ):
            return NOTHING if project.lookup(node.func.id, scope) else frozenset(["number"])
        case ast.Attribute(attr="findall") if project.dotted(node.func, scope) == "re.findall":
            return frozenset(["list"])
        case ast.Attribute(value=text, attr="split") if not _of_columns(text):
            known = facts(project, text, scope, depth + 1)
            return frozenset(["list"]) if "text" in known else NOTHING
        case ast.Attribute(value=text, attr=name) if name in KEEPS and not _of_columns(text):
            kept = facts(project, text, scope, depth + 1) & KEEPS[name]
            if name in ("strip", "lower", "upper") and not node.args:
                kept |= {"trimmed" if name == "strip" else name}
            return kept | {"text"}
    return NOTHING


def _of_columns(text: ast.expr) -> bool:
    """``column.str.lower()``: many texts at once."""
    return isinstance(text, ast.Attribute) and text.attr in ("str", "char", "strings")


def _named(project: Project, node: ast.Name, scope: Scope, depth: int) -> Facts:
    found = project.bindings(node, scope)
    if not found or any(b.kind not in ("assign", "param") or b.path for b in found):
        return NOTHING
    last = max(found, key=lambda b: b.line)
    if last.kind == "assign" and last.scope is scope and last.line < node.lineno and last.value is not None:
        at = project.parent(project.statement(last.value, scope), scope)
        if at is None or isinstance(at, FunctionNode):
            return facts(project, last.value, scope, depth + 1)
    known: list[Facts] = []
    for binding in found:
        if binding.kind == "assign" and binding.value is not None:
            if _reads(binding.value, node.id):
                return NOTHING
            known.append(facts(project, binding.value, binding.scope, depth + 1))
        else:
            given = project.arguments(binding)
            known += [facts(project, value, where, depth + 1) for value, where in given] or [NOTHING]
    return frozenset.intersection(*known)


def _reads(value: ast.expr, name: str) -> bool:
    return any(isinstance(n, ast.Name) and n.id == name for n in ast.walk(value))
