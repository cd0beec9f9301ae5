"""Networks whose weights were drawn before the program seeds."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import is_module
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.gradients import going_on, held, steps

SEEDS = frozenset(
    """torch.manual_seed torch.random.manual_seed torch.seed transformers.set_seed accelerate.utils.set_seed
    lightning.seed_everything pytorch_lightning.seed_everything""".split()
)


def seeded_late(run: Rehearsing) -> Iterator[Answer]:
    """The first ``manual_seed`` stands below the weights that are trained, and nothing gives them others."""
    seeds = [e for e in run.tape if e.subject is None and e.full in SEEDS]  # a generator of its own seeds itself only
    first = min(seeds, key=lambda e: e.serial, default=None)
    if first is None or first.place is None or first.turns or first.maybe or not _of_the_run(first.place[0]):
        return
    later = going_on(run)
    if any(e.name == "load_state_dict" and is_module(e.subject) and e.serial not in later for e in run.tape):
        return
    drawn = [p for s in steps(run) for p in held(s) if p.owner is not None and p.owner.place is not None]
    early = [p for p in drawn if p.owner is not None and p.owner.serial < first.serial and not p.writes]
    if early and len(early) == len(drawn) and early[0].owner is not None and early[0].owner.place is not None:
        text = "the weights are drawn before this seed is set: they differ from run to run"
        named = first.place[1].name
        helper = "seed" in named and "seeded" not in named and bool(first.stack)
        ways = {id(scope) for _, scope in (early[0].owner.place, *early[0].owner.stack)}
        if first.stack and not helper and id(first.place[1]) not in ways:
            return  # a function that draws the data, with a seed of its own
        yield Answer(first.stack[-1] if helper else first.place, text, (early[0].owner.place,))


def _of_the_run(call: ast.AST) -> bool:
    """True for a seed that is a number or named so; that of a rank parts the draws after a common start."""
    given = call.args[0] if isinstance(call, ast.Call) and call.args else None
    return isinstance(given, ast.Constant) or (given is not None and "seed" in ast.unparse(given).lower())
