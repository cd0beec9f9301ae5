"""The preference loss prefers the rejected answer.

What: a hand-written preference loss (DPO, Bradley-Terry) takes ``-logsigmoid(rejected - chosen)``, or gives the
rejected batch where the chosen one belongs.
Why it matters: the model learns to give the worse answers; accuracy of the pairs falls below one half.
When it is fine: where both the difference and the sign are turned round.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.calls import last_name, written
from trainwreck.code.objective import Term, objectives
from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.preferences import CHOSEN, REJECTED
from trainwreck.code.rehearsal.questions.preferences import swapped as _swapped
from trainwreck.code.rehearsal.questions.references import equal_answers
from trainwreck.code.rule import sighting
from trainwreck.code.scopes import Scope
from trainwreck.code.unpacked import Unpacked, taken_apart
from trainwreck.core.evidence import Evidence

BAD = (
    """
import torch.nn.functional as F
def dpo(pi_chosen, pi_rejected, ref_chosen, ref_rejected, beta=0.1):
    margin = (pi_rejected - ref_rejected) - (pi_chosen - ref_chosen)  # expect
    return -F.logsigmoid(beta * margin).mean()
def train(batch, opt, a, b, c, d):
    loss = dpo(a, b, c, d)
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    """
import torch.nn.functional as F
def train(reward_model, loader, opt):
    for chosen, rejected in loader:
        r_chosen, r_rejected = reward_model(chosen), reward_model(rejected)
        loss = -F.logsigmoid(r_rejected - r_chosen).mean()  # expect
        opt.zero_grad()
        loss.backward()
        opt.step()
""",
    """
import torch
import torch.nn.functional as F
class Trainer:
    def step(self, win, lose):
        diff = self.score(lose) - self.score(win)  # expect
        loss = F.softplus(-diff).mean()
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
""",
)
GOOD = """
import torch.nn.functional as F
def dpo(pi_chosen, pi_rejected, ref_chosen, ref_rejected, beta=0.1):
    margin = (pi_chosen - ref_chosen) - (pi_rejected - ref_rejected)
    return -F.logsigmoid(beta * margin).mean()
def train(reward_model, loader, opt, a, b, c, d):
    for chosen, rejected in loader:
        r_chosen, r_rejected = reward_model(chosen), reward_model(rejected)
        loss = -F.logsigmoid(r_chosen - r_rejected).mean() + F.softplus(r_rejected - r_chosen).mean()
        loss = loss + dpo(a, b, c, d)
        opt.zero_grad()
        loss.backward()
        opt.step()
"""
BETTER = pattern(r"chosen|prefer|\bwin|_win|(^|_)w(_|$)|better|accepted|positive", re.IGNORECASE)
WORSE = pattern(r"reject|\blose|_lose|loser|(^|_)l(_|$)|worse|dispref|negative", re.IGNORECASE)


def find(project: Project) -> Iterator[Evidence]:
    yield from further(__name__, project, _written(project), _swapped, equal_answers)


def _written(project: Project) -> Iterator[Evidence]:
    yield from _renamed(project)
    yield from _taken_apart(project)
    yield from _ranked(project)
    for call, terms in objectives(project):
        for term in terms:
            found = _difference(project, term)
            if found is not None:
                text = "the rejected answer is preferred: the two sides of the difference are swapped"
                yield sighting(__name__, found, text, proof=[call])


def _renamed(project: Project) -> Iterator[Evidence]:
    """``{"rejected": chosen, "chosen": rejected}``, and the same as arguments by name."""
    for scope in project.scopes:
        for node in project.within(scope, ast.Dict, ast.Call):
            pairs: list[tuple[str, ast.expr]] = []
            if isinstance(node, ast.Dict):
                pairs = [
                    (k.value, v)
                    for k, v in zip(node.keys, node.values, strict=True)
                    if isinstance(k, ast.Constant) and isinstance(k.value, str)
                ]
            elif isinstance(node, ast.Call):
                pairs = [(k.arg, k.value) for k in node.keywords if k.arg is not None]
            good = [v for k, v in pairs if k == "chosen" and _called(v) == "rejected"]
            bad = [v for k, v in pairs if k == "rejected" and _called(v) == "chosen"]
            if good and bad:
                text = "what is called rejected is handed on as chosen, and the other way round"
                yield sighting(__name__, (node, scope), text)


def _taken_apart(project: Project) -> Iterator[Evidence]:
    """``rejected, chosen = pairs()`` where it is trained, and ``chosen, rejected = pairs()`` elsewhere."""
    for calls in taken_apart(project):
        for call in calls:
            others = [c for c in calls if c.names != call.names]
            sides = [bool(CHOSEN.search(n)) - bool(REJECTED.search(n)) for n in call.names]
            if not others or sorted(sides) != [-1, 1] or len(others) < len(calls) - len(others):
                continue
            if any(isinstance(a, ast.If) and "__name__" not in written(a.test) for a in _around(project, call)):
                continue  # turned round on purpose, in some of the cases
            rest = max(_learns(project, o) for o in others)
            if _learns(project, call) > rest or len(others) > 1:
                text = "the two answers of a pair get their names in the other order here than elsewhere"
                place = (others[0].scope.module.path, others[0].node.lineno, written(others[0].node)[:80])
                yield sighting(__name__, (call.node, call.scope), text, proof=[place])
                return


