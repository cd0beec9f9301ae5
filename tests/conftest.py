"""Shared fixtures: the developer corpus where it is present, a private cache directory."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

SHARED = Path(os.environ.get("TRAINWRECK_SHARED", Path(__file__).parent.parent.parent / "shared"))


@pytest.fixture(scope="session")
def shared() -> Path:
    """The developer corpus; skips where it is absent."""
    if not (SHARED / "vocabulary.tsv").exists():
        pytest.skip("the developer corpus (../shared) is not here")
    return SHARED


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The recorder's tests come first: they take the longest, and what ends a suite on two workers should be short."""
    items.sort(key=lambda item: "record" not in item.path.parts)
