"""The table of contradicting arguments: every entry is well formed, and unknown is never a contradiction."""

from __future__ import annotations

from typing import Any

import pytest

from trainwreck.catalogue.arguments import UNKNOWN, Contradiction, contradictions, groups, holds
from trainwreck.catalogue.load import catalogue

ENTRIES = [pytest.param(entry, id=f"{entry.id}-{n}") for n, entry in enumerate(contradictions())]
WORDS = {"key", "is", "unlike", "given", "differs_from", "no_multiple_of", "above", "below", "above_key"}


def first(entry_id: str) -> Contradiction:
    return next(entry for entry in contradictions() if entry.id == entry_id)


@pytest.mark.parametrize("entry", ENTRIES)
def test_entry_is_well_formed(entry: Contradiction) -> None:
    known = catalogue()
    assert known.mode(entry.id) is not None or entry.id in known.rules
    group = groups()[entry.group]
    assert set(entry.classes) <= set(group.names)
    for condition in entry.conditions:
        assert set(condition) <= WORDS
        assert len(condition) == 2
    named = {c["key"] for c in entry.conditions}
    assert entry.place
    spelled = named | {alias for alias, name in group.aliases.items() if name in named}
    assert set(entry.place) & spelled


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"fp16": True, "bf16": True}, True),
        ({"fp16": True, "bf16": False}, False),
        ({"fp16": True}, False),
        ({"fp16": True, "bf16": UNKNOWN}, False),
        ({"fp16": "True", "bf16": True}, False),
        ({"fp16": 1, "bf16": True}, False),
    ],
)
def test_only_known_values_contradict(given: dict[str, Any], expected: bool) -> None:
    assert holds(first("fp16-and-bf16"), "TrainingArguments", given, closed=True) is expected


def test_defaults_count_only_where_nothing_else_is_given() -> None:
    entry = first("eval-save-strategy-mismatch")
    given = {"load_best_model_at_end": True, "eval_strategy": "epoch"}
    assert holds(entry, "TrainingArguments", given, closed=True)
    assert not holds(entry, "TrainingArguments", given, closed=False)


def test_old_spellings_mean_the_same() -> None:
    given = {"load_best_model_at_end": True, "evaluation_strategy": "epoch", "save_strategy": "epoch"}
    assert not holds(first("eval-save-strategy-mismatch"), "TrainingArguments", given, closed=True)


def test_an_entry_for_one_class_leaves_others_alone() -> None:
    entry = first("grpo-one-generation")
    assert holds(entry, "GRPOConfig", {"num_generations": 1}, closed=True)
    assert not holds(entry, "SFTConfig", {"num_generations": 1}, closed=True)
    assert not holds(entry, "SomethingElse", {"num_generations": 1}, closed=True)


@pytest.mark.parametrize(("save", "evaluate", "expected"), [(250, 100, True), (500, 100, False), (0.2, 0.1, False)])
def test_steps_of_saving_are_multiples_of_steps_of_evaluating(save: float, evaluate: float, expected: bool) -> None:
    entry = [e for e in contradictions() if e.id == "eval-save-strategy-mismatch"][1]
    given = {
        "load_best_model_at_end": True,
        "save_strategy": "steps",
        "eval_strategy": "steps",
        "save_steps": save,
        "eval_steps": evaluate,
    }
    assert holds(entry, "TrainingArguments", given, closed=True) is expected
