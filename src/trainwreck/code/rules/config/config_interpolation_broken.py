"""An interpolation that leads nowhere.

What: `${model.width}` in a YAML file that OmegaConf or Hydra reads, where no `model.width` exists in it (for Hydra: in
the whole composed configuration).
Why it matters: InterpolationKeyError when the value is read.
When it is fine: resolvers (`${oc.env:…}`), relative ones (`${..x}`), `${hydra:…}`, and files that are only a part.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.settings.accepted import close
from trainwreck.code.settings.hydra import compose, mains
from trainwreck.code.settings.loads import loads
from trainwreck.code.settings.told import told
from trainwreck.code.settings.tree import Setting
from trainwreck.core.evidence import Evidence

BAD = (
    """
#--- conf/config.yaml
defaults:
  - model: small
  - _self_
head:
  width: ${model.widht}  # expect
  depth: ${model.depth}
#--- conf/model/small.yaml
width: 8
depth: 2
#--- train.py
import hydra
@hydra.main(version_base=None, config_path="conf", config_name="config")
def main(cfg):
    print(cfg.head.width)
""",
    """
#--- c.yaml
lr: 0.1
opt:
  rate: ${learning_rate}  # expect
  name: run_${lr}_${oc.env:USER}
#--- t.py
from omegaconf import OmegaConf
cfg = OmegaConf.load("c.yaml")
print(cfg.opt.rate)
""",
)
GOOD = """
#--- c.yaml
lr: 0.1
list: [1, 2]
opt:
  rate: ${lr}
  near: ${.rate}
  first: ${list.0}
  bracket: ${list[0]}
  env: ${oc.env:HOME}
  text: \\${not_one}
#--- t.py
from omegaconf import OmegaConf
cfg = OmegaConf.load("c.yaml")
print(cfg.opt.rate)
#--- part.yaml
x: ${from.elsewhere}
#--- m.py
from omegaconf import OmegaConf
cfg = OmegaConf.merge(OmegaConf.load("part.yaml"), OmegaConf.from_cli())
"""
_INTERPOLATION = pattern(r"(?<!\\)\$\{([A-Za-z_][\w.]*(?:\[\w+\])*)\}")


def find(project: Project) -> Iterator[Evidence]:
    for main in mains(project):
        composed = compose(project, main)
        if composed is not None and composed.complete:
            yield from _broken(composed.values, {".".join(k) for k in composed.keys})
    for load in loads(project):
        if load.library != "omegaconf" or len(load.documents) != 1 or not load.exact:
            continue
        document = load.documents[0]
        text = load.call.scope.module.text
        if re.search(r"\bmerge\(|from_cli|from_dotlist|OmegaConf\.update|open_dict|unsafe_merge", text):
            continue
        names = {".".join(keys[:n]) for keys in document.settings for n in range(1, len(keys) + 1)}
        yield from _broken(document.settings, names)


def _broken(values: Mapping[tuple[str, ...], Setting], names: set[str]) -> Iterator[Evidence]:
    for setting in values.values():
        for found in _INTERPOLATION.finditer(setting.text) if "${" in setting.text else ():
            name = re.sub(r"\[(\w+)\]", r".\1", found[1])
            if name in names or any(n.startswith(name + ".") for n in names) or name.startswith("hydra"):
                continue
            meant = close(name, frozenset(names), 0.8)
            hint = f"; ${{{meant}}} is meant?" if meant else ""
            text = f"${{{found[1]}}} leads to nothing in this configuration{hint}"
            yield told(__name__, setting, text, fix=f"write ${{{meant}}}" if meant else None)
            break
