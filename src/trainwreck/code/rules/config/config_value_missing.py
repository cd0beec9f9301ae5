"""A mandatory value of a configuration is never given.

What: `key: ???` in a configuration that Hydra composes, where the command that starts the program does not set it.
Why it matters: OmegaConf raises MissingMandatoryValue when the key is read.
When it is fine: where the value is given from outside (`"$@"`), by a file that is not here, or the key is not read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainwreck.code.project import Project
from trainwreck.code.settings.hydra import compose, mains, overrides
from trainwreck.code.settings.index import of
from trainwreck.code.settings.told import told
from trainwreck.core.evidence import Evidence

BAD = """
#--- conf/config.yaml
data:
  root: ???
seed: 1
#--- train.py
import hydra
@hydra.main(version_base=None, config_path="conf", config_name="config")
def main(cfg):
    load(cfg.data.root)
main()
#--- run.sh
python train.py data.root=/data
python train.py seed=2  # expect
"""
GOOD = """
#--- conf/config.yaml
data:
  root: ???
unused:
  thing: ???
seed: 1
#--- train.py
import hydra
@hydra.main(version_base=None, config_path="conf", config_name="config")
def main(cfg):
    load(cfg.data.root)
main()
#--- run.sh
python train.py data.root=$ROOT
python train.py "$@"
python train.py --cfg job
"""


def find(project: Project) -> Iterator[Evidence]:
    settings = of(project)
    for main in mains(project):
        for launch in settings.launches:
            if settings.script_of(launch) != main.scope.module.path or any(not a.known for a in launch.args):
                continue
            if any(a.text.startswith("-") for a in launch.args):
                continue
            words = list(overrides([(a.text, a.place) for a in launch.args]))
            composed = compose(project, main, words)
            if composed is None or not composed.complete:
                continue
            given = {o.key for o in words}
            missing = [
                (keys, s)
                for keys, s in composed.values.items()
                if s.text == "???" and not any(".".join(keys[:n]) in given for n in range(1, len(keys) + 1))
                and _read(main.scope.module.text, keys)
            ]  # fmt: skip
            if missing:
                names = ", ".join(".".join(keys) for keys, _ in missing)
                proof = [s for _, s in missing]
                text = f"{names} must be given (???), but this command does not: the program ends when it is read"
                yield told(__name__, launch.place, text, proof=proof, severity="critical")


def _read(text: str, keys: tuple[str, ...]) -> bool:
    return bool(re.search(r"\." + r"\.".join(map(re.escape, keys[-2:])) + r"\b", text))
