"""A reward function that TRL can't call, or that gives back one number.

What: a function among ``reward_funcs`` without ``**kwargs`` that lacks ``prompts``, ``completions`` or
``completion_ids``, or one that returns a single number.
Why it matters: it is called with these names and all columns of the data: a TypeError in the first step; a single
number can't be iterated.
When it is fine: with ``**kwargs`` and one value per completion.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import Call
from trainwreck.code.facts import option
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.code.scopes import Scope
from trainwreck.core.evidence import Evidence
from trainwreck.core.fix import Fix

BAD = (
    """
from trl import GRPOTrainer
def reward(completions):  # expect
    return [float(len(c)) for c in completions]
GRPOTrainer("m", reward_funcs=reward, train_dataset=data).train()
""",
    """
from trl import GRPOTrainer
def reward(completions, **kwargs):
    total = 0.0
    for c in completions:
        total += score(c)
    return float(total)  # expect
GRPOTrainer("m", reward_funcs=[reward], train_dataset=data).train()
""",
    """
from trl import GRPOTrainer
def exact(prompts, completions, answer):  # expect
    return [c == a for c, a in zip(completions, answer)]
def form(completions, **rest):
    return [1.0 if "x" in c else 0.0 for c in completions]
FUNCTIONS = [exact, form]
GRPOTrainer("m", reward_funcs=FUNCTIONS, train_dataset=data).train()
""",
)
GOOD = """
from trl import GRPOTrainer
def one(completions, **kwargs):
    return [float(len(c)) for c in completions]
def two(prompts, completions, completion_ids, answer, **kwargs):
    return [c == a for c, a in zip(completions, answer)]
class Judge:
    def __call__(self, completions, **kwargs):
        return [1.0] * len(completions)
def helper(text):
    return 1.0
GRPOTrainer("m", reward_funcs=[one, two], train_dataset=data).train()
GRPOTrainer("m", reward_funcs=Judge(), train_dataset=data).train()
GRPOTrainer("m", reward_funcs=lambda completions, **k: [helper(c) for c in completions], train_dataset=data).train()
"""
CALLED_WITH = frozenset(["prompts", "completions", "completion_ids"])
"""Names that every call of a reward function has (trl 0.16 to 1.16), beside the columns of the data."""


def functions(project: Project) -> Iterator[tuple[Scope, Call]]:
    """Functions of the program that are handed over as ``reward_funcs``, with the trainer."""
    for call in project.calls("GRPOTrainer", "RLOOTrainer"):
        given = option(project, call, "reward_funcs", 1)
        if given is None or project.called(call).split(".", 1)[0] != "trl":
            continue
        from trainwreck.code.values import literal

        found = literal(project, *given)
        items = getattr(found[0], "elts", []) if found is not None else [given[0]]
        where = found[1] if found is not None else given[1]
        for item in items:
            function = project.resolve(item, where) if isinstance(item, ast.Name | ast.Attribute) else None
            if function is not None and function.kind == "function":
                yield function, call


def find(project: Project) -> Iterator[Evidence]:
    for function, call in functions(project):
        node = function.node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        missing = CALLED_WITH - set(function.params)
        if node.args.kwarg is None and missing:
            text = f"{function.name} is called with {', '.join(sorted(missing))} too, and takes no **kwargs"
            yield sighting(__name__, (node, function), text, proof=[call], fix=Fix("add **kwargs"))
        for value in function.returns:
            if value is not None and _one(value):
                text = f"{function.name} gives one number back, not one for each completion"
                fix = Fix("return a list with a value per completion")
                yield sighting(__name__, (value, function), text, proof=[call], fix=fix)


def _one(node: ast.expr) -> bool:
    match node:
        case ast.Constant(value=int() | float()):
            return True
        case ast.Call(func=ast.Name(id="float" | "int" | "round" | "len" | "sum")):
            return True
    return False
