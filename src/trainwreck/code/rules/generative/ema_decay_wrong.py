"""A moving average of weights that does not average: factors that do not add up to one, or a wrong decay.

What: ``s.mul_(decay).add_(p, alpha=decay)``; a decay so near to 1 that the average still holds the first weights when
the run ends; the two factors swapped, so that the average is the last weights.
Why it matters: in the first case it grows without end, in the second it is the untrained network, in the third it
averages nothing.
When it is fine: with ``alpha=1 - decay`` or ``lerp_(p, 1 - decay)``, and a horizon ``1 / (1 - decay)`` well within
the run.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator

from trainwreck.code.bounds import interval, origin
from trainwreck.code.calls import Call, last_name, written
from trainwreck.code.order import loops
from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.attraction import follower_stays
from trainwreck.code.rehearsal.questions.averaging import SMALL, never_moved
from trainwreck.code.rehearsal.questions.averaging import swapped as _swapped
from trainwreck.code.rehearsal.questions.followers import itself, stays
from trainwreck.code.rehearsal.questions.freezing import backwards_average, left_behind
from trainwreck.code.rehearsal.questions.horizons import weights_stay
from trainwreck.code.rehearsal.questions.kept_averages import average_unread, mixed_with_itself
from trainwreck.code.rehearsal.questions.merged_weights import led_away, never_brought_back, not_an_average
from trainwreck.code.rehearsal.questions.quantisers import codes_stay, unlike_shares
from trainwreck.code.rehearsal.questions.statistics import swapped_statistics
from trainwreck.code.rounds import rounds, turns
from trainwreck.code.rule import guess, sighting
from trainwreck.code.scopes import Scope
from trainwreck.code.surface import Surface
from trainwreck.core.evidence import Evidence

BAD = (
    """
def update(shadow, model, decay):
    for s, p in zip(shadow, model):
        s.mul_(decay).add_(p, alpha=decay)  # expect
""",
    """
import copy
from types import SimpleNamespace
hp = SimpleNamespace(lr=0.1, ema=0.99999, steps=500)  # expect
class Shadow:
    def __init__(self, net, decay):
        self.net, self.decay = copy.deepcopy(net), decay
    def update(self, net):
        for s, p in zip(self.net.parameters(), net.parameters()):
            s.lerp_(p, 1 - self.decay)
def main(net, step):
    shadow = Shadow(net, hp.ema)
    for i in range(hp.steps):
        step(net)
        shadow.update(net)
""",
    """
DECAY = 0.999
def ema_update(target, online):
    for t, o in zip(target.parameters(), online.parameters()):
        t.data = (1 - DECAY) * t.data + DECAY * o.data  # expect
def main(a, b, loader):
    for x in loader:
        ema_update(a, b)
""",
    """
def update(ema, model, decay=0.9999):  # expect
    for e, p in zip(ema.parameters(), model.parameters()):
        e.copy_(decay * e + (1 - decay) * p)
def main(ema, model, step):
    for i in range(2000):
        step(model)
        update(ema, model)
""",
)
GOOD = """
def update(shadow, model, decay):
    for s, p in zip(shadow, model):
        s.mul_(decay).add_(p, alpha=1 - decay)
        s.data = decay * s.data + (1 - decay) * p.data
def polyak(target, online, tau=0.005):
    for t, o in zip(target.parameters(), online.parameters()):
        t.data.copy_(tau * o.data + (1 - tau) * t.data)
def hard(target, online, tau=1.0):
    for t, o in zip(target.parameters(), online.parameters()):
        t.lerp_(o, tau)
def slow(ema, model, decay=0.9999):
    for e, p in zip(ema.parameters(), model.parameters()):
        e.lerp_(p, 1 - decay)
def main(ema, model, loader):
    running = 0.0
    for epoch in range(400):
        for x in loader:
            polyak(ema, model)
            slow(ema, model)
            hard(ema, model)
            running = 0.1 * running + 0.9 * x
