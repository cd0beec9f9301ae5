"""The files of --artifacts."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import report_samples as samples

from trainwreck.core.errors import TrainwreckError
from trainwreck.report import artifacts


def test_without_a_gradient_norm_the_page_says_so() -> None:
    page = artifacts.gradient_analysis(samples.healthy())
    assert "No gradient norm was logged" in page


def test_the_page_tells_figures_and_what_was_seen() -> None:
    page = artifacts.gradient_analysis(samples.silent())
    assert "| not finite | 55 points, first at step 1460 |" in page
    assert "step 1180: gradient norm rose 190-fold" in page
    assert "`lr-too-high`" in page


def test_the_picture_is_written(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib comes with the extra plot")
    made = artifacts.write(samples.silent(), tmp_path / "new")
    assert Path(made["loss_visualization"]).read_bytes().startswith(b"\x89PNG")
    assert Path(made["gradient_analysis"]).is_file()


def test_without_matplotlib_one_sentence_and_no_picture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    monkeypatch.setitem(sys.modules, "matplotlib.backends.backend_agg", None)
    made = artifacts.write(samples.silent(), tmp_path)
    assert set(made) == {"gradient_analysis"}
    assert capsys.readouterr().err.count("\n") == 1


def test_a_directory_that_cannot_be_made_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(TrainwreckError, match="cannot be written"):
        artifacts.write(samples.silent(), tmp_path / "file")
