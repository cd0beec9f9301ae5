"""The program reads a key that its configuration does not have.

What: `cfg["optimizer"]["lr"]` (or `cfg.optimizer.lr` of OmegaConf) where the file that is loaded has no such key;
`cfg.get("lr", …)` where the file has it under a name that is one slip away.
Why it matters: a KeyError in the middle of the run; with `get` the default is used and what is written is not.
When it is fine: where the file is not known, several are loaded, keys are added later, or the reading is guarded.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.code.settings.accepted import close
from trainwreck.code.settings.loads import Load, Read, loads, use_of
from trainwreck.code.settings.tree import Document, node_at
from trainwreck.core.evidence import Evidence
from trainwreck.core.fix import Fix

BAD = (
    """
#--- conf.yaml
model:
  hidden: 64
optimizer:
  learning_rate: 0.001
#--- train.py
import yaml
with open("conf.yaml") as stream:
    cfg = yaml.safe_load(stream)
net = build(cfg["model"]["hidden"], cfg["model"]["layers"])  # expect
rate = cfg["optimizer"]["learning_rate"]
""",
    """
#--- conf.yaml
batch_size: 8
weight_decya: 0.1
#--- train.py
import yaml, argparse
parser = argparse.ArgumentParser()
parser.add_argument("--config", default="conf.yaml")
args = parser.parse_args()
cfg = yaml.load(open(args.config), Loader=yaml.FullLoader)
size = cfg["batch_size"]
decay = cfg.get("weight_decay", 0.0)  # expect
""",
    """
#--- conf/train.yaml
lr: 0.1
data:
  root: x
#--- train.py
from omegaconf import OmegaConf
cfg = OmegaConf.load("conf/train.yaml")
print(cfg.lr, cfg.data.root, cfg.data.workers)  # expect
""",
)
GOOD = (
    """
#--- conf.yaml
lr: 0.1
steps: 10
#--- train.py
import yaml, sys
cfg = yaml.safe_load(open("conf.yaml"))
cfg["seed"] = 3
print(cfg["seed"], cfg["lr"])
other = yaml.safe_load(open(sys.argv[1]))
print(other["anything"])
""",
    """
#--- conf.yaml
lr: 0.1
warmup: 10
#--- train.py
import yaml
cfg = yaml.safe_load(open("conf.yaml"))
if "resume" in cfg:
    load(cfg["resume"])
momentum = cfg.get("momentum", 0.9)
try:
    x = cfg["extra"]
except KeyError:
    x = None
cfg2 = yaml.safe_load(open("conf.yaml"))
defaults(cfg2)
print(cfg2["filled"])
""",
)


def find(project: Project) -> Iterator[Evidence]:
    for load in loads(project):
        if len(load.documents) != 1 or not load.exact:
            continue
        use = use_of(project, load)
        if use.whole:
            continue
        document = load.documents[0]
        wanted = {r.keys for r in use.reads}
        for read in use.reads:
            yield from _judged(read, document, load, wanted)


def _judged(read: Read, document: Document, load: Load, wanted: set[tuple[str, ...]]) -> Iterator[Evidence]:
    above = node_at(document.root, read.keys[:-1])
    if above is None or above.kind != "mapping" or document.has(*read.keys):
        return
    name = read.keys[-1]
    free = {key.name for key, _ in above.pairs if (*read.keys[:-1], key.name) not in wanted}
    meant = close(name, free)
    key = document.key(*read.keys[:-1], meant) if meant else None
    if read.optional and key is None:
        return
    shown = ".".join(read.keys)
    proof: list[tuple[str, int, str]] = [(load.call.scope.module.path, load.call.line, f"{document.path} is read")]
    if key is not None:
        proof.insert(0, (document.path, key.line, f"{meant}: …"))
    effect = "the default is used instead" if read.optional else "the run ends here"
    hint = f"; {meant!r} is meant?" if meant else ""
    text = f"{document.path} has no {shown!r}: {effect}{hint}"
    fix = Fix(f"write {name} in {document.path}, or read {meant}") if meant else None
    severity = "warning" if read.optional else None
    yield sighting(__name__, (read.node, read.scope), text, proof=proof, fix=fix, severity=severity)  # type: ignore[arg-type]
