"""What a term of an objective is: divergence, entropy, policy gradient, error on labels; and how it is averaged."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.calls import Call, last_name, written
from trainwreck.code.facts import made
from trainwreck.code.objective import Term
from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.seek import is_loss, loss_kind
from trainwreck.code.values import values

KL = pattern(r"(^|_)(kl|kld|kl_?div\w*|kl_?loss|kl_?term|dkl|rate)(_|\d|$)", re.IGNORECASE)
ENTROPY = pattern(r"^(ent|entropy|entropies|entropy_loss|ent_loss|ent_bonus|entropy_bonus|\w+_entropy)$", re.IGNORECASE)
LIKELIHOOD = pattern(
    r"^(new_|cur_|curr_|sel_|chosen_|act(ion)?_|taken_)?"
    r"(log_?p|log_?probs?|logps?|lp|logprobs?|ratios?|rho|log_pi|logpi|logpa|log_prob_\w+|ratio_\w+)$",
    re.IGNORECASE,
)
GAIN = pattern(
    r"^(\w+_)?(advs?|advantages?|advantage_\w+|returns?|rets?|rtg|rewards?|reward_to_go|gae|td_?errors?|deltas?|G|R|A)$"
)
ERRORS = frozenset(
    [
        "crossentropy",
        "mse",
        "l1",
        "smoothl1",
        "huber",
        "nll",
        "binarycrossentropy",
        "binarycrossentropywithlogits",
        "bcewithlogits",
        "bce",
        "gaussiannll",
        "poissonnll",
        "ctc",
    ]
)
"""Losses that are an error on labels or on a reconstruction."""


def calls_in(term: Term) -> Iterator[Call]:
    for node in ast.walk(term.node):
        if isinstance(node, ast.Call):
            yield Call(node, term.scope)


def formula(term: Term) -> ast.expr:
    """The expression below the reductions (``.sum(1).mean()``, ``torch.mean(...)``, division by a size)."""
    node: ast.expr = term.node
    while True:
        match node:
            case ast.Call(func=ast.Attribute(value=inner, attr="sum" | "mean")) if not _module(inner):
                node = inner
            case ast.Call(func=ast.Attribute(attr="sum" | "mean"), args=[inner, *_]):
                node = inner
            case ast.BinOp(op=ast.Div(), left=inner):
                node = inner
            case ast.BinOp(op=ast.Mult(), left=ast.Constant() | ast.UnaryOp(operand=ast.Constant()), right=inner):
                node = inner
            case ast.BinOp(op=ast.Mult(), right=ast.Constant(), left=inner):
                node = inner
            case ast.UnaryOp(operand=inner):
                node = inner
            case _:
                return node


def _module(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id in ("torch", "np", "jnp", "F")


def gaussian_kl(term: Term) -> bool:
    """True for the closed form ``1 + logvar - mu ** 2 - exp(logvar)`` and for ``kl_divergence(...)``."""
    squared = exponential = False
    for node in ast.walk(term.node):
        if isinstance(node, ast.Call):
            name = last_name(node.func)
            if name in ("kl_divergence", "kl_normal", "gaussian_kl", "kl_gaussian"):
                return True
            exponential |= name in ("exp", "expm1")
            squared |= name in ("pow", "square")
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
            squared = True
    return squared and exponential and isinstance(formula(term), ast.BinOp)


def is_kl(term: Term) -> bool:
    return gaussian_kl(term) or any(KL.search(n.rsplit(".", 1)[-1]) for n in term.names)


def is_entropy(term: Term) -> bool:
    """True for ``dist.entropy()`` and for what is called an entropy."""
    if any(call.name == "entropy" for call in calls_in(term)):
        return not any("cross" in n.lower() for n in term.names)
    return any(ENTROPY.match(n.rsplit(".", 1)[-1]) and "cross" not in n.lower() for n in term.names)


def error_kinds(project: Project, term: Term) -> set[str]:
    """The kinds of error that the term is, empty where it is none: the call itself, or its mean or sum."""
    node: ast.expr = term.node
    while True:
        match node:
            case ast.Call(func=ast.Attribute(value=inner, attr="sum" | "mean")) if not _module(inner):
                node = inner
            case ast.Call(func=ast.Attribute(value=ast.BinOp(op=ast.Sub()), attr="pow" | "square")):
                return {"mse"}
            case ast.Call():
                call = Call(node, term.scope)
                return loss_kind(project, call) & ERRORS if is_loss(project, call) else set()
            case ast.BinOp(op=ast.Pow(), left=ast.BinOp(op=ast.Sub())):
                return {"mse"}
            case _:
                return set()


def reductions(project: Project, term: Term) -> set[str]:
    """How elements become one number: ``mean`` or ``sum`` over all, ``sum-features`` (a sum over some axes, then a
    mean); empty where it can't be said."""
    found: set[str] = set()
    node: ast.expr = term.node
    outer = ""
    while True:
        match node:
            case ast.Call(
                func=ast.Attribute(value=inner, attr="sum" | "mean" as name), args=args, keywords=keywords
            ) if not _module(inner):
                if outer == "mean" and name == "sum":
                    return {"sum-features"}
                if args or keywords:
                    return {"sum-features"} if name == "sum" else {"mean"}
                outer, node = name, inner
            case ast.Call(func=ast.Attribute(value=inner, attr="sum" | "mean" as name), args=[first, *rest]) if _module(
                inner
            ):
                if outer == "mean" and name == "sum":
                    return {"sum-features"}
                if rest or (outer == "" and len(node.keywords) > 0):
                    return {"sum-features"} if name == "sum" else {"mean"}
                outer, node = name, first
            case ast.BinOp(op=ast.Div(), left=inner):
                node = inner
                outer = outer or "mean"
            case ast.BinOp(op=ast.Mult(), left=ast.Constant() | ast.UnaryOp(), right=inner):
                node = inner
            case ast.UnaryOp(operand=inner):
                node = inner
            case ast.Call():
                call = Call(node, term.scope)
                how = _reduction(project, call)
                if how == "none":
                    return {outer} if outer else set()
                return {how} if how and is_loss(project, call) else {outer} if outer else set()
            case _:
                break
    if outer:
        found.add(outer)
    return found


