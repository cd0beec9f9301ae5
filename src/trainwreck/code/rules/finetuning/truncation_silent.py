"""Samples are cut at TRL's default although another length is meant, or at the length of the shortest of a batch.

What: ``SFTConfig`` without ``max_length`` while the program names a longer length (``MAX_SEQ_LENGTH = 4096``,
``model_max_length=8192``); token ids that are cut at ``min(len(t) for t in batch)``.
Why it matters: since TRL 0.16 samples are cut at 1024 tokens: the end of long answers, and the end token, are lost.
When it is fine: with ``max_length``, and where nothing is longer.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.arguments import attributes_set, imported
from trainwreck.code.facts import complete, only, option
from trainwreck.code.huggingface import release, tokenizer_loads
from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.widths import cut_to_the_shortest
from trainwreck.code.rule import sighting
from trainwreck.code.values import number
from trainwreck.core.evidence import Evidence
from trainwreck.core.fix import Fix

BAD = (
    """
from trl import SFTConfig, SFTTrainer
MAX_SEQ_LENGTH = 4096
def main(data):
    args = SFTConfig(output_dir="o", packing=False)  # expect
    SFTTrainer("m", args=args, train_dataset=data).train()
""",
    """
from transformers import AutoTokenizer
from trl import SFTConfig, SFTTrainer
tok = AutoTokenizer.from_pretrained("m", model_max_length=8192)
SFTTrainer("m", args=SFTConfig(output_dir="o"), train_dataset=data, processing_class=tok).train()  # expect
""",
)
GOOD = """
from trl import SFTConfig, SFTTrainer
MAX_SEQ_LENGTH = 4096
short_length = 512
one = SFTConfig(output_dir="o", max_length=MAX_SEQ_LENGTH)
two = SFTConfig(output_dir="o", max_length=None)
three = SFTConfig(output_dir="o", **options)
"""
LENGTH = pattern(r"(?i)^(max_?seq(uence)?_?(len|length)|max_?(len|length)|context_?length|seq_?len(gth)?|block_?size)$")
DEFAULT = 1024
"""``SFTConfig.max_length`` since TRL 0.16."""


def find(project: Project) -> Iterator[Evidence]:
    yield from further(__name__, project, _defaults(project), cut_to_the_shortest)


def _defaults(project: Project) -> Iterator[Evidence]:
    if {"max_length", "max_seq_length"} & attributes_set(project):
        return
    for call in project.calls("SFTConfig"):
        given = any(option(project, call, n) is not None for n in ("max_length", "max_seq_length"))
        if given or not imported(project, call, "transformers") or not complete(project, call):
            continue
        since = release(project, "trl", call.scope.module.path, (0, 16))
        meant = _meant(project, call.scope.module.path) if since != "no" else None
        if meant is not None:
            text = f"samples are cut at {DEFAULT} tokens, and {meant[0]} says {meant[1]:g}"
            yield sighting(__name__, call, text, proof=[meant[2]], fix=Fix(f"max_length={meant[1]:g}"))


def _meant(project: Project, path: str) -> tuple[str, float, tuple[str, int, str]] | None:
    """A longer length that the module names: what it is called, its value, where it stands."""
    top = project.walked[path].top
    for name, bindings in top.bindings.items():
        if LENGTH.match(name) and len(bindings) == 1 and bindings[0].kind == "assign":
            value = number(project, bindings[0].value, top)
            if value is not None and value > DEFAULT:
                return name, value, (path, bindings[0].line, name)
    for load in tokenizer_loads(project):
        length = only(project, option(project, load, "model_max_length"))
        if load.scope.module.path == path and isinstance(length, int) and DEFAULT < length < 10**7:
            return "model_max_length", length, (path, load.line, "model_max_length")
    return None
