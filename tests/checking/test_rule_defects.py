"""A rule that raises must not stop the check, and must not look like a clean program either."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from trainwreck import report
from trainwreck.checking.check import check
from trainwreck.checking.command import exit_code
from trainwreck.code import build, witness
from trainwreck.code import rule as rules_module
from trainwreck.code.project import Project
from trainwreck.core.evidence import Evidence
from trainwreck.core.source import from_bytes

TEXT = "import torch\nimport torch.nn.functional as F\nF.cross_entropy(torch.softmax(x, 1), y)\n"
NAME = "trainwreck.code.rules.loss.softmax_before_cross_entropy"


def raises(_: Project) -> Iterator[Evidence]:
    yield from ()
    raise ZeroDivisionError("secret of the user's code")


@pytest.fixture
def defect(monkeypatch: pytest.MonkeyPatch) -> None:
    """One rule of all fails."""
    real = rules_module.rule(NAME)
    others = [rules_module.rule("trainwreck.code.rules.deprecated.checkpoint_use_reentrant")]
    monkeypatch.setattr(
        sys.modules["trainwreck.code.witness"], "possible", lambda _, **options: [real._replace(find=raises), *others]
    )


@pytest.mark.usefixtures("defect")
class TestDefect:
    def test_it_is_one_sentence_and_the_exit_code_stays(self) -> None:
        result = check(["-"], stdin=TEXT.encode(), stdin_name="a.py", use_cache=False).result
        (finding,) = result.findings
        assert finding.path == "a.py"
        assert finding.message == (
            "a.py: the rule softmax-before-cross-entropy failed on this file (ZeroDivisionError), every other one was "
            "applied; a fault of ours, please report it with the file"
        )
        assert result.status == "partial"
        assert exit_code(result, "suggestion") == 0
        for form in ("full", "concise", "json", "sarif", "markdown", "html", "junit"):
            text = report.render(result, form)
            # HTML and the terminal wrap
            assert "softmax-before-cross-entropy failed" in " ".join(text.split()), form
            assert "secret" not in text

    def test_in_a_program_of_several_files_it_is_told_once(self) -> None:
        sources = [from_bytes("a.py", b"import torch, b\n"), from_bytes("b.py", TEXT.encode())]
        found = witness(build(sources))
        (problem,) = found.problems
        assert problem.path == "a.py"
        assert "or another of its program" in problem.reason