def _reduction(project: Project, call: Call) -> str:
    for maker in (call, *made(project, call.node.func, call.scope)):
        value = maker.argument("reduction")
        if value is not None:
            known = values(project, value, maker.scope)
            return str(known[0].value) if len(known) == 1 else ""
    return "mean"


def _reduced(call: ast.Call) -> ast.expr | None:
    """What is reduced by ``x.mean()``, ``torch.mean(x)`` or ``torch.mean(input=x)``; None where it names nothing."""
    if isinstance(call.func, ast.Attribute) and not _module(call.func.value):
        return call.func.value
    return next(iter(call.args), None) or next((k.value for k in call.keywords if k.arg in ("input", "x", "A")), None)


def detached_pair(term: Term) -> tuple[str, str] | None:
    """(what is detached, what is live) of an error or squared difference with exactly one detached side."""
    node: ast.expr = term.node
    while isinstance(node, ast.Call) and last_name(node.func) in ("mean", "sum", "pow", "square", "norm"):
        reduced = _reduced(node)
        if reduced is None:
            return None
        node = reduced
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
            node = node.left
    sides: list[ast.expr] = []
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
        node = node.left
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
        sides = [node.left, node.right]
    elif isinstance(node, ast.Call) and len(node.args) >= 2 and "loss" in last_name(node.func):
        sides = node.args[:2]
    cut = [s for s in sides if isinstance(s, ast.Call) and last_name(s.func) == "detach"]
    if len(sides) != 2 or len(cut) != 1:
        return None
    live = next(s for s in sides if s is not cut[0])
    inner = cut[0].func.value if isinstance(cut[0].func, ast.Attribute) else cut[0]
    return written(inner), written(live)
