"""The state of a compiled model is saved with ``_orig_mod.`` before every key.

What: ``torch.compile(model)`` wraps the model; ``state_dict()`` of the wrapper has other keys than the plain model.
Why it matters: loading into a plain model finds no key (or with ``strict=False`` loads nothing).
When it is fine: where both sides are compiled, or the state is taken from the inner model.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.calls import Call
from trainwreck.code.facts import source
from trainwreck.code.order import constructors
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import answers
from trainwreck.code.rehearsal.questions.stored import taken_from
from trainwreck.code.rule import guess
from trainwreck.code.surface import Surface
from trainwreck.core.evidence import Evidence

SURFACES = (r"_orig_mod\.",)
ERROR = 'RuntimeError: Missing key(s) in state_dict: "w". Unexpected key(s) in state_dict: "_orig_mod.w"'
WRAPS = ("compile",)
BAD = """
import torch
def main(net, other, path):
    model = torch.compile(net)
    torch.save(model.state_dict(), path)  # expect
    other.load_state_dict(torch.load(path))  # fails
"""
GOOD = """
import torch
def main(net, other, path):
    model = torch.compile(net)
    torch.save(net.state_dict(), path)
    model.load_state_dict(torch.load(path))
"""


def find(project: Project) -> Iterator[Evidence]:
    if "_orig_mod" in source(project):
        return  # the program knows of the prefix
    calls = [c for c in (*project.calls("state_dict"), *project.calls("load_state_dict")) if c.receiver is not None]
    inside = {id(c.node) for c in calls if wrapped(project, c, WRAPS)}
    if inside:
        yield from answers(__name__, project, lambda run: taken_from(run, inside))


def trace(project: Project, surface: Surface) -> Iterator[Evidence]:
    yield from saved_wrapped(project, surface, __name__, WRAPS, "_orig_mod.")


def saved_wrapped(
    project: Project, surface: Surface, rule: str, wraps: tuple[str, ...], prefix: str
) -> Iterator[Evidence]:
    """Where the state of the wrapped model is taken; else where it is loaded; else where it is wrapped."""
    for call in project.calls("state_dict"):
        if call.receiver is not None and wrapped(project, call, wraps):
            yield guess(
                rule, call, f"the state of the wrapped model is taken here, with the keys of the wrapper ({prefix})"
            )
    for call in surface.calls(project):
        if call.name == "load_state_dict":
            yield guess(rule, call, f"keys with and without {prefix} meet here")
    for call in project.calls(*wraps):
        yield guess(rule, call, "the model is wrapped here")


def wrapped(project: Project, call: Call, wraps: tuple[str, ...]) -> bool:
    assert call.receiver is not None
    return any(made.name in wraps for made in constructors(project, call.receiver, call.scope))
