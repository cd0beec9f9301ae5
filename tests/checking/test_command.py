"""``trainwreck check`` from outside: files, notebooks, settings, fixes, formats, exit codes."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from commands import command

BAD = """import torch
from torch import nn
import torch.nn.functional as F

model = nn.Linear(4, 3)


def step(x, y):
    scores = F.softmax(model(x), dim=-1)
    return F.cross_entropy(scores, y)
"""
ID = "softmax-before-cross-entropy"
LINE = 9


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> None:
    """The catalogue and the words of the rules are compiled on this machine: two seconds, once."""
    place = tmp_path_factory.mktemp("first")
    (place / "train.py").write_text(BAD)
    trainwreck(place, "check", "train.py")


@pytest.fixture(autouse=True)
def own_cache(compiled: None, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test sees what another one kept; the compiled catalogue and the words of the rules are shared."""
    home = tmp_path_factory.mktemp("cache")
    (home / "trainwreck").mkdir()
    real = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "trainwreck"
    for item in (*real.glob("catalogue-*"), *real.glob("rules-*")):
        (home / "trainwreck" / item.name).symlink_to(item)
    monkeypatch.setenv("XDG_CACHE_HOME", str(home))


def trainwreck(cwd: Path, *arguments: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
    raw = command(cwd, *arguments, stdin=(stdin or "").encode())
    done = subprocess.CompletedProcess(raw.args, raw.returncode, raw.stdout.decode(), raw.stderr.decode())
    assert "Traceback" not in done.stderr, done.stderr
    assert done.returncode != 3, done.stderr
    return done


def found(cwd: Path, *arguments: str, stdin: str | None = None) -> list[dict[str, Any]]:
    done = trainwreck(cwd, "check", *(arguments or (".",)), "--format", "json", stdin=stdin)
    assert done.returncode in (0, 1), done.stderr
    findings: list[dict[str, Any]] = json.loads(done.stdout)["findings"]
    return findings


def ids(cwd: Path, *arguments: str) -> list[str]:
    return [f["id"] for f in found(cwd, *arguments)]


def notebook(*cells: str, **extra: Any) -> str:
    listed = [
        {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": [], "source": c.splitlines(True)}
        for c in cells
    ]
    return json.dumps({"cells": listed, "metadata": {}, "nbformat": 4, "nbformat_minor": 5, **extra}, indent=1) + "\n"


class TestAnswers:
    def test_full_shows_the_line_with_carets_the_proof_and_the_counts(self, tmp_path: Path) -> None:
        (tmp_path / "train.py").write_text(BAD)
        done = trainwreck(tmp_path, "check", ".", "--fail-on", "warning")
        assert done.returncode == 1
        assert f"warning {ID}: " in done.stdout
        assert f"--> train.py:{LINE}:" in done.stdout
        assert f"{LINE} |     scores = F.softmax(model(x), dim=-1)" in done.stdout
        assert "^^^^" in done.stdout
        assert "because train.py:10" in done.stdout
        assert "help: " in done.stdout
        assert "1 finding: 1 warning" in done.stdout

    def test_concise_is_a_line_each_and_silent_where_there_is_nothing(self, tmp_path: Path) -> None:
        (tmp_path / "train.py").write_text(BAD)
        rows = trainwreck(tmp_path, "check", ".", "--format", "concise").stdout.splitlines()
        assert [r.split(": ")[1].split()[0] for r in rows] == [ID]
        (tmp_path / "train.py").write_text("import torch\n")
        done = trainwreck(tmp_path, "check", ".", "--format", "concise")
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")

    def test_the_end_of_the_span_is_told(self, tmp_path: Path) -> None:
        (tmp_path / "train.py").write_text(BAD)
        item = found(tmp_path)[0]
        assert item["end_column"] > item["column"]
        assert item["proof"][0]["path"] == "train.py"

    def test_two_of_a_kind_are_two_lines(self, tmp_path: Path) -> None:
        more = "\n\ndef other(x, y):\n    return F.cross_entropy(F.softmax(model(x), -1), y)\n"
        (tmp_path / "train.py").write_text(BAD + more)
        rows = trainwreck(tmp_path, "check", ".", "--format", "concise").stdout.splitlines()
        assert len([r for r in rows if ID in r]) == 2

    def test_statistics_and_fail_on(self, tmp_path: Path) -> None:
        (tmp_path / "train.py").write_text(BAD)
        done = trainwreck(tmp_path, "check", ".", "--statistics")
        assert done.stdout.split() == ["1", "warning", ID]
        codes = {"critical": 0, "warning": 1, "suggestion": 1, "never": 0}
        for word, code in codes.items():
            assert trainwreck(tmp_path, "check", ".", "--fail-on", word).returncode == code
        assert trainwreck(tmp_path, "check", ".", "--fail-on", "warning", "--exit-zero").returncode == 0

    def test_the_same_bytes_again_from_the_cache_and_without_it(self, tmp_path: Path) -> None:
        (tmp_path / "train.py").write_text(BAD)
        answers = {
            trainwreck(tmp_path, "check", ".", "--format", form, *more).stdout
            for form in ("json",)
            for more in ((), (), ("--no-cache",))
        }
        assert len(answers) == 1
        kept = list((Path(os.environ["XDG_CACHE_HOME"]) / "trainwreck/check").glob("*.json"))
        assert kept
        for path in kept:
            path.write_text("{}")
        assert ids(tmp_path) == [ID]

    @pytest.mark.parametrize("form", ["sarif", "github", "gitlab", "junit", "markdown", "html", "jsonl"])
    def test_every_format_names_the_finding(self, tmp_path: Path, form: str) -> None:
        (tmp_path / "train.py").write_text(BAD)
        assert ID in trainwreck(tmp_path, "check", ".", "--format", form).stdout


class TestBadInput:
    @pytest.mark.parametrize(
        ("name", "content", "line"),
        [
            ("a.py", b"import torch\nx = (\n", 2),
            ("a.py", b"import torch\nx = 1\0\n", 2),
            ("a.py", "import torch\nx = 'é'\n".encode("latin-1"), 2),
            ("a.py", "import torch\n".encode("utf-16"), 1),
            ("a.ipynb", b'{"cells": [\n', 2),
            ("a.ipynb", b"[]", 1),
            ("a.yaml", b"lr: [1\nmodel: {\n", 2),
            ("a.json", b'{"lr": 1,\n}', 2),
            ("a.toml", b"a = 1\nb = \n", 2),
        ],
    )
    def test_a_broken_file_is_one_finding_with_its_line(
        self, tmp_path: Path, name: str, content: bytes, line: int
    ) -> None:
        (tmp_path / name).write_bytes(content)
        (tmp_path / "train.py").write_text(BAD)
        answer = found(tmp_path)
        assert [(f["path"], f["line"]) for f in answer if f["id"] == "broken-file"] == [(name, line)]
        assert ID in [f["id"] for f in answer]

    def test_a_declared_encoding_is_read(self, tmp_path: Path) -> None:
        text = "# -*- coding: latin-1 -*-\nimport torch\nx = 'é'\n"
        (tmp_path / "a.py").write_bytes(text.encode("latin-1"))
        assert ids(tmp_path, "a.py") == []

    def test_deep_nesting_is_told(self, tmp_path: Path) -> None:
        (tmp_path / "deep.py").write_text("import torch\nx = " + "(" * 5000 + ")" * 5000 + "\n")
        (tmp_path / "sum.py").write_text("import torch\nx = " + "+".join(["1"] * 50_000) + "\n")
        (tmp_path / "deep.json").write_text("[" * 100_000 + "]" * 100_000)
        (tmp_path / "train.py").write_text(BAD)
        answer = found(tmp_path)
        assert {f["path"] for f in answer if f["id"] != ID} == {"deep.py", "sum.py", "deep.json"}
        assert ID in [f["id"] for f in answer]

    def test_a_billion_laughs_and_a_tag_are_told_and_not_loaded(self, tmp_path: Path) -> None:
        rows = ["a0: &a0 [x, x]"] + [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 12)]
        (tmp_path / "bomb.yaml").write_text("\n".join(rows))
        (tmp_path / "tag.yaml").write_text("x: !!python/object/apply:os.system ['touch owned']\n")
        (tmp_path / "train.py").write_text(BAD)
        told = {f["path"]: f["message"] for f in found(tmp_path) if f["id"] == "unreadable"}
        assert "expand" in told["bomb.yaml"]
        assert "run code" in told["tag.yaml"]
        assert not (tmp_path / "owned").exists()

    def test_a_generated_file_is_left_out(self, tmp_path: Path) -> None:
        (tmp_path / "big.py").write_text("import torch\n" + "x = 1\n" * 1_000_000)
        (tmp_path / "train.py").write_text(BAD)
        answer = found(tmp_path)
        assert [f["id"] for f in answer] == [ID, "unreadable"]
        assert "larger than" in answer[1]["message"]

    def test_templates_and_commented_json_are_no_errors(self, tmp_path: Path) -> None:
        (tmp_path / "values.yaml").write_text("{{- if .Values.x }}\na: b\n{{- end }}\n")
        (tmp_path / "tsconfig.json").write_text('{\n  // why\n  "a": 1,\n}\n')
        (tmp_path / "data.json").write_text('{"a": 1}\n{"a": 2}\n')
        (tmp_path / "train.py").write_text("import torch\n")
        assert ids(tmp_path) == []

    def test_nothing_there_is_a_usage_error_and_an_empty_directory_is_not(self, tmp_path: Path) -> None:
        assert trainwreck(tmp_path, "check", "nowhere.py").returncode == 2
        (tmp_path / "empty").mkdir()
        (tmp_path / "__init__.py").write_text("")
        assert trainwreck(tmp_path, "check", "empty", "__init__.py").returncode == 0

    def test_a_project_without_machine_learning_is_silent(self, tmp_path: Path) -> None:
        (tmp_path / "app.py").write_text(
            "try:\n    import os\nexcept Exception:\n    pass\nfor x in []:\n    x.step()\n"
        )
        (tmp_path / "chart.yaml").write_text("a: [\n")
        assert ids(tmp_path) == []


class TestNotebooks:
    def test_cell_and_line_are_told_and_a_broken_cell_stops_nothing(self, tmp_path: Path) -> None:
        text = notebook("%pip install torch\nfiles = !ls\n", "x = = 1\n", BAD)
        (tmp_path / "n.ipynb").write_text(text)
        answer = found(tmp_path, "n.ipynb")
        assert {(f["id"], f["cell"], f["line"]) for f in answer} == {("broken-file", 2, 1), (ID, 3, LINE)}
        assert "n.ipynb:cell 3:9:" in trainwreck(tmp_path, "check", "n.ipynb").stdout

    def test_another_language_is_passed_over(self, tmp_path: Path) -> None:
        text = notebook("x <- c(1, 2)\n", metadata={"language_info": {"name": "R"}})
        (tmp_path / "n.ipynb").write_text(text)
        assert ids(tmp_path, "n.ipynb") == []

    def test_comments_in_cells_silence_and_are_added(self, tmp_path: Path) -> None:
        path = tmp_path / "n.ipynb"
        path.write_text(notebook("print(1)\n", BAD))
        done = trainwreck(tmp_path, "check", "n.ipynb", "--add-ignore", "known")
        assert "1 file changed" in done.stderr
        assert ids(tmp_path, "n.ipynb") == []
        cells = json.loads(path.read_text())["cells"]
        assert cells[1]["source"][LINE - 1].rstrip().endswith(f"# trainwreck: ignore[{ID}] known")
        assert path.read_text() == json.dumps(json.loads(path.read_text()), indent=1) + "\n"

    def test_an_unused_comment_in_a_cell_is_removed_by_fix(self, tmp_path: Path) -> None:
        path = tmp_path / "n.ipynb"
        path.write_text(notebook("import torch\n", f"x = 1  # trainwreck: ignore[{ID}] old\n"))
        assert [(f["id"], f["cell"]) for f in found(tmp_path, "n.ipynb")] == [("unused-ignore", 2)]
        trainwreck(tmp_path, "check", "n.ipynb", "--fix")
        assert path.read_text() == notebook("import torch\n", "x = 1\n")


class TestSettings:
    def test_the_nearest_file_holds_for_each_file(self, tmp_path: Path) -> None:
        for name in ("a", "b"):
            (tmp_path / name).mkdir()
            (tmp_path / name / "train.py").write_text(BAD)
        (tmp_path / "b/trainwreck.toml").write_text(f'ignore = ["{ID}"]\n')
        assert [f["path"] for f in found(tmp_path)] == ["a/train.py"]
        assert len(found(tmp_path, ".", "--isolated")) == 2

    def test_per_file_ignores_and_exclude_are_meant_from_the_settings_file(self, tmp_path: Path) -> None:
        (tmp_path / "sub/old").mkdir(parents=True)
        for name in ("sub/old/train.py", "sub/new.py"):
            (tmp_path / name).write_text(BAD)
        (tmp_path / "sub/trainwreck.toml").write_text('exclude = ["old/"]\nper-file-ignores = {"new.py" = ["ALL"]}\n')
        assert ids(tmp_path) == []
        shown = trainwreck(tmp_path, "check", ".", "--show-files").stdout.split()
        assert shown == ["sub/new.py", "sub/trainwreck.toml"]

    def test_an_unknown_word_or_key_is_refused_with_the_nearest(self, tmp_path: Path) -> None:
        (tmp_path / "train.py").write_text(BAD)
        done = trainwreck(tmp_path, "check", ".", "--ignore", ID[:-1])
        assert done.returncode == 2
        assert ID in done.stderr
        (tmp_path / "trainwreck.toml").write_text("excluded = []\n")
        done = trainwreck(tmp_path, "check", ".")
        assert done.returncode == 2
        assert "did you mean exclude" in done.stderr

    def test_settings_are_shown_as_toml(self, tmp_path: Path) -> None:
        import tomllib

        (tmp_path / "trainwreck.toml").write_text('ignore = ["loss"]\nper-file-ignores = {"a.py" = ["data"]}\n')
        text = trainwreck(tmp_path, "check", ".", "--show-settings", "--target", "trl==0.9").stdout
        table = tomllib.loads(text)
        assert (table["ignore"], table["target"]) == (["loss"], {"trl": "0.9"})

    def test_a_baseline_keeps_the_old_quiet(self, tmp_path: Path) -> None:
        (tmp_path / "train.py").write_text(BAD)
        trainwreck(tmp_path, "check", ".", "--write-baseline", "base.json")
        (tmp_path / "train.py").write_text("# moved\n" + BAD)
        done = trainwreck(tmp_path, "check", ".", "--baseline", "base.json", "--fail-on", "warning")
        assert done.returncode == 0
        assert "1 known to the baseline" in done.stderr


class TestFixing:
    OLD = f"import torch\nx = 1  # trainwreck: ignore[{ID}]\n"

    def test_standard_input_is_named_and_fixed(self, tmp_path: Path) -> None:
        assert [f["path"] for f in found(tmp_path, "-", "--stdin-filename", "src/a.py", stdin=BAD)] == ["src/a.py"]
        done = trainwreck(tmp_path, "check", "-", "--fix", stdin=self.OLD)
        assert done.stdout == "import torch\nx = 1\n"
        assert trainwreck(tmp_path, "check", "-", "--fix", stdin=BAD).stdout == BAD

    def test_diff_prints_and_writes_nothing(self, tmp_path: Path) -> None:
        (tmp_path / "a.py").write_text(self.OLD)
        done = trainwreck(tmp_path, "check", ".", "--diff")
        assert done.returncode == 1
        assert "+x = 1\n" in done.stdout
        assert (tmp_path / "a.py").read_text() == self.OLD

    def test_line_ends_and_marks_stay(self, tmp_path: Path) -> None:
        old = self.OLD.replace("\n", "\r\n")
        (tmp_path / "a.py").write_bytes(b"\xef\xbb\xbf" + old.encode())
        trainwreck(tmp_path, "check", ".", "--fix")
        assert (tmp_path / "a.py").read_bytes() == b"\xef\xbb\xbfimport torch\r\nx = 1\r\n"

    def test_comments_in_yaml_and_shell_are_seen(self, tmp_path: Path) -> None:
        (tmp_path / "train.py").write_text("import torch\n")
        (tmp_path / "c.yaml").write_text(f"lr: 1  # trainwreck: ignore[{ID}]\n")
        (tmp_path / "run.sh").write_text(f"python x.py  # trainwreck: ignore[{ID}]\n")
        assert [f["path"] for f in found(tmp_path)] == ["c.yaml", "run.sh"]


class TestVerbs:
    @pytest.mark.parametrize(
        ("files", "argument", "verb"),
        [
            ({"train.py": BAD}, "train.py", "check"),
            ({"train.py": BAD}, ".", "check"),
            ({"train.log": "step 1 loss 2.0\nstep 2 loss 1.0\n", "train.py": BAD}, ".", "diagnose"),
            ({"train.log": "step 1 loss 2.0\nstep 2 loss 1.0\n"}, "train.log", "diagnose"),
        ],
    )
    def test_a_path_without_a_verb_is_guessed_and_said(
        self, tmp_path: Path, files: dict[str, str], argument: str, verb: str
    ) -> None:
        for name, text in files.items():
            (tmp_path / name).write_text(text)
        done = trainwreck(tmp_path, argument)
        assert done.stderr.splitlines()[0].startswith(f"trainwreck: {verb} {argument} (")
        assert done.returncode in (0, 1)

    def test_a_word_that_is_neither_is_a_usage_error(self, tmp_path: Path) -> None:
        assert trainwreck(tmp_path, "chekc").returncode == 2

    @pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
    def test_completion_prints_a_script(self, tmp_path: Path, shell: str) -> None:
        assert "_TRAINWRECK_COMPLETE" in trainwreck(tmp_path, "completion", shell).stdout

    def test_rules_are_listed(self, tmp_path: Path) -> None:
        assert "unused-ignore" in trainwreck(tmp_path, "explain", "--list").stdout


def test_watch_looks_again_after_a_change(tmp_path: Path) -> None:
    from trainwreck.checking.watch import watch
    from trainwreck.core.errors import TrainwreckError

    path = tmp_path / "a.py"
    path.write_text("x = 1\n")
    looks: list[str] = []
    said: list[str] = []

    def again() -> None:
        looks.append(path.read_text())
        if len(looks) == 2:
            raise TrainwreckError("broken settings")

    def sleep(_: float) -> None:
        if len(looks) == 3:
            raise KeyboardInterrupt
        path.write_text(path.read_text() + "y = 2\n")

    assert watch([str(tmp_path)], again, said.append, sleep) == 130
    assert len(looks) == 3
    assert "trainwreck: broken settings" in said
