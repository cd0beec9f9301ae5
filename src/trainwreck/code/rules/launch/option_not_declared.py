"""The program reads an option that its parser does not have.

What: `args.learning_rate` where the parser declares `--lr` (and nothing else sets the attribute).
Why it matters: AttributeError: 'Namespace' object has no attribute, often only at the end of the first epoch.
When it is fine: where the attribute is set by the program, the parser is open, or the namespace is filled otherwise.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.arguments import attributes_set
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.code.scopes import Scope
from trainwreck.code.settings.accepted import close
from trainwreck.code.settings.parsers import Parser, parser_of
from trainwreck.core.evidence import Evidence
from trainwreck.core.fix import Fix

BAD = (
    """
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=0.1)
parser.add_argument("--batch-size", type=int)
args = parser.parse_args()
print(args.batch_size, args.lr)
print(args.batchsize)  # expect
""",
    """
import argparse
def options():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=1)
    return parser.parse_args()
def train(opt):
    for epoch in range(opt.epochs):
        print(opt.save_every)  # expect
if __name__ == "__main__":
    opt = options()
    train(opt)
""",
    """
import argparse
def main():
    p = argparse.ArgumentParser()
    p.add_argument("--out-dir", dest="out")
    args = p.parse_args()
    def save():
        return args.out_dir  # expect
    return save
""",
)
GOOD = (
    """
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float)
parser.add_argument("data")
parser.set_defaults(run=3)
args = parser.parse_args()
args.device = "cuda"
print(args.lr, args.data, args.run, args.device, args.__dict__)
if hasattr(args, "extra"):
    print(args.extra)
print(getattr(args, "more", 1))
""",
    """
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float)
args, _ = parser.parse_known_args()
print(args.lr, args._get_kwargs())
""",
    """
import argparse, yaml
parser = argparse.ArgumentParser()
parser.add_argument("--config")
args = parser.parse_args()
vars(args).update(yaml.safe_load(open(args.config)))
print(args.lr)
""",
    """
import argparse
def build():
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr")
    return parser.parse_args()
def main():
    args = merge(build())
    print(args.other)
""",
)
OPENING = frozenset(["setattr", "vars", "Namespace", "merge", "update", "hasattr"])


def find(project: Project) -> Iterator[Evidence]:
    for path, walked in project.walked.items():
        text = walked.top.module.text
        if "parse_args" not in text or path.endswith(".ipynb"):
            continue
        parser = parser_of(project, path)
        if parser is None or parser.kind != "argparse" or not parser.closed or "*" in parser.defaults:
            continue
        if not parser.namespaces or any(not name for name, _ in parser.namespaces) or parser.path != path:
            continue
        reads: dict[tuple[str, int], tuple[ast.Attribute, Scope]] = {}
        if all(_follow(project, name, scope, reads, 0) for name, scope in parser.namespaces):
            yield from _judged(project, parser, reads)


def _follow(
    project: Project, name: str, scope: Scope, reads: dict[tuple[str, int], tuple[ast.Attribute, Scope]], depth: int
) -> bool:
    """Collect the attributes that are read; False where the namespace may be filled in another way."""
    if sum(b.kind not in ("append", "param") for b in scope.bindings.get(name, ())) > 1:
        return False
    todo = [scope]
    while todo:
        at = todo.pop()
        if at is not scope and name in at.bindings:
            continue
        for node in project.within(at, ast.Name):
            assert isinstance(node, ast.Name)
            if node.id != name or not isinstance(node.ctx, ast.Load):
                continue
            above = project.parent(node, at)
            if isinstance(above, ast.Attribute):
                if isinstance(above.ctx, ast.Load) and not above.attr.startswith("_"):
                    reads.setdefault((at.module.path, above.lineno * 1000 + above.col_offset), (above, at))
            elif (
                (isinstance(above, ast.Call) and isinstance(above.func, ast.Name) and above.func.id in OPENING)
                or (isinstance(above, ast.Call) and depth < 3 and not _handed(project, above, node, at, reads, depth))
                or isinstance(above, ast.Assign | ast.Return | ast.Starred)
            ):
                return False
        todo += at.children
    return True


def _handed(
    project: Project,
    call: ast.Call,
    node: ast.Name,
    scope: Scope,
    reads: dict[tuple[str, int], tuple[ast.Attribute, Scope]],
    depth: int,
) -> bool:
    """The namespace goes to a function: of the project, it is followed; another one may read what it likes."""
    target = project.resolve(call.func, scope)
    if target is None or target.kind != "function":
        return True
    names = target.positional
    shift = 1 if target.owner is not None and names[:1] in (["self"], ["cls"]) else 0
    place = next((n for n, a in enumerate(call.args) if a is node), None)
    if place is None or place + shift >= len(names):
        return True
    if len(project.callers(target)) != 1:
        return True  # others may call it with something else
    return _follow(project, names[place + shift], target, reads, depth + 1)


def _judged(
    project: Project, parser: Parser, reads: dict[tuple[str, int], tuple[ast.Attribute, Scope]]
) -> Iterator[Evidence]:
    known = {o.dest for o in parser.options} | parser.defaults | {"help"}
    set_later = attributes_set(project)
    told_of: set[str] = set()
    for node, scope in reads.values():
        name = node.attr
        if name in known or name in set_later or name in told_of or f'"{name}"' in scope.module.text:
            continue
        told_of.add(name)
        meant = close(name, frozenset(known), 0.75)
        hint = f"; {meant} is meant?" if meant else ""
        proof = [(parser.path, int(getattr(parser.node, "lineno", 1)), "the parser")]
        fix = Fix(f"read {meant}, or declare --{name.replace('_', '-')}") if meant else None
        yield sighting(__name__, (node, scope), f"the parser has no option {name}{hint}", proof=proof, fix=fix)
