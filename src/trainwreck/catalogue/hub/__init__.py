"""What is known of checkpoints by their id on the hub: family, lengths, heads, template, layers.

``models.tsv`` is a small table; an id that is not in it is unknown, and an empty cell too. It says nothing about the
files of a checkpoint, only what its publisher's configuration says.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from trainwreck.core.row import Row

ALIASES: Mapping[str, str] = {
    "bert-base-uncased": "google-bert/bert-base-uncased",
    "bert-base-cased": "google-bert/bert-base-cased",
    "bert-large-uncased": "google-bert/bert-large-uncased",
    "roberta-base": "FacebookAI/roberta-base",
    "roberta-large": "FacebookAI/roberta-large",
    "xlm-roberta-base": "FacebookAI/xlm-roberta-base",
    "distilbert-base-uncased": "distilbert/distilbert-base-uncased",
    "distilgpt2": "distilbert/distilgpt2",
    "gpt2": "openai-community/gpt2",
    "gpt2-medium": "openai-community/gpt2-medium",
    "gpt2-large": "openai-community/gpt2-large",
    "gpt2-xl": "openai-community/gpt2-xl",
    "t5-small": "google-t5/t5-small",
    "t5-base": "google-t5/t5-base",
    "t5-large": "google-t5/t5-large",
}
"""Names without an owner that the hub redirects."""


class Checkpoint(Row):
    """One row. Numbers are None where they are not known; ``kind`` is base, instruct or tuned."""

    id: str
    family: str
    architecture: str
    kind: str
    task: str
    positions: int | None
    vocabulary: int | None
    heads: int | None
    kv_heads: int | None
    chat_template: bool | None
    pad_token: bool | None
    dtype: str
    linear_layers: frozenset[str]

    @property
    def decoder(self) -> bool:
        """True for a causal language model."""
        return self.task.startswith("causal")


@cache
def checkpoints() -> Mapping[str, Checkpoint]:
    """All rows, by the id in lower case."""
    lines = (Path(__file__).parent / "models.tsv").read_text(encoding="utf-8").splitlines()
    names = lines[0].split("\t")
    found = {}
    for line in lines[1:]:
        row = dict(zip(names, line.split("\t"), strict=True))
        found[row["id"].lower()] = Checkpoint(
            row["id"],
            row["family"],
            row["architecture"],
            row["kind"],
            row["task"],
            _number(row["positions"]),
            _number(row["vocabulary"]),
            _number(row["heads"]),
            _number(row["kv_heads"]),
            _flag(row["chat_template"]),
            _flag(row["pad_token"]),
            row["dtype"],
            frozenset(row["linear_layers"].split(",")) - {""},
        )
    return found


def checkpoint(name: str) -> Checkpoint | None:
    """The row of a hub id, None for a path or an id that is not in the table."""
    return checkpoints().get(ALIASES.get(name, name).lower())


def _number(text: str) -> int | None:
    return int(text) if text.isdigit() else None


def _flag(text: str) -> bool | None:
    return {"yes": True, "no": False}.get(text)
