"""All workers draw the same random numbers.

What: ``worker_init_fn`` seeds with something that is the same in every worker; or a data set makes a random generator
of its own in ``__init__`` and draws from it in ``__getitem__`` while the loader has workers; or a loop puts a
generator back to one seed before it draws the rows of each step.
Why it matters: augmentation and noise repeat across workers, and across epochs: each worker starts with a copy of the
same generator, every epoch anew.
When it is fine: with ``worker_id``, ``torch.initial_seed()`` or ``get_worker_info().seed`` in the seed; where the
generator is made in the worker; with one worker that stays alive.
Measured on torch 2.13: two workers and ten epochs replay one sequence of a private ``default_rng``.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import Call, written
from trainwreck.code.facts import made, only, option
from trainwreck.code.flow import back
from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.fixed_items import same_each_epoch
from trainwreck.code.rehearsal.questions.seeded_again import same_batch_each_turn
from trainwreck.code.rehearsal.questions.workers import copied_generator, made_in_worker
from trainwreck.code.rule import sighting
from trainwreck.code.scopes import Binding, Scope
from trainwreck.code.seek import LOADERS
from trainwreck.code.values import values
from trainwreck.core.evidence import Evidence

BAD = (
    """
import numpy as np
from torch.utils.data import DataLoader
def seed_worker(worker_id):
    np.random.seed(1234)  # expect
loader = DataLoader([1], num_workers=2, worker_init_fn=seed_worker)
""",
    """
import numpy as np
from torch.utils.data import DataLoader, Dataset
class Noisy(Dataset):
    def __init__(self, x, seed):
        self.x = x
        self.rng = np.random.default_rng(seed)
    def __getitem__(self, i):
        return self.x[i] + self.rng.normal(size=4)  # expect
loader = DataLoader(Noisy([1], 0), num_workers=4)
""",
    """
import random
from torch.utils.data import DataLoader, Dataset
class Pairs(Dataset):
    def __init__(self, rows):
        self.rows = rows
        self.random = random.Random(13)
    def _negative(self):
        return self.random.choice(self.rows)  # expect
    def __getitem__(self, i):
        return self.rows[i], self._negative()
def main(args, rows):
    train = Pairs(rows)
    return DataLoader(train, batch_size=8, num_workers=8, persistent_workers=True)
""",
    """
import torch
from torch.utils.data import DataLoader, Dataset
class Crops(Dataset):
    def __init__(self, images):
        self.images = images
        g = torch.Generator().manual_seed(0)
        self.gen = g
    def __getitem__(self, i):
        top = torch.randint(0, 8, (1,), generator=self.gen)  # expect
        return self.images[i][:, int(top):]
options = dict(batch_size=4, num_workers=2)
loader = DataLoader(Crops([1]), **options)
""",
    """
import numpy as np
from torch.utils.data import DataLoader, Dataset, get_worker_info
SEED = 7
class Late(Dataset):
    def __init__(self, x):
        self.x, self.gen = x, None
    def _make(self):
        info = get_worker_info()
        return np.random.default_rng(SEED)
    def __getitem__(self, i):
        if self.gen is None:
            self.gen = self._make()
        return self.x[i] + self.gen.normal()  # expect
loader = DataLoader(Late([1]), num_workers=2)
""",
    """
import numpy as np
from torch.utils.data import DataLoader, Dataset
class Dots(Dataset):
    def __init__(self, seed):
        self.seed = seed
    def __len__(self):
        return 500
    def __getitem__(self, k):
        rng = np.random.default_rng(self.seed)  # expect
        return rng.random((8, 8)), float(rng.integers(5))
loader = DataLoader(Dots(3), batch_size=20)
""",
)
GOOD = (
    """
import numpy as np, torch
from torch.utils.data import DataLoader
def seed_worker(worker_id):
    np.random.seed(1234 + worker_id)
def other(worker_id):
    seed = torch.initial_seed() % 2**32
    np.random.seed(seed)
loader = DataLoader([1], num_workers=2, worker_init_fn=seed_worker)
second = DataLoader([1], num_workers=2, worker_init_fn=other)
""",
    """
import numpy as np, torch
from torch.utils.data import DataLoader, Dataset, get_worker_info
class Lazy(Dataset):
    def __init__(self, x):
        self.x, self.rng = x, None
    def __getitem__(self, i):
        if self.rng is None:
            self.rng = np.random.default_rng(get_worker_info().seed)
        return self.x[i] + self.rng.normal()
class Fresh(Dataset):
    def __init__(self, x):
        self.x = x
    def _make(self):
        info = get_worker_info()
        return np.random.default_rng(7 if info is None else info.seed)
    def __getitem__(self, i):
        if not hasattr(self, "gen"):
            self.gen = self._make()
        if not hasattr(self, "noise"):
            self.noise = np.random.default_rng()
        return self.x[i] + self.gen.normal() + self.noise.normal()
class Seeded(Dataset):
    def __init__(self, x):
        self.x, self.rng = x, np.random.default_rng(0)
    def reseed(self, seed):
        self.rng = np.random.default_rng(seed)
    def __getitem__(self, i):
        return self.x[i] + self.rng.normal()