"""
EXTREME = 0.99995
"""From here on the average looks back 20,000 updates and more; only runs of 100,000 steps use such a decay."""
LOOKS_BACK = 0.5
"""Updates times (1 - decay): below this, more than 60% of the average are the first weights."""
CORRECTED = pattern(r"/=?\s*\(?\s*1(\.0)?\s*-\s*[\w.\[\]]+\s*\*\*")
"""A division by ``1 - decay ** n``: the average starts at zero and is corrected for it (Kingma and Ba 2014)."""
SWAPPED = 0.2
"""An average that keeps less than this of its old value is none; published decays lie at 0.9 and above."""


def find(project: Project) -> Iterator[Evidence]:
    asked = [
        _swapped,
        not_an_average,
        led_away,
        never_brought_back,
        stays,
        itself,
        never_moved,
        follower_stays,
        left_behind,
        backwards_average,
        swapped_statistics,
        codes_stay,
        unlike_shares,
        mixed_with_itself,
        average_unread,
    ]
    if not any(CORRECTED.search(w.top.module.text) for w in project.walked.values()):
        asked.append(weights_stay)
    yield from further(__name__, project, _written(project), *asked)


def _written(project: Project) -> Iterator[Evidence]:
    yield from _not_one(project)
    for node, scope, keep, where in _updates(project):
        low, high = interval(project, keep, where)
        if low != high or not 0 < low < 1:
            continue
        times = _times(project, node, scope)
        if not times:
            continue  # nothing calls it: that is another fault
        place = origin(project, _innermost(keep), where)
        if CORRECTED.search(where.module.text):
            continue
        if times * (1 - low) < LOOKS_BACK or (low >= EXTREME and math.isinf(times)):
            text = f"with a decay of {low:g} the average still holds the first weights when the run ends"
            yield sighting(__name__, place, text, proof=[(scope.module.path, node.lineno, "the update")])
        elif low < SWAPPED:
            text = f"the average keeps {low:g} of its old value at each update: the two factors are swapped"
            inner = _innermost(keep)
            if _complements(keep) % 2 or SMALL.search(getattr(inner, "attr", getattr(inner, "id", ""))):
                place = (node, scope)  # the number is what its name says, and stands in the place of its complement
            yield sighting(__name__, place, text, proof=[(scope.module.path, node.lineno, "the update")])


def _innermost(node: ast.expr) -> ast.expr:
    """The decay itself in ``1 - decay``."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub) and isinstance(node.left, ast.Constant):
        return _innermost(node.right)
    return node


