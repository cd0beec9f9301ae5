"""A file is unpickled without restriction.

What: ``torch.load(..., weights_only=False)`` of a path that comes from outside (an argument, a download), or
``torch.load`` that does not say, where torch may be older than 2.6 (its default became True with that release).
Why it matters: a pickle can run any code; a checkpoint from the web is such a file.
When it is fine: for files that this program wrote itself, and without the argument from torch 2.6 on.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.catalogue import specifiers
from trainwreck.code.calls import Call, last_name, written
from trainwreck.code.facts import (
    made_names,
    only,
    option,
)
from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.code.targets import pin_for
from trainwreck.core.evidence import Evidence
from trainwreck.core.fix import Fix

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
    """
#--- requirements.txt
torch==2.3.1
#--- restore.py
import torch
def restore(model, path):
    model.load_state_dict(torch.load(path, map_location="cpu"))  # expect
""",
    """
from torch import load, nn
def restore(path, **options):
    known = load(path, **options)
    return load(path), known  # expect
""",
)
GOOD = (
    """
import torch
def load(path, args):
    torch.save({"a": 1}, "own.pt")
    own = torch.load("own.pt", weights_only=False), torch.load("own.pt")
    return torch.load(args.ckpt, weights_only=True), own
""",
    """
#--- requirements.txt
torch>=2.6
#--- restore.py
import torch
def restore(model, path):
    model.load_state_dict(torch.load(path, map_location="cpu"))
""",
    """
import json
import numpy as np
from joblib import load
def restore(path):
    return load(path), np.load(path), json.load(path)
""",
)
SAFE_SINCE = "2.6"
"""torch's release notes: weights_only is True by default from there on."""
OUTSIDE = pattern(r"^(args|opt|opts|options|config|cfg|hparams|flags)\.|sys\.argv|input\(|request")
FETCH = frozenset(
    ["hf_hub_download", "urlretrieve", "download_url", "cached_download", "wget", "snapshot_download", "download"]
)


def find(project: Project) -> Iterator[Evidence]:
    for call in project.calls("load"):
        if project.called(call) != "torch.load":
            continue
        if call.argument("weights_only") is None:
            yield from _unsaid(project, call)
            continue
        if only(project, option(project, call, "weights_only")) is not False:
            continue
        value = call.argument("f", 0)
        if value is None:
            continue
        fetched = isinstance(value, ast.Call) and last_name(value.func) in FETCH
        if OUTSIDE.search(written(value)) or fetched or made_names(project, value, call.scope) & FETCH:
            yield sighting(
                __name__, call, f"{written(value)} comes from outside, and unpickling it runs whatever it holds"
            )


def _unsaid(project: Project, call: Call) -> Iterator[Evidence]:
    """No ``weights_only``: dangerous where torch is older than 2.6, and a remark where that is not known."""
    path, safe = call.scope.module.path, specifiers.parse(SAFE_SINCE)
    pin = pin_for(project, "torch", path)
    if call.open_ended or call.argument("pickle_module", 2) is not None or (pin is None and not project.assume_newest):
        return
    if (pin is not None and specifiers.starts_at(pin.specifier, safe)) or _own(project, call):
        return
    old = pin is not None and not specifiers.reaches(pin.specifier, safe)
    text = f"weights_only is not said: before torch {SAFE_SINCE} this runs whatever the file holds"
    if not old:
        text += f", from {SAFE_SINCE} on it refuses all but tensors and plain containers"
    yield sighting(
        __name__,
        call,
        text,
        proof=[(pin.path, pin.line, pin.text)] if pin is not None and pin.line else [],
        severity="warning" if old else "suggestion",
        fix=Fix("say weights_only=True"),
    )


def _own(project: Project, call: Call) -> bool:
    """True if the program writes a file of this name itself."""
    value = call.argument("f", 0)
    if value is None:
        return False
    name = ast.dump(value)
    saves = [c.argument("f", 1) for c in project.calls("save") if project.called(c) == "torch.save"]
    return any(saved is not None and ast.dump(saved) == name for saved in saves)
