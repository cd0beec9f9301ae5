"""A pattern for lines of a shape that comes again and again: one match instead of cutting the line up."""

from __future__ import annotations

import re
from dataclasses import replace

from trainwreck.runs.console.learn import Plan

PROMOTE_AT = 40
"""Lines of one shape before it gets a pattern of its own; compiling costs as much as a few hundred lines."""
MAX_PATTERNS = 12
"""More would cost more to try than to cut the line up."""
_NUMBER = r"[-+]?(?:[0-9][0-9,]*(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?"
_ANY = rf"(?:{_NUMBER}|[-+]?(?:[nN][aA][nN]|[iI]nf(?:inity)?|INF))"


class Fast:
    """``match`` a whole line; its groups are the numbers of ``plan`` (None: the line says nothing)."""

    __slots__ = ("match", "plan", "rank")

    def __init__(self, frags: list[str], plan: Plan | None, rank: int | None) -> None:
        wanted: dict[int, int] = {}
        if plan is not None:
            ats = [p.at for p in plan.points] + [at for _, at in plan.ratios]
            ats += [i for i in (plan.step, plan.step_total, plan.epoch, plan.epoch_total, plan.rank) if i is not None]
            wanted = {at: place for place, at in enumerate(sorted(set(ats)))}
        parts = [_literal(frags[0])]
        for index, frag in enumerate(frags[1:]):
            parts.append(f"({_ANY})" if index in wanted else _ANY)
            parts.append(_literal(frag))
        self.match = re.compile("".join(parts)).fullmatch
        self.rank = rank
        self.plan = plan
        if plan is not None:

            def moved(at: int | None) -> int | None:
                return None if at is None else wanted[at]

            self.plan = replace(
                plan,
                points=tuple(p._replace(at=wanted[p.at]) for p in plan.points),
                ratios=tuple((name, wanted[at]) for name, at in plan.ratios),
                rank=moved(plan.rank),
                step=moved(plan.step),
                step_total=moved(plan.step_total),
                epoch=moved(plan.epoch),
                epoch_total=moved(plan.epoch_total),
            )


def _literal(text: str) -> str:
    """``text`` as a pattern; runs of blanks and pictures of progress bars may be of any length."""
    pieces = (
        " +" if piece.isspace() and "\t" not in piece else re.escape(piece)
        for piece in re.split(r"( +)", text)
        if piece
    )
    return "".join(pieces).replace(r"%\|\|", r"%\|[^|]*\|")