def _complements(node: ast.expr) -> int:
    """How often ``1 -`` stands before the number itself."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub) and isinstance(node.left, ast.Constant):
        return 1 + _complements(node.right)
    return 0


def _times(project: Project, node: ast.AST, scope: Scope) -> float:
    """How often the average is updated: rounds of the loops around that over the parameters, calls of the function."""
    high = 1.0
    around = [
        n for n in loops(project, node, scope) if not (isinstance(n, ast.For) and (
            _zips_parameters(written(n.iter)) or isinstance(n.iter, ast.Tuple | ast.List)))
    ]  # fmt: skip
    for loop in around:
        high *= turns(project, loop, scope)[1] or math.inf
    if scope.kind != "function" and around:
        return high
    if scope.kind == "function" and around and not project.callers(scope):
        return high
    return high * _calls_of(project, scope)


def _calls_of(project: Project, scope: Scope) -> float:
    """How often the function of the update is called; its own loop over the parameters does not count."""
    if scope.kind != "function":
        return math.inf
    callers = project.callers(scope)
    if any(isinstance(a, ast.Lambda) for c in callers for a in project.ancestors(c.node, c.scope)):
        return math.inf  # handed on: whoever has the function may call it at every step
    return sum(rounds(project, c.node, c.scope)[1] for c in callers) if callers else math.inf


def _updates(project: Project) -> Iterator[tuple[ast.expr, Scope, ast.expr, Scope]]:
    """Updates of averages of parameters, each with the expression of the share that is kept."""
    for call in project.calls("lerp_", "lerp", "add_", "copy_"):
        inner = call.receiver
        args = call.node.args
        if not _over_parameters(project, call.node, call.scope):
            continue
        if call.name in ("lerp_", "lerp") and len(args) > 1:
            yield from _between(project, call)
        elif call.name == "add_" and isinstance(inner, ast.Call) and last_name(inner.func) == "mul_" and inner.args:
            yield call.node, call.scope, inner.args[0], call.scope
        elif call.name == "copy_" and args and call.receiver is not None:
            yield from _mixed(args[0], written(call.receiver), call.scope)
    for scope in project.functions:
        for node in project.within(scope, ast.Assign):
            target = node.targets[0] if isinstance(node, ast.Assign) else None
            data = isinstance(target, ast.Attribute) and target.attr == "data"
            if isinstance(node, ast.Assign) and data and _over_parameters(project, node, scope):
                yield from _mixed(node.value, written(target), scope)


def _between(project: Project, call: Call) -> Iterator[tuple[ast.expr, Scope, ast.expr, Scope]]:
    """``a.lerp(b, share)``, ``torch.lerp(a, b, share)``: keeps 1 - share of ``a``. Where ``b`` is the one that the
    result is written to, it is ``share`` that is kept."""
    args = call.node.args
    whole = call.receiver is None or written(call.receiver) == "torch"
    if whole and len(args) < 3:
        return
    share, start, end = (args[2], args[0], args[1]) if whole else (args[1], call.receiver or args[0], args[0])
    kept: ast.expr = ast.fix_missing_locations(ast.copy_location(ast.BinOp(ast.Constant(1.0), ast.Sub(), share), share))
    into = _written_to(project, call)
    if into is not None and into == written(end).removesuffix(".data") != written(start).removesuffix(".data"):
        kept = share
    yield call.node, call.scope, kept, call.scope


def _written_to(project: Project, call: Call) -> str | None:
    """What ``X.copy_(call)`` or ``X = call`` writes; None where that is not seen."""
    parent = next(iter(project.ancestors(call.node, call.scope)), None)
    if isinstance(parent, ast.Call) and isinstance(parent.func, ast.Attribute) and parent.func.attr == "copy_":
        return written(parent.func.value).removesuffix(".data")
    if isinstance(parent, ast.Assign) and len(parent.targets) == 1:
        return written(parent.targets[0]).removesuffix(".data")
    return None


def _mixed(node: ast.expr, old: str, scope: Scope) -> Iterator[tuple[ast.expr, Scope, ast.expr, Scope]]:
    """``decay * old + (1 - decay) * new``: the factor of the old value."""
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Add):
        return
    bare = old.removesuffix(".data")
    for side in (node.left, node.right):
        if isinstance(side, ast.BinOp) and isinstance(side.op, ast.Mult):
            for factor, value in ((side.left, side.right), (side.right, side.left)):
                if written(value).removesuffix(".data") == bare:
                    yield node, scope, factor, scope


def _over_parameters(project: Project, node: ast.AST, scope: Scope) -> bool:
    """True inside a loop over the parameters of networks."""
    around = [written(loop.iter) for loop in loops(project, node, scope) if isinstance(loop, ast.For)]
    return any(_zips_parameters(text) for text in around)


def _zips_parameters(text: str) -> bool:
    return "zip(" in text and bool(re.search(r"param|state_dict", text, re.IGNORECASE))


def _not_one(project: Project) -> Iterator[Evidence]:
    for call in project.calls("add_"):
        inner = call.receiver
        if not (isinstance(inner, ast.Call) and last_name(inner.func) == "mul_" and inner.args):
            continue
        decay, weight = written(inner.args[0]), written(call.argument("alpha"))
        added = call.node.args[0] if call.node.args else None
        if not weight and isinstance(added, ast.BinOp) and isinstance(added.op, ast.Mult):
            weight = next((written(s) for s in (added.left, added.right) if written(s) == decay), "")
        if decay == weight and not isinstance(inner.args[0], ast.Constant | ast.BinOp):
            yield sighting(__name__, call, f"old and new value are both weighted by {decay}")


def locate(project: Project, surface: Surface | None) -> Iterator[Evidence]:
    for call in _averages(project):
        yield guess(__name__, call, "the moving average is made here")
        return


def _averages(project: Project) -> Iterator[Call]:
    for call in project.calls("add_", "lerp_", "lerp", "AveragedModel"):
        if "decay" in written(call.node) or "ema" in written(call.node).lower():
            yield call
