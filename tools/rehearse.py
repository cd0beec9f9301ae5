"""Shows the rehearsal of a script: its tape, and the graph of each first backward. For writing rules."""

from __future__ import annotations

import sys
from pathlib import Path

from trainwreck.code.project import Project
from trainwreck.code.read import parse
from trainwreck.code.rehearsal import rehearsals
from trainwreck.code.rehearsal.domain import Node
from trainwreck.code.rehearsal.graph import parts
from trainwreck.code.rehearsal.state import line_of
from trainwreck.core.program import Module, Program


def project(path: Path) -> Project:
    module = parse(path.name, path.read_text())
    assert isinstance(module, Module), module
    return Project(Program({path.name: module}))


def show(node: Node, depth: int = 0, limit: int = 14, seen: set[int] | None = None) -> None:
    seen = set() if seen is None else seen
    again = " ..." if id(node) in seen else ""
    mark = "*" if node.grad else " "
    print(
        f"{'  ' * depth}{mark}{node.op} {node.name} line {line_of(node.place)} {node.shape} {node.options or ''}{again}"
    )
    if again or depth >= limit:
        return
    seen.add(id(node))
    for value in node.inputs:
        for inner in parts(value):
            show(inner, depth + 1, limit, seen)


def main() -> None:
    for name in sys.argv[1:]:
        for run in rehearsals(project(Path(name))):
            print(f"== {name}: {run.steps} steps, {len(run.nodes)} values")
            for event in run.tape:
                loops = "/".join(
                    f"{line_of((t.node, t.scope))}:{t.index}{'*' if t.generic else ''}" for t in event.turns
                )
                print(
                    f"{line_of(event.place):5} {event.name:16} {event.subject!r:40}",
                    f"loops {loops or '-'} maybe {event.maybe}",
                )
            shown: set[int] = set()
            for event in run.tape:
                if event.name == "backward" and line_of(event.place) not in shown:
                    shown.add(line_of(event.place))
                    print(f"-- backward at line {line_of(event.place)} reaches {len(event.state['reached'])}")
                    for value in parts(event.subject):
                        show(value)


if __name__ == "__main__":
    main()
