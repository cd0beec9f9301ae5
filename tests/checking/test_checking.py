"""Settings, selection, suppression, baseline and fixes of ``check``."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainwreck.checking import baseline, fixes, select, settings, suppress
from trainwreck.core.errors import TrainwreckError
from trainwreck.core.results import Edit, Finding, Fix


def finding(name: str = "double-softmax", line: int = 1, path: str = "a.py", fix: Fix | None = None) -> Finding:
    return Finding(name, f"code-{name}", "warning", "said", path, line, fix=fix)


class TestSettings:
    def test_the_nearest_file_wins(self, tmp_path: Path) -> None:
        (tmp_path / "pyproject.toml").write_text('[tool.trainwreck]\nignore = ["far"]\n')
        (tmp_path / "sub").mkdir()
        (tmp_path / "sub/trainwreck.toml").write_text('ignore = ["near"]\n')
        assert settings.find(tmp_path / "sub").ignore == ("near",)
        assert settings.find(tmp_path).ignore == ("far",)

    def test_a_pyproject_without_our_table_is_passed_over(self, tmp_path: Path) -> None:
        (tmp_path / "trainwreck.toml").write_text('ignore = ["x"]\n')
        (tmp_path / "sub").mkdir()
        (tmp_path / "sub/pyproject.toml").write_text("[tool.ruff]\nline-length = 1\n")
        assert settings.find(tmp_path / "sub").ignore == ("x",)

    @pytest.mark.parametrize(
        ("text", "complaint"),
        [
            ('selct = ["x"]', "did you mean select"),
            ("select = 3", "must be a list of strings"),
            ('fail-on = "never-ever"', "fail-on must be one of"),
            ('target = ["transformers"]', "name==version"),
            ("= 1", "no readable TOML"),
        ],
    )
    def test_a_wrong_setting_is_one_sentence(self, tmp_path: Path, text: str, complaint: str) -> None:
        (tmp_path / "trainwreck.toml").write_text(text + "\n")
        with pytest.raises(TrainwreckError, match=complaint):
            settings.find(tmp_path)

    def test_the_command_line_beats_the_file(self) -> None:
        base = settings.parse({"ignore": ["a"], "fail-on": "warning"})
        changed = settings.override(base, ['fail-on = "never"'])
        assert (changed.fail_on, changed.ignore) == ("never", ("a",))


class TestSelect:
    @staticmethod
    def chosen(table: dict[str, object], item: Finding, maturity: str = "stable") -> bool:
        return select.chooser(settings.parse(table), lambda _: ("loss", maturity))(item)

    @pytest.mark.parametrize(
        ("table", "expected"),
        [
            ({}, True),
            ({"ignore": ["double-softmax"]}, False),
            ({"ignore": ["loss"]}, False),
            ({"ignore": ["loss"], "extend-select": ["double-softmax"]}, True),
            ({"select": ["other"]}, False),
            ({"select": ["code-double-softmax"]}, True),
            ({"select": ["double-"]}, True),
            ({"per-file-ignores": {"*.py": ["loss"]}}, False),
            ({"per-file-ignores": {"tests/*": ["loss"]}}, True),
        ],
    )
    def test_the_more_specific_word_wins(self, table: dict[str, object], expected: bool) -> None:
        assert self.chosen(table, finding()) is expected

    def test_a_preview_rule_waits_until_it_is_asked_for(self) -> None:
        assert not self.chosen({}, finding(), "preview")
        assert self.chosen({"preview": True}, finding(), "preview")
        assert self.chosen({"extend-select": ["double-softmax"]}, finding(), "preview")

    def test_words_that_mean_nothing_are_found(self) -> None:
        table = settings.parse({"select": ["double-softmax", "los"], "ignore": ["double-"]})
        assert select.unknown_words(table, ["double-softmax"], ["loss"]) == ["los"]


class TestSuppress:
    def kept(self, text: str, *findings: Finding, path: str = "a.py") -> list[str]:
        return [f"{f.id}:{f.line}" for f in suppress.apply(findings, {path: text})[0]]

    def test_a_comment_on_the_line(self) -> None:
        assert self.kept("x = 1  # trainwreck: ignore[double-softmax] distillation\n", finding()) == []

    def test_the_sign_may_be_named_instead(self) -> None:
        assert self.kept("x = 1  # trainwreck: ignore[code-double-softmax]\n", finding()) == []

    def test_a_comment_of_its_own_covers_the_next_statement(self) -> None:
        text = "# trainwreck: ignore[double-softmax] why\n\nx = f(\n    a,\n)\ny = 2\n"
        assert self.kept(text, finding(line=4)) == []
        assert "double-softmax:6" in self.kept(text, finding(line=6))

    def test_the_whole_file(self) -> None:
        assert self.kept("# trainwreck: file-ignore[double-softmax]\nx\ny\n", finding(line=3)) == []

    def test_another_id_does_not_help_and_is_told(self) -> None:
        assert self.kept("x  # trainwreck: ignore[other]\n", finding()) == ["double-softmax:1", "unused-ignore:1"]

    def test_an_alias_may_be_named_in_comments_and_selections(self) -> None:
        other = {"two-softmaxes": "double-softmax"}
        text = {"a.py": "x = 1  # trainwreck: ignore[two-softmaxes]\n"}
        assert suppress.apply([finding()], text, aliases=other)[0] == []
        chosen = select.chooser(settings.parse({"select": ["two-softmaxes"]}), lambda _: ("loss", "stable"), other)
        assert chosen(finding())
        table = settings.parse({"per-file-ignores": {"a.py": ["two-softmaxes"]}})
        assert not select.chooser(table, lambda _: ("loss", "stable"), other)(finding())

    def test_a_misspelt_id_is_told_with_the_nearest_and_not_taken_away(self) -> None:
        text = {"a.py": "x = 1  # trainwreck: ignore[softmx, gone] why\n"}
        kept, _ = suppress.apply([], text, meant={"softmx": "softmax", "gone": None}.get)
        assert [f.message for f in kept] == [
            "no such id: softmx; did you mean softmax?",
            "nothing to ignore here: gone does not occur",
        ]
        assert kept[0].fix is None
        assert kept[1].fix is not None
        assert kept[1].fix.edits[0].text == "x = 1  # trainwreck: ignore[softmx] why"

    def test_a_blanket_is_refused(self) -> None:
        assert self.kept("x  # trainwreck: ignore\n", finding()) == ["double-softmax:1", "blanket-ignore:1"]

    def test_the_words_in_a_string_are_no_comment(self) -> None:
        assert self.kept('x = "# trainwreck: ignore[double-softmax]"\n', finding()) == ["double-softmax:1"]

    def test_yaml_and_shell_use_the_same_words(self) -> None:
        text = "lr: 1e-3  # trainwreck: ignore[double-softmax]\n"
        assert self.kept(text, finding(path="c.yaml"), path="c.yaml") == []

    def test_added_comments_silence_what_they_were_added_for(self) -> None:
        text = "x = 1\ny = '''\nz\n'''\n"
        changed = suppress.add([finding(line=1)], {"a.py": text}, "known")
        assert changed["a.py"].splitlines()[0] == "x = 1  # trainwreck: ignore[double-softmax] known"
        assert self.kept(changed["a.py"], finding(line=1)) == []

    def test_a_comment_is_not_written_into_a_string(self) -> None:
        assert suppress.add([finding(line=2)], {"a.py": "y = '''\nz\n'''\n"}) == {}

    @given(st.text())
    def test_any_text_is_searched_without_harm(self, text: str) -> None:
        suppress.apply([finding()], {"a.py": text + "# trainwreck: ignore[x]"})


class TestBaseline:
    def test_what_was_there_is_quiet_wherever_it_moves(self, tmp_path: Path) -> None:
        file = tmp_path / "base.json"
        assert baseline.write(file, [finding(line=1)], {"a.py": "bad()\n"}) == 1
        moved = {"a.py": "import x\n\nbad()\n"}
        assert baseline.subtract(file, [finding(line=3)], moved) == []

    def test_a_second_one_on_an_equal_line_is_new(self, tmp_path: Path) -> None:
        file = tmp_path / "base.json"
        baseline.write(file, [finding(line=1)], {"a.py": "bad()\n"})
        fresh = baseline.subtract(file, [finding(line=1), finding(line=2)], {"a.py": "bad()\nbad()\n"})
        assert [f.line for f in fresh] == [2]

    def test_it_holds_wherever_the_command_is_started(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "sub").mkdir()
        monkeypatch.chdir(tmp_path)
        baseline.write(Path("base.json"), [finding(path="sub/a.py")], {"sub/a.py": "bad()\n"})
        monkeypatch.chdir(tmp_path / "sub")
        assert baseline.subtract(tmp_path / "base.json", [finding(path="a.py")], {"a.py": "bad()\n"}) == []

    @pytest.mark.parametrize("content", ["", "[]", '{"findings": 3}'])
    def test_a_damaged_baseline_is_told(self, tmp_path: Path, content: str) -> None:
        (tmp_path / "base.json").write_text(content)
        with pytest.raises(TrainwreckError, match="no baseline"):
            baseline.subtract(tmp_path / "base.json", [finding()], {})


class TestFixes:
    def fix(self, line: int, text: str, safe: bool = True) -> Finding:
        return finding(line=line, fix=Fix("do", (Edit("a.py", line, line, text),), safe))

    def test_the_rest_stays_byte_for_byte(self) -> None:
        text = "a = 1\r\n\tif_ = 2 \r\n".replace("\t", "") + "c = 3"
        done = fixes.apply([self.fix(1, "a = 9")], {"a.py": text})
        assert done.texts["a.py"] == "a = 9\r\n" + text.split("\r\n", 1)[1]

    def test_unsafe_ones_only_when_asked(self) -> None:
        item = self.fix(1, "a = 9", safe=False)
        assert not fixes.apply([item], {"a.py": "a = 1\n"}).texts
        assert fixes.apply([item], {"a.py": "a = 1\n"}, unsafe=True).texts

    def test_a_fix_that_breaks_the_file_is_refused(self) -> None:
        done = fixes.apply([self.fix(1, "a = (")], {"a.py": "a = 1\n"})
        assert not done.texts
        assert len(done.refused) == 1

    def test_of_two_on_one_line_the_first_goes_in(self) -> None:
        done = fixes.apply([self.fix(1, "a = 9"), self.fix(1, "a = 8")], {"a.py": "a = 1\n"})
        assert done.texts["a.py"] == "a = 9\n"
        assert len(done.refused) == 1

    def test_the_diff_shows_the_change(self) -> None:
        before = {"a.py": "a = 1\nb = 2\n"}
        done = fixes.apply([self.fix(2, "b = 3")], before)
        assert "-b = 2\n+b = 3\n" in fixes.diff(before, done.texts)
