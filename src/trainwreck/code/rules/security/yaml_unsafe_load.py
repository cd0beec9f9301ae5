"""YAML is loaded with tags that build any object.

What: ``yaml.load(text)`` without a loader (an error since PyYAML 6), with ``Loader``, ``UnsafeLoader`` or
``FullLoader`` of an old release, or ``yaml.unsafe_load``.
Why it matters: a configuration file can run code; without a loader the call raises.
When it is fine: ``yaml.safe_load``, ``SafeLoader``, ``FullLoader``.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.calls import written
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.core.evidence import Evidence

BAD = (
    """
import yaml
config = yaml.load(open("config.yaml"))  # expect
""",
    """
import yaml
def read(path):
    with open(path) as f:
        return yaml.load(f, Loader=yaml.UnsafeLoader)  # expect
""",
    """
from yaml import unsafe_load
settings = unsafe_load(open("a.yml"))  # expect
""",
    """
import yaml
settings = yaml.load(open("a.yml"), yaml.Loader)  # expect
""",
)
GOOD = """
import yaml
from ruamel.yaml import YAML
a = yaml.safe_load(open("a.yml"))
b = yaml.load(open("a.yml"), Loader=yaml.SafeLoader)
c = yaml.load(open("a.yml"), yaml.FullLoader)
d = YAML(typ="safe").load(open("a.yml"))
e = yaml.load(open("a.yml"), Loader=get_loader())
"""
UNSAFE = ("Loader", "UnsafeLoader", "CLoader")


def find(project: Project) -> Iterator[Evidence]:
    for call in project.calls("load", "load_all", "unsafe_load", "unsafe_load_all"):
        full = project.called(call)
        if not full.startswith("yaml.") or any(k.arg is None for k in call.node.keywords):
            continue
        loader = call.argument("Loader", 1)
        if full.startswith("yaml.unsafe_"):
            yield sighting(__name__, call, "tags in this YAML may build any object, and run code")
        elif loader is None:
            text = "yaml.load without a loader raises since PyYAML 6, and ran code from the file before"
            yield sighting(__name__, call, text)
        elif written(loader).rsplit(".", 1)[-1] in UNSAFE:
            yield sighting(__name__, call, "tags in this YAML may build any object, and run code")
