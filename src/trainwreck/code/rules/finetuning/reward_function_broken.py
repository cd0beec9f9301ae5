"""A reward that is the same for every completion, or that an environment can never give.

What: every ``return`` of a function among ``reward_funcs`` gives one constant, repeated; or the state is set back
before it is compared with the goal; or a reward of the last step is multiplied by ``1 - done``; or a text is compared
with one that it can never equal (``text.lower() == "Yes"``).
Why it matters: advantages are differences between rewards: they are all zero, and nothing is learned.
When it is fine: as a stand-in while something else is tried; together with other rewards it does no harm.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.never_equal import never_true
from trainwreck.code.project import Project
from trainwreck.code.rehearsal import rehearsals
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.policy import surrogates
from trainwreck.code.rehearsal.questions.rewarding import reset_first, taken_at_end
from trainwreck.code.rehearsal.questions.unread_answers import answer_unread
from trainwreck.code.rule import sighting
from trainwreck.code.rules.finetuning.reward_func_signature import functions
from trainwreck.core.evidence import Evidence

BAD = (
    """
from trl import GRPOTrainer
def reward(completions, **kwargs):
    return [1.0] * len(completions)  # expect
GRPOTrainer("m", reward_funcs=reward, train_dataset=data).train()
""",
    """
from trl import GRPOTrainer
def reward(prompts, completions, **kwargs):
    if not completions:
        return [0.0 for _ in prompts]
    return [0.0 for c in completions]  # expect
GRPOTrainer("m", reward_funcs=[reward], train_dataset=data).train()
""",
    """
from trl import GRPOTrainer
def reward(completions, answer, **kwargs):
    scores = []
    for text, right in zip(completions, answer):
        said = text.strip().lower()
        scores.append(1.0 if said == "Yes" and right else 0.0)  # expect
    return scores
GRPOTrainer("m", reward_funcs=[reward], train_dataset=data).train()
""",
    """
import re
from trl import GRPOTrainer
def matches(text, right):
    found = re.findall(r"-?[0-9]+", text)
    return found == str(right)  # expect
def score(completions, answer, **kwargs):
    return [2.0 * matches(c, a) for c, a in zip(completions, answer)]
GRPOTrainer("m", reward_funcs=[score], train_dataset=data).train()
""",
)
GOOD = """
from trl import GRPOTrainer
def said(completions, answer, **kwargs):
    scores = []
    for text, right in zip(completions, answer):
        word = text.strip().lower()
        if word in ("Yes", "yes") or word.split()[0] == "no" or text.upper() == "TRUE" or word == right:
            scores.append(1.0)
        else:
            scores.append(float("answer:" in text.lower()) if int(word) == int(right) else 0.0)
    return scores
def one(completions, **kwargs):
    if bad():
        return [0.0] * len(completions)
    return [float(len(c)) for c in completions]
def two(completions, **kwargs):
    return [1.0 if "x" in c else 0.0 for c in completions]
def three(completions, **kwargs):
    rewards = [0.0] * len(completions)
    rewards[0] = 1.0
    return rewards
def four(completions, **kwargs):
    return [0.0] * len(completions) if off() else [1.0] * len(completions)
GRPOTrainer("m", reward_funcs=[said, one, two, three, four], train_dataset=data).train()
"""


def find(project: Project) -> Iterator[Evidence]:
    found = [*_constant(project), *_never_earned(project)]
    yield from further(__name__, project, found, reset_first, taken_at_end, answer_unread)


def _never_earned(project: Project) -> Iterator[Evidence]:
    """A test of a text that is never met, in a function that scores what a policy wrote."""
    scorers = {f: call for f, call in functions(project)}
    if not scorers and not any(surrogates(run) for run in rehearsals(project)):
        return
    for scope in project.functions:
        if not any(isinstance(v, ast.expr) for v in scope.returns):
            continue
        if scorers and scope not in scorers and not any(c.scope in scorers for c in project.callers(scope)):
            continue
        for node, why in never_true(project, scope):
            yield sighting(__name__, (node, scope), f"this test never comes out: {why}")


def _constant(project: Project) -> Iterator[Evidence]:
    for function, call in functions(project):
        values = [_repeated(v) if v is not None else None for v in function.returns]
        if values and None not in values and len(set(values)) == 1 and function.returns[-1] is not None:
            text = f"{function.name} gives every completion the reward {values[0]}"
            yield sighting(__name__, (function.returns[-1], function), text, proof=[call])


def _repeated(node: ast.expr) -> float | None:
    """The one number that a list of it holds."""
    match node:
        case ast.BinOp(left=ast.List(elts=[ast.Constant(value=int() | float() as value)]), op=ast.Mult()):
            return float(value)
        case ast.ListComp(elt=ast.Constant(value=int() | float() as value)):
            return float(value)
    return None