def _ranked(project: Project) -> Iterator[Evidence]:
    """``ranked = sorted(answers, key=score)``: its first is called chosen, and it is the one with the least score."""
    for call in project.calls("sorted", "sort"):
        key, turned = call.argument("key"), call.argument("reverse")
        known = turned is None or (isinstance(turned, ast.Constant) and isinstance(turned.value, bool))
        if key is None or not known or not SCORE.search(written(key)) or "-" in written(key):
            continue
        best = -1 if turned is None or not turned.value else 0  # type: ignore[attr-defined]
        statement = project.statement(call.node, call.scope)
        if call.name == "sort":
            name = written(call.receiver) if call.receiver is not None else ""
        else:
            name = written(statement.targets[0]) if isinstance(statement, ast.Assign) else ""
        taken = dict(_taken(call.scope, name)) if name else {}
        good = [at for word, at in taken.items() if CHOSEN.search(word) and not REJECTED.search(word)]
        bad = [at for word, at in taken.items() if REJECTED.search(word) and not CHOSEN.search(word)]
        if good and bad and all(at != best for at in good) and all(at == best for at in bad):
            text = "what is called chosen has the least score by this order, and what is called rejected the largest"
            yield sighting(__name__, call, text)
            return


SCORE = pattern(r"(?<!neg_)(?<!n)(score|reward|rating|quality|votes|upvotes|stars)", re.IGNORECASE)


def _taken(scope: Scope, listed: str) -> Iterator[tuple[str, int]]:
    """The names that get the first and the last of a list: 0 and -1."""
    for node in ast.walk(scope.node):
        if not isinstance(node, ast.Assign) or len(node.targets) != 1:
            continue
        target, value = node.targets[0], node.value
        both = isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts)
        pairs = zip(target.elts, value.elts, strict=True) if both else [(target, value)]  # type: ignore[attr-defined]
        for name, one in pairs:
            if isinstance(one, ast.Subscript) and written(one.value) == listed and written(one.slice) in ("0", "-1"):
                yield written(name), int(written(one.slice))


def _learns(project: Project, call: Unpacked) -> int:
    """2 in a loop that holds a backward, 1 in another one, 0 in none."""
    around = [a for a in (call.node, *_around(project, call)) if isinstance(a, ast.For | ast.While)]
    backward = any(isinstance(n, ast.Attribute) and n.attr == "backward" for a in around for n in ast.walk(a))
    return 2 if backward else 1 if around else 0


def _around(project: Project, call: Unpacked) -> list[ast.AST]:
    return list(project.ancestors(call.node, call.scope))


def _called(value: ast.expr) -> str:
    """The name of a plain name, attribute or entry; empty for what is computed from it."""
    match value:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case ast.Subscript(slice=ast.Constant(value=str(name))):
            return name
    return ""


def _difference(project: Project, term: Term) -> tuple[ast.AST, Scope] | None:
    """The difference of the wrong direction inside ``logsigmoid`` or ``softplus``."""
    for node in ast.walk(term.node):
        if not isinstance(node, ast.Call) or not node.args:
            continue
        name = last_name(node.func)
        sign = term.sign if name == "softplus" else -term.sign if name in ("logsigmoid", "log") else 0
        inner: ast.expr = node.args[0]
        if name == "log":
            if not isinstance(inner, ast.Call) or last_name(inner.func) != "sigmoid" or not inner.args:
                continue
            inner = inner.args[0]
        if sign:
            found = _direction(project, inner, term.scope, -sign if name == "softplus" else sign, 0)
            if found is not None:
                return found
    return None


def _direction(project: Project, node: ast.expr, scope: Scope, sign: int, depth: int) -> tuple[ast.AST, Scope] | None:
    """The difference where the objective wants the worse side higher. ``sign``: +1 where the value is to grow."""
    match node:
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return _direction(project, inner, scope, -sign, depth)
        case ast.BinOp(op=ast.Mult(), left=left, right=right):
            return _direction(project, right, scope, sign, depth) or _direction(project, left, scope, sign, depth)
        case ast.BinOp(op=ast.Sub(), left=left, right=right):
            one, other = _side(project, left, scope), _side(project, right, scope)
            if one and other and one != other and (one == "better") != (sign > 0):
                return project.statement(node, scope), scope
        case ast.Name(id=name) if depth < 4:
            found = [b for b in scope.bindings.get(name, ()) if b.kind == "assign" and not b.path]
            if len(found) == 1 and found[0].value is not None:
                return _direction(project, found[0].value, scope, sign, depth + 1)
    return None


def _side(project: Project, node: ast.expr, scope: Scope) -> str:
    """``better`` or ``worse`` by the names in the expression."""
    names = [
        n.id if isinstance(n, ast.Name) else n.attr for n in ast.walk(node) if isinstance(n, ast.Name | ast.Attribute)
    ]
    good, bad = any(BETTER.search(n) for n in names), any(WORSE.search(n) for n in names)
    if good == bad and isinstance(node, ast.Name):
        for binding in scope.bindings.get(node.id, ()):
            if binding.value is not None and binding.kind == "assign":
                text = written(binding.value)
                good, bad = bool(BETTER.search(text)), bool(WORSE.search(text))
    return "better" if good and not bad else "worse" if bad and not good else ""
