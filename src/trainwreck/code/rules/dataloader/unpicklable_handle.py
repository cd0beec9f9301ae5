"""The data set holds something that can't be pickled: an open file, a lock, a generator, a connection.

What: ``self.x = open(...)`` (or ``h5py.File``, ``sqlite3.connect``, a lock, a generator) in the constructor.
Why it matters: with spawned workers the data set is pickled; with forked ones all workers share one file position.
When it is fine: where it is opened on first use in the worker.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.calls import last_name, written
from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import answers
from trainwreck.code.rehearsal.questions.workers import handles
from trainwreck.code.rule import guess
from trainwreck.code.scopes import Binding
from trainwreck.code.seek import dataset_classes
from trainwreck.code.surface import Surface
from trainwreck.core.evidence import Evidence

SURFACES = (r"[Cc]an(not|'t) pickle", r"h5py objects cannot be pickled", r"not picklable|self\.\w+ cannot be converted")
ERROR = "TypeError: cannot pickle '_io.BufferedReader' object"
BAD = """
from torch.utils.data import DataLoader, Dataset
class Data(Dataset):
    def __init__(self, path):
        self.names = sorted(path)
        self.file = open(path, "rb")  # expect
    def __getitem__(self, i):
        return self.file.read(i)
def main():
    for x in DataLoader(Data("x"), num_workers=2):  # fails
        pass
"""
GOOD = """
from torch.utils.data import DataLoader, Dataset
class Data(Dataset):
    def __init__(self, path):
        self.path = path
    def __getitem__(self, i):
        with open(self.path) as file:
            return file.read(i)
def main():
    for x in DataLoader(Data("x"), num_workers=2):  # fails
        pass
"""
BY_TYPE = (
    (r"_io\.|BufferedReader|TextIOWrapper", r"\bopen$|TarFile|ZipFile|memmap"),
    (r"h5py", r"File$|Dataset$"),
    (r"generator", r""),
    (r"lock|thread|socket|queue", r"Lock$|RLock$|Queue$|Thread$|Condition$|Event$|socket$|Session$|Client$|getLogger$"),
    (r"sqlite|Connection|psycopg|cursor", r"connect$|cursor$|Environment$|open$"),
    (r"module", r"import_module$"),
)
HANDLES = pattern(r"\b(open|File|connect|Lock|RLock|Queue|TarFile|ZipFile|Session|Client|SummaryWriter|memmap|socket)$")


def find(project: Project) -> Iterator[Evidence]:
    """Certain where the workers are spawned."""
    yield from answers(__name__, project, handles)


def trace(project: Project, surface: Surface) -> Iterator[Evidence]:
    wanted = next((re.compile(made) for seen, made in BY_TYPE if re.search(seen, surface.message)), HANDLES)
    generator = "generator" in surface.message
    owners = [*dataset_classes(project), *(c for c in project.classes if c not in dataset_classes(project))]
    for owner in owners:
        for bindings in owner.attributes.values():
            for binding in bindings:
                if _matches(project, binding, wanted, generator):
                    text = f"self.{binding.name} holds what can't be pickled: {written(binding.value)[:60]}"
                    yield guess(__name__, (binding.node, binding.scope), text)
                    return


def _matches(project: Project, binding: Binding, wanted: re.Pattern[str], generator: bool) -> bool:
    value = binding.value
    if generator:
        if isinstance(value, ast.GeneratorExp):
            return True
        target = project.resolve(value.func, binding.scope) if isinstance(value, ast.Call) else None
        return target is not None and bool(target.yields)
    for node in ast.walk(value) if value is not None else ():
        if isinstance(node, ast.Call) and wanted.pattern and wanted.search(last_name(node.func)):
            return True
    return False
