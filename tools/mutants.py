"""Which one-place edits of a healthy script does `check` see? Mutation testing of the rules.

    python tools/mutants.py SCRIPT... [--kinds delete,axis] [--unseen]

Each script is parsed, and every operator, axis, constant, call and statement of it is changed once: ``+`` to ``-``, the
sides of a quotient swapped, ``dim=0`` to ``dim=1``, a number times 100, ``.detach()`` or a whole statement taken out,
two arguments exchanged. An edit counts as seen where a warning or a critical is said of it that the script itself does
not get. Many edits do no harm (a log line, a seed), so 100% is not the aim: ``--unseen`` lists the rest to be read.
Nothing is executed.
"""

from __future__ import annotations

import argparse
import ast
import io
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

OPPOSITE: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult,
}  # fmt: skip
TURNED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.GtE, ast.GtE: ast.Lt, ast.Gt: ast.LtE, ast.LtE: ast.Gt, ast.Eq: ast.NotEq,
}  # fmt: skip
METHODS = {"mean": "sum", "sum": "mean", "eval": "train", "train": "eval", "min": "max", "max": "min"}
DROPPED = frozenset("detach clone abs sqrt exp log softmax sigmoid tanh flip permute transpose long view float".split())
REDUCES = frozenset("mean sum softmax log_softmax argmax cat stack normalize max std cumsum cumprod unsqueeze".split())
MODULES = frozenset(["torch", "F", "np", "nn", "math"])


@dataclass(frozen=True)
class Mutant:
    """One edit: its kind, the line, what was there, and the whole script with it."""

    kind: str
    line: int
    what: str
    code: str


Edit = Callable[[ast.AST, ast.AST | None], ast.AST | None]
"""Changes a node in place (and returns it), or returns what takes its place; it gets the parent too."""


def mutants(text: str) -> Iterator[Mutant]:
    """Every edit of ``text``. Raises SyntaxError for what is no Python."""
    count = len(list(ast.walk(ast.parse(text))))
    for number in range(count):
        for kind, edit in _edits(text, number):
            tree = ast.parse(text)
            node = list(ast.walk(tree))[number]
            parent = _parents(tree).get(node)
            line, what = getattr(node, "lineno", 0), ast.unparse(node)[:80]
            changed = edit(node, parent)
            if changed is not None and changed is not node and parent is not None:
                _replace(parent, node, changed)
            yield Mutant(kind, line, what, ast.unparse(ast.fix_missing_locations(tree)))


def _parents(tree: ast.AST) -> dict[ast.AST, ast.AST]:
    return {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}


def _replace(parent: ast.AST, node: ast.AST, new: ast.AST) -> None:
    for field, value in ast.iter_fields(parent):
        if value is node:
            setattr(parent, field, new)
        elif isinstance(value, list):
            setattr(parent, field, [new if item is node else item for item in value])


def _edits(text: str, number: int) -> list[tuple[str, Edit]]:
    tree = ast.parse(text)
    node = list(ast.walk(tree))[number]
    parents = _parents(tree)
    parent = parents.get(node)
    at: ast.AST | None = node
    while at is not None:  # what is only printed harms nothing
        if isinstance(at, ast.JoinedStr) or (isinstance(at, ast.Call) and ast.unparse(at.func) == "print"):
            return []
        at = parents.get(at)
    found: list[tuple[str, Edit]] = []
    match node:
        case ast.BinOp(op=ast.Add() | ast.Sub() | ast.Mult() | ast.Div()):
            found.append(("operator", _other_operator))
            if isinstance(node.op, ast.Sub | ast.Div):
                found.append(("sides", _other_sides))
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=1)) if _is_axis(node, parent):
            found.append(("axis", lambda n, p: ast.Constant(0)))
        case ast.UnaryOp(op=ast.USub()) if not isinstance(node.operand, ast.Constant):
            found.append(("minus", lambda n, p: n.operand if isinstance(n, ast.UnaryOp) else None))
        case ast.Constant(value=bool()) if isinstance(parent, ast.keyword):
            found.append(("flag", lambda n, p: ast.Constant(not n.value) if isinstance(n, ast.Constant) else None))
        case ast.Constant(value=0 | 1 as axis) if _is_axis(node, parent):
            found.append(("axis", lambda n, p: ast.Constant(1 - axis)))
        case ast.Constant(value=float(size)) if size > 0:
            found.append(("constant", lambda n, p: ast.Constant(size * 100)))
            found.append(("constant", lambda n, p: ast.Constant(size / 100)))
        case ast.Compare(ops=[op]) if type(op) in TURNED:
            found.append(("comparison", _other_comparison))
        case ast.Call():
            found += _of_call(node)
        case ast.With() if "no_grad" in ast.unparse(node.items[0]):
            found.append(
                ("no_grad", lambda n, p: ast.If(ast.Constant(True), n.body, []) if isinstance(n, ast.With) else None)
            )
        case ast.Expr(value=ast.Call() as value) if not ast.unparse(value).startswith(("print(", "super()")):
            found.append(("delete", lambda n, p: ast.Pass()))
        case ast.AugAssign() | ast.Assign(targets=[ast.Subscript() | ast.Attribute()]):
            found.append(("delete", lambda n, p: ast.Pass()))
        case ast.Assign(targets=[ast.Name(id=name)]) if any(
            isinstance(n, ast.Name) and n.id == name for n in ast.walk(node.value)
        ):
            found.append(("delete", lambda n, p: ast.Pass()))
    return found


