"""What cannot be read is one finding or one sentence each, and everything else is checked all the same."""

from __future__ import annotations

import json
import os
import socket
import sys
from pathlib import Path

import pytest

from commands import command

GOOD = (
    "import torch\nfrom torch import nn\ndef f(m, x, y):\n    return nn.functional.cross_entropy(m(x).softmax(-1), y)\n"
)
FOUND = "softmax-before-cross-entropy"
HALF = {
    "cells": [{"cell_type": "code", "source": text} for text in ("import torch\n", "def f(:\n", GOOD)],
    "metadata": {},
    "nbformat": 4,
    "nbformat_minor": 5,
}
LAUGHS = "train: 1\na0: &a0 [x,x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"a{i}: &a{i} [{','.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 10)
)
BROKEN: dict[str, bytes | str] = {
    "syntax.py": "import torch\ndef f(:\n",
    "no_cookie.py": "import torch\ns='\xe9'\n".encode("latin-1"),
    "nul.py": b"import torch\nx=1\x00\n",
    "brackets.py": "import torch\nx = " + "(" * 5000 + "1" + ")" * 5000,
    "sum.py": "import torch\nx = " + "+".join(["1"] * 20_000),
    "attributes.py": "import torch\nx = a" + ".b" * 3000,
    "elif.py": "import torch\nif x: pass\n" + "elif y: pass\n" * 3000,
    "long.py": b"import torch\n" + b"x = [1, 2, 3]\n" * 400_000,
    "cut.ipynb": '{"cells": [',
    "half.ipynb": json.dumps(HALF),
    "tags.yaml": "model: !!python/object/apply:os.system ['touch pwned']\ntrain: 1\n",
    "laughs.yaml": LAUGHS,
    "deep.yaml": "train: " + "[" * 20_000,
    "deep.json": "[" * 200_000,
}
READABLE: dict[str, bytes | str] = {
    "utf16.py": GOOD.encode("utf-16"),
    "bom.py": "\ufeff" + GOOD,
    "crlf.py": GOOD.replace("\n", "\r\n").encode(),
    "cookie.py": b"# -*- coding: latin-1 -*-\n" + GOOD.encode() + b"s='\xe9'\n",
    "new\nline.py": GOOD,
    "escape\x1b[31m.py": GOOD,
    "bad\udcff.py": GOOD,
    "surrogate.py": GOOD + 'x = "\\ud800"\n',
}
QUIET: dict[str, bytes | str] = {
    "empty.py": "",
    "cyc/a.py": "import torch\nfrom cyc.b import X\nclass Y(X): pass\n",
    "cyc/b.py": "from cyc.a import Y\nclass X(Y): pass\n",
    "conf/a.yaml": "defaults:\n  - b\nlr: ${b.lr}\n",
    "conf/b.yaml": "defaults:\n  - a\nb:\n  lr: ${lr}\n",
    "one.sh": "source ./two.sh\npython ok.py\n",
    "two.sh": "source ./one.sh\n",
    "requirements.txt": "-r requirements.txt\n",
}


def fill(root: Path, files: dict[str, bytes | str]) -> None:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8", "surrogateescape"))


def told(root: Path, *paths: str, seconds: int = 60) -> dict[str, set[str]]:
    """Ids of the findings by the path's basename."""
    done = command(root, "check", *(paths or (".",)), "--no-cache", "--format", "json")
    assert done.returncode in (0, 1), done.stderr
    table: dict[str, set[str]] = {}
    for finding in json.loads(done.stdout)["findings"]:
        table.setdefault(finding["path"].rsplit("/", 1)[-1], set()).add(finding["id"])
    return table


def test_each_broken_file_is_told_and_the_rest_is_checked(tmp_path: Path) -> None:
    fill(tmp_path, {**BROKEN, "ok.py": GOOD})
    found = told(tmp_path)
    assert found.pop("half.ipynb") == {"broken-file", FOUND}
    assert found.pop("ok.py") == {FOUND}
    assert {name: len(ids) for name, ids in found.items()} == dict.fromkeys(BROKEN.keys() - {"half.ipynb"}, 1)
    assert set().union(*found.values()) == {"broken-file", "unreadable"}
    assert not (tmp_path / "pwned").exists()


def test_odd_encodings_and_names_are_read(tmp_path: Path) -> None:
    fill(tmp_path, READABLE)
    found = told(tmp_path)
    assert len(found) == len(READABLE)
    assert all(FOUND in ids for ids in found.values())


def test_cycles_end(tmp_path: Path) -> None:
    fill(tmp_path, QUIET)
    (tmp_path / "loop").mkdir()
    (tmp_path / "loop/up").symlink_to("..")
    (tmp_path / "self.py").symlink_to("self.py")
    (tmp_path / "dangling.py").symlink_to("nowhere.py")
    (tmp_path / "ok.py").write_text(GOOD)
    assert told(tmp_path)["ok.py"] == {FOUND}


@pytest.mark.skipif(sys.platform == "win32", reason="no such files there")
def test_what_is_no_file_is_not_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "pipe.py")
    monkeypatch.chdir(tmp_path)  # the name of a socket may be 100 characters long
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket.py")
    (tmp_path / "zero.py").symlink_to("/dev/zero")
    (tmp_path / "ok.py").write_text(GOOD)
    found = told(tmp_path)
    assert found.pop("ok.py") == {FOUND}
    assert found == {name: {"unreadable"} for name in ("pipe.py", "socket.py", "zero.py")}
