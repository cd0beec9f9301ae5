"""Is the best result kept, or the worst? By what the value was computed from, not by its name."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator

from trainwreck.code.calls import last_name
from trainwreck.code.pattern import pattern
from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Obj, Place, Value, candidates
from trainwreck.code.rehearsal.graph import ancestors, near, parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.minimised import MINIMISED, mark_objectives
from trainwreck.code.rehearsal.questions.monotone import agrees, followed, judged, misses, quantile_error, steady
from trainwreck.code.rehearsal.questions.places import named, written_number
from trainwreck.code.scopes import Scope

THROUGH = frozenset(
    """mean sum item float add either stack cat detach cpu tolist round sqrt getitem part append list numpy array
    attribute tensor scale exp log log1p nanmean median squeeze any all""".split()
)
"""Operations that leave the direction of a result as it is."""
GREATER = {"gt": True, "ge": True, "lt": False, "le": False, "greater": True, "less": False,
           "greater_equal": True, "less_equal": False}  # fmt: skip
MAX_NODES = 400
HIGH = pattern(
    r"(^|_)(acc|accuracy|f1|auc|auroc|iou|miou|dice|bleu|recalls?|precisions?|r2|psnr|ssim|ndcg|mrr|kappa|matthews|jaccard"
    r"|concordance|c_?index|spearman|kendall|auprc)(_|\d|$)",
    re.IGNORECASE,
)
"""Names of results of which more is better."""
LOW = pattern(
    r"(^|_)(loss|losses|error|mse|rmse|mae|nll|ppl|perplexity|wer|cer|fid|regret|brier|hamming)(_|\d|$)", re.IGNORECASE
)

WORST = pattern(r"worst|hardest|weakest", re.IGNORECASE)
"""Names of what is kept for being the worst."""
LEAST, MOST = pattern(r"lowest|least|smallest", re.IGNORECASE), pattern(r"highest|peak|largest", re.IGNORECASE)
"""Names of an end: the lowest loss is the best one, the lowest accuracy is kept for being the worst."""


def direction(value: Value) -> bool | None:
    """True if more is better (a share of hits), False if less is (a loss, an error); None where that is open.

    By what it was computed from; where that says nothing, by the name of the function that computed it."""
    if not isinstance(value, Node):
        return _direction(value)
    if "?direction" not in value.attributes:
        value.attributes["?direction"] = _direction(value)
    known = value.attributes["?direction"]
    return known if isinstance(known, bool) else None


def _direction(value: Value) -> bool | None:
    queue: list[tuple[Node, bool]] = [(node, True) for node in parts(value)]
    found, seen, unclear = set[bool](), set[tuple[int, bool]](), False
    learned = judged(value)
    while queue:
        node, straight = queue.pop()
        if (id(node), straight) in seen:
            continue
        seen.add((id(node), straight))
        if len(seen) > MAX_NODES:
            return None
        if learned and steady(node):
            continue  # beside what a network told it is a number
        told = _told(node)
        turned = _turned(node)
        if told is not None:
            found.add(told is straight)
        elif node.op in ("len", "counter", "size", "numel"):
            continue
        elif turned is not None:
            queue += [(p, straight is not turned) for i in node.inputs for p in parts(i)]
        elif (ways := followed(node)) is not None:
            queue += [(n, straight is not falls) for n, falls in ways]
        elif node.op in ("div", "true_divide", "truediv"):
            # what divides is a count here; a result in the divisor turns it round
            queue += [(p, straight) for p in parts(node.inputs[0])] if node.inputs else []
            unclear = unclear or not all(_count(i) for i in node.inputs[1:])
        else:
            unclear = True
    if unclear or not found:
        named = {d for d in (_by_name(n) for node in parts(value) for n in _line(node)) if d is not None}
        return named.pop() if len(named) == 1 and not found - named else None
    return found.pop() if len(found) == 1 else None


def _told(node: Node) -> bool | None:
    """What the operation itself says: equal to the label is a hit, a loss or a difference that is squared an error."""
    if MINIMISED in node.attributes:
        return False
    if node.op == "eq" or misses(node):
        return node.op == "eq"
    if agrees(node):
        return True
    if quantile_error(node):
        return False
    if node.op in ("and", "logical_and", "bitwise_and") and (both := _both_hold(node)) is not None:
        return both
    if (node.op.endswith(("_loss", "entropy", "_logits")) and node.op != "entropy") or (
        node.op in ("pow", "square", "abs")
        and node.inputs
        and isinstance(node.inputs[0], Node)
        and node.inputs[0].op == "sub"
    ):
        return False
    if "sklearn" in node.full or "torchmetrics" in node.full or "torcheval" in node.full:
        return _word(node.op)
    return None


def _both_hold(node: Node) -> bool | None:
    """True for ``(logit > 0) & (label > 0.5)``, counted hits; False where the two sides are asked for the opposite."""
    sides = [i for i in node.inputs[:2] if isinstance(i, Node) and i.op in ABOVE | BELOW]
    if len(sides) != 2:
        return None
    learned = [any(n.op == "param" for n in near(s, MAX_NODES)) for s in sides]
    return (sides[0].op in ABOVE) is (sides[1].op in ABOVE) if learned[0] is not learned[1] else None


ABOVE, BELOW = frozenset(["gt", "ge"]), frozenset(["lt", "le"])


def _turned(node: Node) -> bool | None:
    """Whether an operation on one result turns its direction round; None for others."""
    if node.op in THROUGH:
        return False
    if node.op == "neg":
        return True
    numbers = [i for i in node.inputs if isinstance(i, int | float)]
    if node.op == "sub" and len(node.inputs) == 2 and numbers:
        return isinstance(node.inputs[0], int | float)
    if node.op == "pow" and len(node.inputs) > 1 and node.inputs[1] == 0.5:
        return False
    if node.op == "mul":
        return sum(n < 0 for n in numbers) % 2 == 1
    return None


def _count(value: Value) -> bool:
    """True for what a mean divides by: a number or a size."""
    return not isinstance(value, Node) or not any(_told(n) is not None for n in parts(value))


def _line(node: Node) -> Iterator[Node]:
    """The value, and what it was only averaged or taken out of."""
    for _ in range(6):
        yield node
        first = next((i for i in node.inputs if isinstance(i, Node)), None)  # a total begins at 0
        scaled = node.op == "div" and all(_count(i) and _positive(i) for i in node.inputs[1:])
        if not (node.op in THROUGH or scaled) or not isinstance(first, Node):
            return
        node = first


def _positive(value: Value) -> bool:
    """A number above zero, or how many there are."""
    counted = isinstance(value, Node) and value.op in ("len", "size", "numel", "counter")
    return counted or (isinstance(value, int | float) and value > 0)


def _by_name(node: Node) -> bool | None:
    """What the function of the program says by its name that computed the value."""
    if node.place is None or node.place[1].kind != "function":
        return None
    told = _word(getattr(node.place[1].node, "name", ""))
    left = node.place[0].left if isinstance(node.place[0], ast.BinOp) else None
    if told is None and isinstance(left, ast.Name | ast.Attribute):
        told = _word(last_name(left))  # ``ndcg / n``
    return told


def _word(name: str) -> bool | None:
    high, low = bool(HIGH.search(name)), bool(LOW.search(name))
    return high if high is not low else None


def worst_kept(run: Rehearsing) -> Iterator[Answer]:
    mark_objectives(run)
    told: set[int] = set()
    for node in run.nodes:
        if node.op not in GREATER or node.place is None or len(node.inputs) != 2 or id(node.place[0]) in told:
            continue
        compare, scope = node.place
        holder = next((a for a in run.project.ancestors(compare, scope) if isinstance(a, ast.If)), None)
        if holder is None or not isinstance(compare, ast.Compare) or not _within(compare, holder.test):
            yield from _kept_apart(run, node, told)
            continue
        texts = [ast.unparse(compare.left), ast.unparse(compare.comparators[0])]
        sides = _kept_sides(texts, holder.body) or _set_within(run, texts, holder.body)
        otherwise = not sides and compare is holder.test
        if otherwise:  # no better than the best: patience runs out; else it is kept
            sides = _kept_sides(texts, holder.orelse)
        if len(sides) != 1 or any(isinstance(n, ast.Not) for n in ast.walk(holder.test)):
            continue
        if WORST.search(texts[sides[0]]):
            continue
        best, metric = sides[0], node.inputs[1 - sides[0]]
        better = direction(metric)
        if better is None or _climbed(metric) or (LEAST if better else MOST).search(texts[sides[0]]):
            continue
        larger = (GREATER[node.op] if best == 1 else not GREATER[node.op]) is not otherwise
        told.add(id(compare))
        if larger is not better:
            place = _asked(run, holder) or (holder, scope)
            yield Answer(place, f"this keeps the worst value: {texts[1 - best]} is {_kind(better)}", ((holder, scope),))
            continue
        start = node.inputs[best]
        bad = isinstance(start, int | float) and (
            (not better and (start <= 0 or start == -math.inf)) or (better and start >= 1)
        )  # fmt: skip
        if bad:
            place = _set_at(run, texts[best], start) or (holder, scope)
            yield Answer(
                place, f"{texts[best]} starts at {start:g}, which no later value is better than", ((holder, scope),)
            )


def _climbed(metric: Value) -> bool:
    """True where inputs that were moved along a gradient lead to the value: an attack looks for the worst of them."""
    grads = (n for n in ancestors(metric) if n.op == "grad")
    return any(isinstance(i, Node) and (i.op != "param" or i.owner is None) for n in grads for i in n.inputs[-1:])


def _kept_sides(texts: list[str], body: list[ast.stmt]) -> list[int]:
    """Which of the compared ``texts`` the statements set anew: itself, or the record that it is an entry of."""
    assigned = (n for s in body for n in ast.walk(s) if isinstance(n, ast.Assign | ast.AnnAssign))
    kept = {name for n in assigned for name, _ in named(n)} | {r for s in body for r in _updated(s)}
    return [n for n, text in enumerate(texts) if text in kept] or [
        n for n, text in enumerate(texts) if kept & set(_records(text))
    ]


def _updated(statement: ast.stmt) -> Iterator[str]:
    """The entries that ``best.update(acc=acc)`` and ``setattr(best, "acc", acc)`` write."""
    for call in (n for n in ast.walk(statement) if isinstance(n, ast.Call)):
        if isinstance(call.func, ast.Attribute) and call.func.attr == "update":
            given = call.args[0] if call.args else None
            keys = [k.value for k in given.keys if isinstance(k, ast.Constant)] if isinstance(given, ast.Dict) else []
            holder = ast.unparse(call.func.value)
            yield from (f"{holder}[{key!r}]" for key in (*keys, *(k.arg for k in call.keywords)))
        elif last_name(call.func) == "setattr" and len(call.args) > 2 and isinstance(call.args[1], ast.Constant):
            yield f"{ast.unparse(call.args[0])}.{call.args[1].value!s}"


def _set_within(run: Rehearsing, texts: list[str], body: list[ast.stmt]) -> list[int]:
    """Which of the two is an attribute that a method sets which the statements call."""
    inside = {id(n) for s in body for n in ast.walk(s) if isinstance(n, ast.Call)}
    names = {e.args[0] for e in run.tape if e.name == "set" and any(id(p[0]) in inside for p in e.stack)}
    return [n for n, text in enumerate(texts) if "." in text and text.rpartition(".")[2] in names]


def _records(text: str) -> list[str]:
    """What an entry stands in: ``best`` for ``best['acc']``, ``best.acc`` and ``best[0]``; no ``self``."""
    found: list[str] = []
    node = ast.parse(text, mode="eval").body
    while isinstance(node, ast.Subscript | ast.Attribute):
        node = node.value
        found.append(ast.unparse(node))
    return [name for name in found if name != "self"]


def extreme_kept(run: Rehearsing) -> Iterator[Answer]:
    """``if value == min(seen): save``: the state of the least accuracy or of the largest loss is kept."""
    mark_objectives(run)
    told: set[int] = set()
    for event in run.tape:
        if event.name not in ("save", "state_dict"):
            continue
        for test in event.tests:
            if not isinstance(test, Node) or test.op != "eq" or test.place is None or id(test.place[0]) in told:
                continue
            for side in (0, 1):
                chosen, value = test.inputs[side], test.inputs[1 - side]
                if not isinstance(chosen, Node) or chosen.full not in ("builtins.min", "builtins.max"):
                    continue
                better = direction(value)
                if not any(c is value for c in chosen.inputs) or better is None or (chosen.op == "max") is better:
                    continue
                told.add(id(test.place[0]))
                text = f"this keeps the worst value: what {chosen.op} goes through is {_kind(better)}"
                yield Answer(chosen.place or test.place, text, (event.place,) if event.place is not None else ())


def _kind(better: bool) -> str:
    return "a share of hits" if better else "a loss or an error"


def _within(inner: ast.AST, outer: ast.AST) -> bool:
    return any(n is inner for n in ast.walk(outer))


def _kept_apart(run: Rehearsing, node: Node, told: set[int]) -> Iterator[Answer]:
    """A comparison in a function of its own (a lambda, a table of comparisons, ``is_better``), asked by an ``if``.

    The best value is the side that a later turn compares with and that may be what this comparison was given."""
    assert node.place is not None
    asked = _asking(run, node)
    if asked is None:
        return
    holder, scope = asked
    best = next((side for side in (0, 1) if _older(node.inputs[side], node.inputs[1 - side])), None)
    if best is None:
        return
    better = direction(node.inputs[1 - best])
    larger = GREATER[node.op] if best == 1 else not GREATER[node.op]
    told.add(id(node.place[0]))
    if better is None or larger is better:
        return
    maker = _asked(run, holder)
    text = f"this keeps the worst value: what is compared is {_kind(better)}, and the smaller one counts as better"
    if not better:
        text = text.replace("the smaller", "the larger")
    yield Answer(maker or (holder, scope), text, (node.place, (holder, scope)))


def _older(kept: Value, value: Value) -> bool:
    """True if ``kept`` may be what the same place of the program gave as ``value`` in an earlier turn."""
    if not isinstance(value, Node) or value.place is None:
        return False
    return any(
        isinstance(c, Node) and c.place is not None and c.place[0] is value.place[0] and c.serial < value.serial
        for c in candidates(kept)
    )


def _asking(run: Rehearsing, node: Node) -> tuple[ast.If, Scope] | None:
    """The ``if`` whose test asks the function of the comparison, without a ``not``, and keeps something."""
    assert node.place is not None
    for place in (node.place, *reversed(node.stack)):
        above = next((a for a in run.project.ancestors(*place) if isinstance(a, ast.If)), None)
        if above is None or not _within(place[0], above.test):
            continue
        if any(isinstance(n, ast.Not) for n in ast.walk(above.test)):
            return None
        asked = {n.id for n in ast.walk(above.test) if isinstance(n, ast.Name)} - {"self"}
        stored = [n.value for s in above.body for n in ast.walk(s) if isinstance(n, ast.Assign)]
        if asked & {n.id for value in stored for n in ast.walk(value) if isinstance(n, ast.Name)}:
            return (above, place[1])
    return None


MODES = frozenset(["min", "max", "minimize", "maximize", "lower", "higher"])


def _asked(run: Rehearsing, holder: ast.If) -> Place | None:
    """Where the direction was asked for: the making of the object that keeps the best value, by its mode."""
    for event in run.tape:
        if event.name != "set" or event.place is None or not isinstance(event.subject, Obj):
            continue
        if not any(_within(event.place[0], s) for s in holder.body):
            continue
        made = event.subject
        given = [*made.args, *made.options.values()]
        if made.place is not None and any((isinstance(g, str) and g in MODES) or isinstance(g, bool) for g in given):
            return made.place
    return None


def _set_at(run: Rehearsing, text: str, start: float) -> Place | None:
    for walked in run.project.walked.values():
        for scope in walked.scopes:
            for node in scope.nodes:
                for name, value in named(node):
                    if name == text and (written_number(value) == start or "inf" in ast.unparse(value)):
                        return (value, scope)
    return None
