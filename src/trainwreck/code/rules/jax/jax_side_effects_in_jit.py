"""A compiled function does something besides computing.

What: ``print``, writing to ``self`` or a global, drawing from NumPy or ``random``, asking for the time, in a function
that ``jax.jit`` or ``jax.pmap`` compiles.
Why it matters: it happens once, while tracing: random numbers and times become constants, and what is stored is a
tracer.
When it is fine: with ``jax.debug.print`` and callbacks, or where the one time is what is meant.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import Call, written
from trainwreck.code.jax import body_nodes, traced
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.code.scopes import Scope
from trainwreck.core.evidence import Evidence, Severity
from trainwreck.core.fix import Fix

WORDS = ("jax", "flax", "optax")
BAD = (
    """
import jax
import numpy as np
@jax.jit
def step(x):
    noise = np.random.randn(3)  # expect
    print("loss", x)  # expect
    return x + noise
""",
    """
import random
import jax
class Net:
    @jax.jit
    def __call__(self, x):
        self.last = x  # expect
        return x * random.random()  # expect
""",
    """
import time
import jax
log = []
def step(x):
    log.append(x)  # expect
    return x * time.time()  # expect
fast = jax.jit(step)
""",
)
GOOD = """
import jax
import numpy as np
@jax.jit
def step(x, key):
    jax.debug.print("x {}", x)
    print("tracing")
    out = []
    out.append(x)
    return out[0] + jax.random.normal(key) + np.pi
def plain(x):
    print(x)
    return x + np.random.randn()
"""


def find(project: Project) -> Iterator[Evidence]:
    told: set[ast.AST] = set()
    for item in traced(project):
        for node in body_nodes(item.scope):
            found = _effect(project, node, item.scope)
            if found is None or node in told:
                continue
            told.add(node)
            what, severity, words = found
            text = f"{what} happens once, while {item.scope.name} is traced by {item.transform}"
            yield sighting(__name__, (node, item.scope), text, fix=Fix(words), severity=severity)


def _effect(project: Project, node: ast.AST, scope: Scope) -> tuple[str, Severity, str] | None:
    match node:
        case ast.Call(func=ast.Name(id="print"), args=[*parts]):
            params = set(scope.params)
            shown = any(isinstance(n, ast.Name) and n.id in params for p in parts for n in ast.walk(p))
            return ("print of a traced value", "suggestion", 'jax.debug.print("{}", x)') if shown else None
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="append")):
            outer = _of_module(project, name, scope)
            traced_ = any(isinstance(n, ast.Name) and n.id in scope.params for a in node.args for n in ast.walk(a))
            return (f"{name}.append", "warning", "give the value back") if outer and traced_ else None
        case ast.Call():
            dotted = project.called(Call(node, scope))
            if dotted.startswith("numpy.random.") or dotted in ("random.random", "random.randint", "random.uniform"):
                return written(node.func), "warning", "jax.random with a key that is handed over"
            if dotted in ("time.time", "time.perf_counter", "datetime.datetime.now"):
                return written(node.func), "warning", "ask for the time outside"
        case ast.Assign(targets=[ast.Attribute(value=ast.Name(id="self"), attr=name)]):
            return f"self.{name} = ...", "warning", "give the value back"
    return None


def _of_module(project: Project, name: str, scope: Scope) -> bool:
    """True for a name that only the module binds."""
    bindings = [b for b in project.lookup(name, scope) if b.kind != "append"]
    return bool(bindings) and all(b.scope.kind == "module" and b.kind == "assign" for b in bindings)
