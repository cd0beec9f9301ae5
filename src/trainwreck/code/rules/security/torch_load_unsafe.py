"""A file is unpickled without restriction.

What: ``torch.load(..., weights_only=False)`` of a path that comes from outside (an argument, a download).
Why it matters: a pickle can run any code; a checkpoint from the web is such a file.
When it is fine: for files that this program wrote itself.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.calls import last_name, written
from trainwreck.code.facts import (
    made_names,
    only,
    option,
)
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.core.evidence import Evidence

BAD = (
    """
import argparse
import torch
parser = argparse.ArgumentParser()
parser.add_argument("--ckpt")
args = parser.parse_args()
state = torch.load(args.ckpt, weights_only=False)  # expect
""",
    """
import torch
from huggingface_hub import hf_hub_download
def load(repo):
    path = hf_hub_download(repo, "model.bin")
    return torch.load(path, map_location="cpu", weights_only=False)  # expect
""",
)
GOOD = """
import torch
def load(path, args):
    torch.save({"a": 1}, "own.pt")
    own = torch.load("own.pt", weights_only=False)
    return torch.load(args.ckpt), torch.load(args.ckpt, weights_only=True), own
"""
OUTSIDE = re.compile(r"^(args|opt|opts|options|config|cfg|hparams|flags)\.|sys\.argv|input\(|request")
FETCH = frozenset(
    ["hf_hub_download", "urlretrieve", "download_url", "cached_download", "wget", "snapshot_download", "download"]
)


def find(project: Project) -> Iterator[Evidence]:
    for call in project.calls("load"):
        if project.called(call) != "torch.load" or only(project, option(project, call, "weights_only")) is not False:
            continue
        value = call.argument("f", 0)
        if value is None:
            continue
        fetched = isinstance(value, ast.Call) and last_name(value.func) in FETCH
        if OUTSIDE.search(written(value)) or fetched or made_names(project, value, call.scope) & FETCH:
            yield sighting(
                __name__, call, f"{written(value)} comes from outside, and unpickling it runs whatever it holds"
            )