def start(worker_id):
    info = get_worker_info()
    info.dataset.reseed(info.seed)
class Fixed(Dataset):
    def __init__(self, n):
        self.rng = np.random.default_rng(0)
        self.x = self.rng.normal(size=n)
    def __getitem__(self, i):
        return self.x[i]
class Once(Dataset):
    def __init__(self, x):
        self.x, self.rng = x, np.random.default_rng(0)
    def __getitem__(self, i):
        return self.x[i] + self.rng.normal()
class ByIndex(Dataset):
    def __init__(self, x):
        self.x, self.rng = x, np.random.RandomState(0)
    def __getitem__(self, i):
        self.rng.seed(i)
        return self.x[i] + self.rng.normal()
loaders = [
    DataLoader(Lazy([1]), num_workers=2),
    DataLoader(Fresh([1]), num_workers=2),
    DataLoader(Seeded([1]), num_workers=2, worker_init_fn=start),
    DataLoader(Fixed(3), num_workers=2),
    DataLoader(Once([1]), num_workers=0),
    DataLoader(Once([1])),
    DataLoader(ByIndex([1]), num_workers=4),
]
""",
)
DIFFERS = pattern(r"initial_seed|\.seed\b(?!\()|\.id\b|getpid|time\(|urandom|SeedSequence|rank")
GENERATORS = frozenset(["default_rng", "RandomState", "Random", "Generator"])
OF_WORKER = pattern(r"get_worker_info|initial_seed|worker_id")


def find(project: Project) -> Iterator[Evidence]:
    yield from further(
        __name__, project, _seen(project), copied_generator, made_in_worker, same_batch_each_turn, same_each_epoch
    )


def _seen(project: Project) -> Iterator[Evidence]:
    told: set[int] = set()
    for loader in project.calls(*LOADERS):
        value = loader.argument("worker_init_fn")
        function = project.resolve(value, loader.scope) if value is not None else None
        if function is None or not function.positional or id(function) in told:
            continue
        told.add(id(function))
        seeds = [
            c for c in project.calls("seed", "manual_seed", "seed_everything") if c.scope is function and c.node.args
        ]
        if seeds and not any(_differs(project, c, function) for c in seeds):
            yield sighting(__name__, seeds[0], "the seed is the same in every worker", proof=[loader])
    yield from _private(project)
    yield from _each_alike(project)


def _each_alike(project: Project) -> Iterator[Evidence]:
    """A generator that ``__getitem__`` makes from one seed for all numbers of samples: each is drawn alike."""
    for scope in project.functions:
        if scope.name != "__getitem__" or scope.owner is None or len(scope.params) != 2:
            continue
        for call in project.calls_by_scope.get(scope, ()):
            given = [*call.node.args, *(k.value for k in call.node.keywords)]
            if call.name not in MADE or len(given) != 1:
                continue
            behind = {n for step in back(project, given[0], scope) for n in _names(step.node)} | _names(given[0])
            calls = any(isinstance(n, ast.Call) for step in back(project, given[0], scope) for n in ast.walk(step.node))
            seeds = [n for n in ast.walk(given[0]) if isinstance(n, ast.Attribute | ast.Name | ast.Constant)]
            constant = isinstance(given[0], ast.Constant | ast.Attribute | ast.Name) and bool(seeds) and not calls
            if constant and scope.params[1] not in behind and not _set_later(project, scope.owner, given[0]):
                text = "every sample is drawn from a generator that starts at one and the same seed"
                yield sighting(__name__, call, text)
                break


def _names(node: ast.AST) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}


def _set_later(project: Project, owner: Scope, seed: ast.expr) -> bool:
    """True for an attribute that something beside ``__init__`` sets: it may differ from sample to sample."""
    if not isinstance(seed, ast.Attribute):
        return not isinstance(seed, ast.Constant)
    stores = (
        n
        for walked in project.walked.values()
        for s in walked.scopes
        for n in s.nodes
        if isinstance(n, ast.Attribute) and n.attr == seed.attr and isinstance(n.ctx, ast.Store)
    )
    init = owner.method("__init__")
    inside = {id(n) for n in ast.walk(init.node)} if init is not None else set()
    return any(id(n) not in inside for n in stores)


MADE = frozenset(["default_rng", "RandomState"])
"""What makes a generator of its own from a seed."""


def _differs(project: Project, call: Call, function: Scope) -> bool:
    for step in back(project, call.node.args[0], call.scope):
        text = written(step.node)
        if DIFFERS.search(text) or (isinstance(step.node, ast.Name) and step.node.id == function.positional[0]):
            return True
    return False


def _private(project: Project) -> Iterator[Evidence]:
    """Data sets with a generator of their own, behind a loader that has workers."""
    told: set[int] = set()
    for loader in project.calls(*LOADERS):
        data = loader.argument("dataset", 0)
        owner = project.class_of(data, loader.scope) if data is not None else None
        if owner is None or id(owner) in told or not _workers(project, loader) or _reseeds(project, loader):
            continue
        for name in dict.fromkeys(n for c in project.bases(owner) for n in c.attributes):
            bindings = project.attribute(owner, name)
            late = _late(project, bindings)
            born = late or _generator(project, bindings)
            drawn = _drawn(project, owner, name, late is not None) if born is not None else None
            if born is not None and drawn is not None:
                told.add(id(owner))
                text = (
                    f"every worker draws here from its own copy of self.{name}, which starts alike in each, every epoch"
                )
                if only(project, option(project, loader, "persistent_workers")) is True:
                    text = f"every worker draws here from its own copy of self.{name}, and the copies are alike"
                path = born.scope.module.path
                yield sighting(__name__, drawn, text, proof=[(path, born.line, written(born.node)[:80]), loader])
                break


def _workers(project: Project, loader: Call) -> bool:
    """True if the loader is known to have workers; a default on the command line counts."""
    at = option(project, loader, "num_workers", 5)
    counts = [k.value for k in values(project, *at)] if at is not None else []
    if not counts or not all(isinstance(n, int) and n > 0 for n in counts):
        return False
    return not (counts == [1] and only(project, option(project, loader, "persistent_workers")) is True)


def _reseeds(project: Project, loader: Call) -> bool:
    """True if the ``worker_init_fn`` reaches the data set, or can't be read."""
    at = option(project, loader, "worker_init_fn")
    if at is None:
        return False
    function = project.resolve(*at)
    if function is None:
        return not (isinstance(at[0], ast.Constant) and at[0].value is None)
    return any(isinstance(n, ast.Attribute) and n.attr == "dataset" for n in ast.walk(function.node))


