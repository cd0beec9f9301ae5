"""Samplers of the program's own whose order hangs on the epoch: does anybody tell them which one it is?"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Class, Function, Obj
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.gradients import backwards
from trainwreck.code.rehearsal.questions.ranks import learning_loaders

TELLS = "set_epoch"
"""The method by which torch's own samplers are told the epoch, and that libraries look for."""


def never_told(run: Rehearsing) -> Iterator[Answer]:
    """``set_epoch`` is written, what it sets is read for the order, and nothing in the program calls it."""
    inside = [b for b in backwards(run) if len(b.turns) > 1 and any(t.generic for t in b.turns)]
    for loader in learning_loaders(run) if inside and not _called(run) else ():
        for name, place in (("sampler", 3), ("batch_sampler", 4)):
            sampler = loader.get(name, place)
            told = sampler.cls if isinstance(sampler, Obj) else None
            if told is None or not _read_for_order(told):
                continue
            loop = inside[-1].turns[-2]
            body = getattr(loop.node, "body", None)
            if isinstance(body, list) and body and loop.over is not loader:
                text = f"{told.name}.{TELLS} is never called: each epoch has the order of the first"
                yield Answer((body[0], loop.scope), text, (sampler.place,) if sampler.place is not None else ())
                return


def _called(run: Rehearsing) -> bool:
    """True where the name is read anywhere."""
    for walked in run.project.walked.values():
        for node in ast.walk(walked.top.module.tree):
            if isinstance(node, ast.Attribute) and node.attr == TELLS and isinstance(node.ctx, ast.Load):
                return True
            if isinstance(node, ast.Constant) and node.value == TELLS:
                return True
    return False


def _read_for_order(cls: Class) -> bool:
    """True where another method reads what ``set_epoch`` sets, and no other sets it."""
    teller = cls.find(TELLS)
    if not isinstance(teller, Function) or not isinstance(cls.find("__iter__"), Function):
        return False
    told = {n.attr for n in ast.walk(teller.node) if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store)}
    methods = [(k, m) for c in cls.mro() for k, m in c.names.items() if isinstance(m, Function)]
    others = [m for k, m in methods if k not in (TELLS, "__init__")]
    nodes = [n for m in others for n in ast.walk(m.node) if isinstance(n, ast.Attribute) and n.attr in told]
    return any(isinstance(n.ctx, ast.Load) for n in nodes) and not any(isinstance(n.ctx, ast.Store) for n in nodes)


__all__ = ["never_told"]
