"""``--fix`` touches the lines that it corrects and no other byte, whatever wrote the file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from trainwreck.checking import encoding, fixes, notebooks
from trainwreck.checking.check import check, mend
from trainwreck.core.errors import TrainwreckError

OLD = (
    "from transformers import TrainingArguments\n"
    "if True:\n"
    '\ta = TrainingArguments("o",\tevaluation_strategy="no")  # \u00e4 "quoted" <b>\n'
    "# trainwreck: ignore[lr-too-high]\n"
    'x = "\u00fc"'
)
NEW = OLD.replace("evaluation_strategy", "eval_strategy").replace("# trainwreck: ignore[lr-too-high]\n", "")


def fixed(path: Path) -> bytes:
    """The file after ``--fix``."""

    def run(overlay: object) -> object:
        return check([path], overlay=overlay, use_cache=False)  # type: ignore[arg-type]

    done = mend(run)  # type: ignore[arg-type]
    encoding.write(done.texts, done.before)
    return path.read_bytes()


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("last", ["", "\n"])
def test_line_ends_tabs_marks_and_the_end_of_the_file_stay(tmp_path: Path, end: str, mark: str, last: str) -> None:
    file = tmp_path / "a.py"
    file.write_bytes((mark + (OLD + last).replace("\n", end)).encode())
    assert fixed(file) == (mark + (NEW + last).replace("\n", end)).encode()


def test_mixed_line_ends_stay_mixed(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_bytes(OLD.replace("\n", "\r\n", 2).encode())
    assert fixed(file) == NEW.replace("\n", "\r\n", 2).encode()


def test_a_declared_encoding_is_kept(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_bytes(("# -*- coding: latin-1 -*-\n" + OLD).encode("latin-1"))
    assert fixed(file) == ("# -*- coding: latin-1 -*-\n" + NEW).encode("latin-1")


@pytest.mark.parametrize("content", [OLD.encode("latin-1"), OLD.encode("utf-16"), OLD.encode() + b"\ndef (:\n"])
def test_a_file_that_its_language_refuses_is_left_alone(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "a.py"
    file.write_bytes(content)
    assert fixed(file) == content


def test_what_cannot_be_written_is_named_and_the_rest_is_written(tmp_path: Path) -> None:
    names = [str(tmp_path / name) for name in ("a.py", "b.py")]
    (tmp_path / "a.py").write_text("changed meanwhile\n")
    (tmp_path / "b.py").write_text("x = 1\n")
    with pytest.raises(TrainwreckError, match=r"a\.py: changed while it was checked"):
        encoding.write(dict.fromkeys(names, "x = 2\n"), dict.fromkeys(names, "x = 1\n"))
    assert [Path(n).read_text() for n in names] == ["changed meanwhile\n", "x = 2\n"]


def cell(text: str, *, as_list: bool = True, kind: str = "code") -> dict[str, object]:
    source = text.splitlines(keepends=True) if as_list else text
    return {"cell_type": kind, "execution_count": None, "metadata": {}, "outputs": [], "source": source}


def plain_notebook(as_list: bool) -> dict[str, object]:
    cells = [
        cell("a < b\n\u2028 c", kind="markdown"),
        cell(OLD, as_list=as_list),
        cell("%%bash\nls < x\n", as_list=as_list),
        cell("def f(:\n", as_list=as_list),  # broken, and no reason to leave the others as they are
    ]
    return {"cells": cells, "metadata": {"kernelspec": {"language": "python"}}, "nbformat": 4, "nbformat_minor": 5}


def colab(text: str) -> str:
    """Colab escapes what could be HTML."""
    return text.replace("<", "\\u003c").replace(">", "\\u003e")


@pytest.mark.parametrize("as_list", [True, False])
@pytest.mark.parametrize("indent", [None, 1, 2, "\t"])
@pytest.mark.parametrize("ascii_only", [True, False])
@pytest.mark.parametrize("written", [str, colab, lambda t: t.replace("\n", "\r\n") + "\r\n"])
def test_a_notebook_keeps_its_layout(
    tmp_path: Path, as_list: bool, indent: int | str | None, ascii_only: bool, written: object
) -> None:
    data = plain_notebook(as_list)
    before = written(json.dumps(data, indent=indent, ensure_ascii=ascii_only))  # type: ignore[operator]
    data["cells"][1] = cell(NEW, as_list=as_list)  # type: ignore[index]
    after = written(json.dumps(data, indent=indent, ensure_ascii=ascii_only))  # type: ignore[operator]
    file = tmp_path / "n.ipynb"
    file.write_bytes(before.encode())
    assert fixed(file) == after.encode()


def test_odd_escapes_in_lines_that_stay_stay() -> None:
    rows = '"x = \\u0022\\/\\u0022\\n"  ,\t"y=1\\n", "z=\\ud83d\\ude00"'
    raw = f'{{"nbformat": 4, "cells": [{{"source":[{rows}],"cell_type":"code"}}]}}'
    after = notebooks.replaced(raw, {1: 'x = "/"\ny = 2\nz=\U0001f600'})
    assert after == raw.replace('"y=1\\n"', '"y = 2\\n"')


@pytest.mark.parametrize(
    "raw", ["", "[]", "{}", '{"cells": 1}', '{"cells": [{"cell_type": "code"}]}', '{"cells": [1, {}]}']
)
def test_what_is_no_notebook_is_not_changed(raw: str) -> None:
    assert notebooks.replaced(raw, {1: "x"}) is None


def test_a_diff_is_one_that_patch_reads() -> None:
    before, after = "a = 1\r\nb\rc = 2", "a = 1\r\nb\rc = 3"
    assert fixes.diff({"x.py": before}, {"x.py": after}) == (
        "--- a/x.py\n+++ b/x.py\n@@ -1,2 +1,2 @@\n a = 1\r\n"
        "-b\rc = 2\n\\ No newline at end of file\n+b\rc = 3\n\\ No newline at end of file\n"
    )