def _generator(project: Project, bindings: list[Binding]) -> Binding | None:
    """The one binding, in ``__init__``, that makes a generator which is the same in every worker."""
    if len(bindings) != 1 or bindings[0].scope.name != "__init__" or bindings[0].value is None:
        return None
    binding, value = bindings[0], bindings[0].value
    if isinstance(value, ast.Tuple) and len(binding.path) == 1 and isinstance(binding.path[0], int):
        value = value.elts[binding.path[0]]
    elif binding.path or isinstance(value, ast.Tuple):
        return None
    while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr == "manual_seed":
        value = value.func.value
    for call in made(project, value, binding.scope):
        inner = call
        if call.name == "manual_seed" and isinstance(call.receiver, ast.Call):
            inner = Call(call.receiver, call.scope)
        text = " ".join(written(a) for a in (*inner.node.args, *(k.value for k in inner.node.keywords)))
        if inner.name in GENERATORS and project.called(inner).split(".")[0] in ("numpy", "random", "torch"):
            return None if DIFFERS.search(text) else binding
    return None


def _late(project: Project, bindings: list[Binding]) -> Binding | None:
    """The binding that makes a generator in the worker, at the first item, of a seed that is a constant."""
    made_in = [b for b in bindings if not (isinstance(b.value, ast.Constant) and b.value.value is None)]
    made_in = [b for b in made_in if not (b.scope.name == "__init__" and isinstance(b.value, ast.Tuple) and b.path)]
    if len(made_in) != 1 or made_in[0].scope.name in ("__init__", "__iter__") or made_in[0].value is None:
        return None
    binding = made_in[0]
    if binding.path or not isinstance(binding.value, ast.Call):
        return None
    if not any(isinstance(a, ast.If) for a in project.ancestors(binding.value, binding.scope)):
        return None
    calls = [c for c in made(project, binding.value, binding.scope) if project.resolve(c.node.func, c.scope) is None]
    for call in calls:
        if call.name not in GENERATORS or project.called(call).split(".")[0] not in ("numpy", "random"):
            return None
        seed = call.node.args[0] if len(call.node.args) == 1 and not call.node.keywords else None
        number = only(project, (seed, call.scope)) if seed is not None else None
        if not isinstance(number, int) or not isinstance(seed, ast.Constant | ast.Name):
            return None
        if any(OF_WORKER.search(written(step.node)) for step in back(project, seed, call.scope)):
            return None
    return binding if calls else None


def _drawn(project: Project, owner: Scope, name: str, fixed: bool = False) -> Call | None:
    """The first draw from ``self.<name>`` on the way to an item; None if it is seeded there per item or worker."""
    todo = [m for n in ("__getitem__", "__getitems__", "__iter__") if (m := project.find_method(owner, n)) is not None]
    seen: set[int] = set()
    found: Call | None = None
    while todo:
        method = todo.pop(0)
        if id(method) in seen:
            continue
        seen.add(id(method))
        if not fixed and OF_WORKER.search(written(method.node)):
            return None
        for call in project.calls_by_scope.get(method, ()):
            own = f"self.{name}"
            if call.receiver is not None and written(call.receiver) == own:
                if call.name in ("seed", "manual_seed", "set_state", "setstate", "jumped", "spawn"):
                    return None
                found = found or call
            elif any(written(k.value) == own for k in call.node.keywords if k.arg in ("generator", "rng")):
                found = found or call
            target = project.resolve(call.node.func, call.scope)
            if target is not None and target.kind == "function" and target.owner is not None:
                todo.append(target)
    return found
