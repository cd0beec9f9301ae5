"""The language server over its standard input and output, driven by a small client."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

PYTHON = os.environ.get("TRAINWRECK_LSP_PYTHON", sys.executable)
BAD = """import torch.nn.functional as F


def step(model, x, y):
    scores = F.softmax(model(x), dim=-1)
    return F.cross_entropy(scores, y)
"""
ID = "softmax-before-cross-entropy"


class Client:
    def __init__(self, root: Path) -> None:
        self.process = subprocess.Popen(
            [PYTHON, "-m", "trainwreck", "server"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=root,
        )
        self.number = 0
        self.request("initialize", {"processId": None, "rootUri": root.as_uri(), "capabilities": {}})
        self.send("initialized", {})

    def send(self, method: str, params: Any, number: int | None = None) -> None:
        body = {"jsonrpc": "2.0", "method": method, "params": params}
        data = json.dumps(body if number is None else {**body, "id": number}).encode()
        assert self.process.stdin is not None
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(data) + data)
        self.process.stdin.flush()

    def receive(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        size = 0
        while (row := self.process.stdout.readline().strip()) or not size:
            assert row, "the server has gone"
            if row.lower().startswith(b"content-length:"):
                size = int(row.split(b":")[1])
        answer: dict[str, Any] = json.loads(self.process.stdout.read(size))
        return answer

    def request(self, method: str, params: Any) -> Any:
        self.number += 1
        self.send(method, params, self.number)
        while True:
            answer = self.receive()
            if answer.get("id") == self.number and "method" not in answer:
                assert "error" not in answer, answer
                return answer["result"]

    def diagnostics(self) -> list[dict[str, Any]]:
        while True:
            answer = self.receive()
            if answer.get("method") == "textDocument/publishDiagnostics":
                found: list[dict[str, Any]] = answer["params"]["diagnostics"]
                return found

    def open(self, path: Path, text: str) -> list[dict[str, Any]]:
        document = {"uri": path.as_uri(), "languageId": "python", "version": 1, "text": text}
        self.send("textDocument/didOpen", {"textDocument": document})
        return self.diagnostics()


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    probe = subprocess.run([PYTHON, "-c", "import pygls.lsp.server"], capture_output=True, check=False)
    if probe.returncode:
        pytest.skip("pygls comes with the extra lsp")
    talker = Client(tmp_path)
    yield talker
    talker.request("shutdown", None)
    talker.send("exit", None)
    talker.process.communicate(timeout=20)


def test_what_is_open_is_checked_and_again_when_it_changes(client: Client, tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text("")
    (item,) = client.open(path, BAD)
    assert (item["code"], item["source"], item["range"]["start"]["line"]) == (ID, "trainwreck", 4)
    assert item["range"]["end"]["character"] > item["range"]["start"]["character"]
    changed = {"uri": path.as_uri(), "version": 2}
    client.send("textDocument/didChange", {"textDocument": changed, "contentChanges": [{"text": "import torch\n"}]})
    assert client.diagnostics() == []
    client.send("textDocument/didSave", {"textDocument": {"uri": path.as_uri()}})
    assert client.diagnostics() == []


def test_hover_explains_and_a_quick_fix_silences(client: Client, tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text(BAD)
    (item,) = client.open(path, BAD)
    place = {"textDocument": {"uri": path.as_uri()}, "position": item["range"]["start"]}
    assert ID in client.request("textDocument/hover", place)["contents"]["value"]
    asked = {**place, "range": item["range"], "context": {"diagnostics": [item]}}
    actions = client.request("textDocument/codeAction", asked)
    (edit,) = next(a for a in actions if a["title"].startswith("Ignore"))["edit"]["changes"][path.as_uri()]
    assert edit["newText"] == f"    scores = F.softmax(model(x), dim=-1)  # trainwreck: ignore[{ID}]"
    assert (edit["range"]["start"]["line"], edit["range"]["end"]["line"]) == (4, 4)


def test_a_useless_comment_can_be_removed(client: Client, tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    text = f"import torch\nx = '𝄞'  # trainwreck: ignore[{ID}]\n"
    path.write_text(text)
    (item,) = client.open(path, text)
    assert item["range"]["start"] == {"line": 1, "character": 10}
    asked = {"textDocument": {"uri": path.as_uri()}, "range": item["range"], "context": {"diagnostics": [item]}}
    first = client.request("textDocument/codeAction", asked)[0]
    assert first["isPreferred"]
    assert first["edit"]["changes"][path.as_uri()][0]["newText"] == "x = '𝄞'"


def test_broken_text_and_a_document_without_a_file_are_checked_too(client: Client, tmp_path: Path) -> None:
    path = tmp_path / "new.py"
    assert [d["code"] for d in client.open(path, "x = (\n")] == ["broken-file"]


def test_without_pygls_it_is_one_sentence(tmp_path: Path) -> None:
    program = "import sys; sys.modules['pygls'] = None; sys.argv[1:] = ['server']; import trainwreck.cli as c; c.main()"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("trainwreck: the server needs pygls")
