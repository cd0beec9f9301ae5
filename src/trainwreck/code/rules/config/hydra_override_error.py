"""An override or a default of Hydra that names something that is not there.

What: `python train.py optimiser.lr=1e-3` where the composed configuration has no such key (and no `+` adds it); a group
without such a choice, on the command line or in a defaults list.
Why it matters: Hydra ends the program before it starts.
When it is fine: `+key=…`, keys of a schema in a ConfigStore, configurations that are not among the files.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.project import Project
from trainwreck.code.settings.accepted import close
from trainwreck.code.settings.hydra import Composed, Main, Override, compose, is_group, mains, overrides
from trainwreck.code.settings.index import of
from trainwreck.code.settings.launch import Launch
from trainwreck.code.settings.told import told
from trainwreck.code.settings.tree import Place
from trainwreck.core.evidence import Evidence

BAD = (
    """
#--- conf/config.yaml
defaults:
  - optimizer: adam
  - _self_
trainer:
  epochs: 3
seed: 1
#--- conf/optimizer/adam.yaml
lr: 0.001
#--- train.py
import hydra
@hydra.main(version_base=None, config_path="conf", config_name="config")
def main(cfg):
    print(cfg.trainer.epochs)
main()
#--- run.sh
python train.py trainer.epochs=5 optimizer.lr=0.1 +new.key=3
python train.py trainer.epoch=5  # expect
python train.py optimizer=sgd  # expect
python train.py sed=3 seed=3  # expect
""",
    """
#--- conf/config.yaml
defaults:
  - model: resnet  # expect
  - _self_
seed: 1
#--- conf/model/vit.yaml
depth: 12
#--- main.py
import hydra
@hydra.main(config_path="conf", config_name="config")
def main(cfg):
    pass
""",
)
GOOD = """
#--- conf/config.yaml
defaults:
  - _self_
  - model: vit
  - optional local: default
  - override hydra/job_logging: disabled
seed: 1
free: {}
#--- conf/model/vit.yaml
# @package _global_
net:
  depth: 12
#--- conf/model/resnet.yaml
# @package _global_
net:
  layers: 18
#--- train.py
import hydra
@hydra.main(version_base=None, config_path="conf", config_name="config")
def main(cfg):
    pass
#--- run.sh
python train.py net.depth=6 seed=3 hydra.run.dir=x ++any.thing=1 ~seed
python train.py model=resnet net.layers=34
python train.py -m seed=1,2,3 model=vit,resnet
python train.py --config-name other anything=1
python train.py $OVERRIDES
"""


def find(project: Project) -> Iterator[Evidence]:
    settings = of(project)
    for main in mains(project):
        path = main.scope.module.path
        plain = compose(project, main)
        for place, name in plain.missing if plain is not None else ():
            text = f"the defaults list names {name}.yaml, which is not among the configurations"
            yield told(__name__, place, text, severity="critical")
        for launch in settings.launches:
            if settings.script_of(launch) == path:
                yield from _launched(project, main, launch)


def _launched(project: Project, main: Main, launch: Launch) -> Iterator[Evidence]:
    given = {a.text.partition("=")[0] for a in launch.args}
    if given & {"--config-name", "-cn", "--config-path", "-cp", "--config-dir", "-cd", "--experimental-rerun"}:
        return
    words = list(overrides([(a.text, a.place) for a in launch.args if a.known]))
    groups = [o for o in words if is_group(project, main, o.key.partition("@")[0])]
    choices = [o for o in groups if o.value and "," not in o.value]
    composed = compose(project, main, choices)
    if composed is None:
        return
    for item in words:
        if item in groups or item.key.startswith("hydra"):
            yield from _choice(item, composed) if item in choices else ()
        elif item.sign in ("", "~"):
            yield from _key(item, composed, main, bool(set(groups) - set(choices)))


def _choice(item: Override, composed: Composed) -> Iterator[Evidence]:
    missing = f"{item.key.partition('@')[0]}/{item.value}"
    if any(name == missing for _, name in composed.missing):
        yield told(__name__, item.place, f"there is no {missing}.yaml for {item.key}={item.value}", key=item.key)


def _key(item: Override, composed: Composed, main: Main, several: bool) -> Iterator[Evidence]:
    keys = tuple(item.key.replace("/", ".").split("."))
    if not composed.complete or several or keys in composed.keys:
        return
    known = {".".join(k) for k in composed.keys}
    parent = keys[:-1]
    while parent and parent not in composed.keys:
        parent = parent[:-1]
    value = composed.values.get(parent) if parent else None
    if value is not None and "${" in value.text:
        return  # the section comes from elsewhere
    if any(s.text.startswith("${") and not k[len(parent) :] for k, s in composed.values.items() if k == parent):
        return
    meant = close(item.key, frozenset(known), 0.8)
    hint = f"; {meant} is meant?" if meant else "; + adds a new key"
    place = Place(item.place.path, item.place.line, item.place.column, item.place.column + len(item.sign + item.key),
                  item.place.cell)  # fmt: skip
    proof = [(main.scope.module.path, main.node.lineno, f"config_name={main.name!r}")]
    yield told(__name__, place, f"the configuration has no key {item.key}: Hydra ends the program{hint}", proof=proof,
               fix=f"write {meant}" if meant else None, key=item.key)  # fmt: skip
