"""Networks whose weights were drawn before the program seeds."""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import is_module
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.gradients import held, steps


def seeded_late(run: Rehearsing) -> Iterator[Answer]:
    """The first ``manual_seed`` stands below the weights that are trained, and nothing gives them others."""
    seeds = [e for e in run.tape if e.name in ("manual_seed", "seed_everything", "set_seed", "fix_seed")]
    seeds += [e for e in run.tape if e.name == "seed" and e.full.startswith("torch")]
    first = min(seeds, key=lambda e: e.serial, default=None)
    if first is None or first.place is None or first.turns or first.maybe:
        return
    if any(e.name == "load_state_dict" and is_module(e.subject) for e in run.tape):
        return
    drawn = [p for s in steps(run) for p in held(s) if p.owner is not None and p.owner.place is not None]
    early = [p for p in drawn if p.owner is not None and p.owner.serial < first.serial and not p.writes]
    if early and len(early) == len(drawn) and early[0].owner is not None and early[0].owner.place is not None:
        text = "the weights are drawn before this seed is set: they differ from run to run"
        helper = "seed" in first.place[1].name and bool(first.stack)
        yield Answer(first.stack[-1] if helper else first.place, text, (early[0].owner.place,))
