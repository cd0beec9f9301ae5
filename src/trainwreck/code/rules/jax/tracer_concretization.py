"""Python asks a traced value for its value.

What: ``if``, ``while``, ``float()``, ``int()``, ``bool()``, ``.item()`` or a function of NumPy on a parameter of a
function that ``jax.jit`` compiles.
Why it matters: while tracing there is no value: a TracerBoolConversionError or a ConcretizationTypeError.
When it is fine: on static arguments, on shapes and dtypes, on ``is None``.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import Call, last_name, written
from trainwreck.code.jax import Traced, body_nodes, traced
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.code.scopes import FunctionNode
from trainwreck.core.evidence import Evidence
from trainwreck.core.fix import Fix

WORDS = ("jax", "flax", "optax")
BAD = (
    """
import jax
@jax.jit
def step(x):
    if x > 0:  # expect
        return x
    return -x
""",
    """
import jax
import jax.numpy as jnp
def loss(params, batch, train):
    out = jnp.sum(params * batch)
    while out > 1.0:  # expect
        out = out / 2
    return float(out)  # expect
fast = jax.jit(loss, static_argnums=(2,))
""",
    """
from functools import partial
import jax
import numpy as np
@partial(jax.jit, static_argnames=("n",))
def scale(x, n):
    for i in range(n):
        x = x + 1
    return np.sqrt(x)  # expect
""",
)
GOOD = """
from functools import partial
import jax
import jax.numpy as jnp
import numpy as np
@partial(jax.jit, static_argnames=("train", "n"))
def step(params, x, mask=None, train=True, n=3):
    if train:
        x = x * 2
    if mask is not None:
        x = x * mask
    if x.ndim == 2 and x.shape[0] > 1 and len(x.shape) > 1:
        x = x[None]
    if isinstance(params, dict) and "w" in params:
        x = x @ params["w"]
    scale = np.sqrt(x.shape[-1])
    return jnp.where(x > 0, x, -x) / scale, float(n)
def plain(x):
    return float(x) if x > 0 else np.sqrt(x)
@jax.jit
def mode(x, kind: str = "a"):
    if kind == "a":
        return x
    return -x
@jax.jit
def tree(x):
    flat, size = jax.tree_util.tree_flatten(x)
    if flat:
        return jnp.stack(flat)
    return size
"""
SHAPES = frozenset(["shape", "ndim", "dtype", "size", "aval", "weak_type", "sharding"])
UFUNCS = frozenset(
    ["exp", "log", "sqrt", "dot", "matmul", "where", "concatenate", "stack", "array", "asarray", "tanh", "sin", "cos",
     "abs", "maximum", "minimum", "einsum", "outer", "log1p", "expm1", "square", "power", "clip"]
)  # fmt: skip
"""Functions of NumPy that turn their argument into an array (reductions ask the argument instead)."""


def find(project: Project) -> Iterator[Evidence]:
    told: set[ast.AST] = set()
    for item in traced(project):
        if item.static is None or not isinstance(item.scope.node, FunctionNode):
            continue
        names = _tracers(project, item)
        for node in body_nodes(item.scope):
            found = _asked(project, node, item, names)
            if found is not None and node not in told:
                told.add(node)
                text = f"{found} has no value while {item.scope.name} is traced by {item.transform}"
                fix = Fix("jnp.where or jax.lax.cond for values; static_argnames for settings; jnp instead of np")
                place = (node.test if isinstance(node, ast.If | ast.While) else node, item.scope)
                yield sighting(
                    __name__, place, text, proof=[(item.scope.module.path, _line(item.by), item.transform)], fix=fix
                )


def _line(node: ast.AST) -> int:
    return int(getattr(node, "lineno", 1))


def _tracers(project: Project, item: Traced) -> set[str]:
    """Parameters that are surely arrays or numbers, and names computed from them by ``jax.numpy`` or arithmetic."""
    assert isinstance(item.scope.node, FunctionNode)
    args = item.scope.node.args
    names = set()
    defaults = dict(zip([a.arg for a in args.args][len(args.args) - len(args.defaults) :], args.defaults, strict=True))
    for arg in (*args.posonlyargs, *args.args, *args.kwonlyargs):
        note = written(arg.annotation)
        plain = note in ("str", "bool", "dict", "Callable", "list", "tuple") or "Callable" in note or "str" in note
        default = defaults.get(arg.arg)
        setting = isinstance(default, ast.Constant) and isinstance(default.value, str | bool)
        if arg.arg not in (item.static or ()) and not plain and not setting:
            names.add(arg.arg)
    for node in body_nodes(item.scope):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            if _computed(project, node.value, item, names):
                names.add(node.targets[0].id)
            else:
                names.discard(node.targets[0].id)
    return names


def _computed(project: Project, node: ast.expr, item: Traced, names: set[str]) -> bool:
    if isinstance(node, ast.BinOp):
        return any(_value(side, names) or _computed(project, side, item, names) for side in (node.left, node.right))
    if isinstance(node, ast.Call):
        name = project.called(Call(node, item.scope))
        given = any(_value(n, names) for n in ast.walk(node) if isinstance(n, ast.Name))
        return (
            name.startswith("jax.numpy.") and name.rsplit(".", 1)[-1] not in ("shape", "ndim", "issubdtype") and given
        )
    return False


def _value(node: ast.expr, names: set[str]) -> bool:
    return isinstance(node, ast.Name) and node.id in names


def _asked(project: Project, node: ast.AST, item: Traced, names: set[str]) -> str | None:
    """What is asked for its value by ``node``."""
    match node:
        case ast.If(test=test) | ast.While(test=test):
            return _tested(test, names)
        case ast.Call(func=ast.Name(id="float" | "int" | "bool"), args=[ast.Name(id=name)]) if name in names:
            return name
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="item" | "tolist")) if name in names:
            return name
        case ast.Call(args=[ast.Name(id=name), *_]) if name in names and last_name(node.func) in UFUNCS:
            return name if project.called(Call(node, item.scope)).startswith("numpy.") else None
    return None


def _tested(test: ast.expr, names: set[str]) -> str | None:
    """The tracer whose value a test needs: a comparison with a number, or its bare truth after a comparison."""
    match test:
        case ast.BoolOp(values=parts):
            return next((found for p in parts if (found := _tested(p, names)) is not None), None)
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            return _tested(inner, names) if isinstance(inner, ast.Compare) else None
        case ast.Compare(left=left, ops=[ast.Gt() | ast.Lt() | ast.GtE() | ast.LtE()], comparators=[right]):
            sides = (left, right)
            return next((n.id for n in sides if isinstance(n, ast.Name) and n.id in names), None)
    return None
