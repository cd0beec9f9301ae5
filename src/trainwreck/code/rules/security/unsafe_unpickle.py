"""A file or message from outside is unpickled.

What: ``pickle.load``, ``joblib.load``, ``dill.load``, ``numpy.load(allow_pickle=True)`` or ``pandas.read_pickle`` of
something that comes from an argument, a download or a request.
Why it matters: a pickle can run any code when it is loaded.
When it is fine: for files that this program wrote itself, or whose origin is known.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import Call, written
from trainwreck.code.facts import only, option
from trainwreck.code.flow import back
from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.core.evidence import Evidence

BAD = (
    """
import argparse, pickle
parser = argparse.ArgumentParser()
parser.add_argument("--model")
args = parser.parse_args()
with open(args.model, "rb") as f:
    model = pickle.load(f)  # expect
""",
    """
import joblib
from huggingface_hub import hf_hub_download
path = hf_hub_download("somebody/model", "model.joblib")
clf = joblib.load(path)  # expect
""",
    """
import pickle, requests
def fetch(url):
    data = requests.get(url).content
    return pickle.loads(data)  # expect
""",
    """
import sys
import numpy as np
table = np.load(sys.argv[1], allow_pickle=True)  # expect
""",
)
GOOD = """
import joblib, pickle
import numpy as np
def main(args, model):
    with open("cache.pkl", "wb") as f:
        pickle.dump(model, f)
    with open("cache.pkl", "rb") as f:
        cached = pickle.load(f)
    return cached, np.load(args.table), joblib.load("own.joblib")
"""
LOADS = {
    "pickle": ("load", "loads", "Unpickler"),
    "cPickle": ("load", "loads"),
    "dill": ("load", "loads"),
    "cloudpickle": ("load", "loads"),
    "joblib": ("load",),
    "pandas": ("read_pickle",),
    "numpy": ("load",),
}
OUTSIDE = pattern(r"^(args|opt|opts|options|FLAGS)\.\w+$|^sys\.argv|^input\(|^request(s)?\.|^urllib|\.recv\(")
FETCHES = frozenset(
    ["hf_hub_download", "urlretrieve", "urlopen", "download_url", "snapshot_download", "cached_download"]
)


def find(project: Project) -> Iterator[Evidence]:
    for package, names in LOADS.items():
        for call in project.calls(*names):
            if project.called(call).split(".", 1)[0] != package or not call.node.args:
                continue
            if package == "numpy" and only(project, option(project, call, "allow_pickle", 2)) is not True:
                continue
            origin = _origin(project, call)
            if origin is not None:
                text = f"{origin} comes from outside, and unpickling it runs whatever it holds"
                yield sighting(__name__, call, text)


def _origin(project: Project, call: Call) -> str | None:
    """What comes from outside on the way to the loaded object."""
    for step in back(project, call.node.args[0], call.scope):
        if step.depth > 6:
            return None
        text = written(step.node)
        if OUTSIDE.match(text):
            return text[:60]
        if isinstance(step.node, ast.Call) and Call(step.node, step.scope).name in FETCHES:
            return text[:60]
    return None
