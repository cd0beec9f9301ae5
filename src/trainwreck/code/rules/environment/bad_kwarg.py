"""A call hands over a keyword that the function does not take.

What: a misspelt or outdated keyword in a call of the program's own function or class.
Why it matters: a TypeError at the call.
When it is fine: where the function takes ``**kwargs``.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.outdated import unnamed
from trainwreck.code.project import Project
from trainwreck.code.rule import guess
from trainwreck.code.rules.environment.removed_api import named_keyword
from trainwreck.code.seek import keyword_place
from trainwreck.code.surface import Surface
from trainwreck.core.evidence import Evidence

SURFACES = (r"unexpected keyword argument",)
ERROR = "TypeError: build() got an unexpected keyword argument 'widht'"
BAD = """
def build(width):
    return width
def main():
    return build(
        widht=3,  # expect
    )  # fails
"""
GOOD = """
def build(width):
    return width
def main():
    return build(width=3)  # fails
from lightning.fabric.strategies import ModelParallelStrategy
def sharded(split):
    return ModelParallelStrategy(parallelize_fn=split, data_parallel_size=2)
"""


def find(project: Project) -> Iterator[Evidence]:
    """Keywords that no release of the library takes. ``DatasetDict`` is a dict: its keywords are its keys."""
    for item in unnamed(project, __name__, known=False, kinds=("argument",)):
        if "DatasetDict" not in item.text:
            yield item


def trace(project: Project, surface: Surface) -> Iterator[Evidence]:
    yield from named_keyword(project, surface, __name__, libraries=False)


def locate(project: Project, surface: Surface | None) -> Iterator[Evidence]:
    for call in surface.calls(project) if surface is not None else ():
        for item in call.node.keywords:
            if item.arg and f"'{item.arg}'" in (surface.message if surface is not None else ""):
                place = keyword_place(call, item.arg)
                if place is not None:
                    yield guess(__name__, place, "the keyword is given here")
                    return