def _is_axis(node: ast.AST, parent: ast.AST | None) -> bool:
    if isinstance(parent, ast.keyword):
        return parent.arg in ("dim", "axis")
    return isinstance(parent, ast.Call) and isinstance(parent.func, ast.Attribute) and parent.func.attr in REDUCES


def _other_operator(node: ast.AST, parent: ast.AST | None) -> ast.AST | None:
    assert isinstance(node, ast.BinOp)
    node.op = OPPOSITE[type(node.op)]()
    return node


def _other_sides(node: ast.AST, parent: ast.AST | None) -> ast.AST | None:
    assert isinstance(node, ast.BinOp)
    node.left, node.right = node.right, node.left
    return node


def _other_comparison(node: ast.AST, parent: ast.AST | None) -> ast.AST | None:
    assert isinstance(node, ast.Compare)
    node.ops = [TURNED[type(node.ops[0])]()]
    return node


def _of_call(node: ast.Call) -> Iterator[tuple[str, Edit]]:
    if isinstance(node.func, ast.Attribute):
        of_module = isinstance(node.func.value, ast.Name) and node.func.value.id in MODULES
        if node.func.attr in METHODS:
            yield "method", _other_method
        if node.func.attr in DROPPED and not of_module:
            yield (
                "call",
                lambda n, p: n.func.value if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) else None,
            )
    if (
        len(node.args) == 2
        and not node.keywords
        and not any(isinstance(a, ast.Constant | ast.Starred) for a in node.args)
    ):
        yield "arguments", _other_arguments


def _other_method(node: ast.AST, parent: ast.AST | None) -> ast.AST | None:
    assert isinstance(node, ast.Call)
    assert isinstance(node.func, ast.Attribute)
    node.func.attr = METHODS[node.func.attr]
    return node


def _without_call(node: ast.AST, parent: ast.AST | None) -> ast.AST | None:
    assert isinstance(node, ast.Call)
    return node.func.value if isinstance(node.func, ast.Attribute) else None


def _without_context(node: ast.AST, parent: ast.AST | None) -> ast.AST | None:
    assert isinstance(node, ast.With)
    return ast.If(ast.Constant(True), node.body, [])


def _other_arguments(node: ast.AST, parent: ast.AST | None) -> ast.AST | None:
    assert isinstance(node, ast.Call)
    node.args.reverse()
    return node


def said(code: str) -> set[str]:
    """Ids of the warnings and criticals that `check` gives of ``code``."""
    from trainwreck.core.source import Source
    from trainwreck.engine import check

    data = code.encode()
    result = check([Source(name="train.py", open=lambda: io.BytesIO(data), head=data[:65536], size=len(data))])
    return {f.id for f in result.findings if f.severity in ("warning", "critical")}


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("scripts", type=Path, nargs="+")
    options.add_argument("--kinds", default="", help="only these, comma-separated")
    options.add_argument("--unseen", action="store_true", help="list the edits of which nothing is said")
    given = options.parse_args()
    kinds = set(filter(None, given.kinds.split(",")))
    made: Counter[str] = Counter()
    seen: Counter[str] = Counter()
    for path in given.scripts:
        text = path.read_text(encoding="utf-8")
        before = said(ast.unparse(ast.parse(text)))
        for mutant in mutants(text):
            if kinds and mutant.kind not in kinds:
                continue
            made[mutant.kind] += 1
            if said(mutant.code) - before:
                seen[mutant.kind] += 1
            elif given.unseen:
                print(f"{path}:{mutant.line}: {mutant.kind}: {mutant.what}")
    for kind in sorted(made):
        print(f"{kind:12} {seen[kind]:5} of {made[kind]}")
    print(f"{'all':12} {seen.total():5} of {made.total()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
