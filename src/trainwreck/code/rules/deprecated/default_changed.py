"""A default that is another one in the releases meant.

What: an argument is left out whose default changed between releases that the project allows, or in code that
was plainly written for older ones.
Why it matters: nothing crashes: the run trains with another value than before.
When it is fine: where the argument is given, or where nothing speaks for an older release.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from trainwreck.catalogue import releases
from trainwreck.catalogue.releases import Bracket, History
from trainwreck.code.calls import Call
from trainwreck.code.outdated import callee, mismatches
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.code.targets import Aim, aim
from trainwreck.core.evidence import Evidence
from trainwreck.core.fix import Fix

BAD = """
from transformers import TrainingArguments
from trl import SFTConfig, GRPOConfig
import wandb
wandb.init(project="x")
args = TrainingArguments(output_dir="o", evaluation_strategy="epoch")  # expect
"""
GOOD = """
from transformers import TrainingArguments
from trl import SFTConfig, GRPOConfig
import wandb
wandb.init(project="x")
args = TrainingArguments(output_dir="o", report_to="wandb")
tune = SFTConfig(output_dir="o")
play = GRPOConfig(output_dir="o", beta=0.0)
"""


WATCHED: Mapping[tuple[str, str], Mapping[str, str]] = {
    ("transformers", "TrainingArguments"): {"report_to": "nothing is logged to trackers unless it is given"},
    ("transformers", "Seq2SeqTrainingArguments"): {"report_to": "nothing is logged to trackers unless it is given"},
    ("trl", "SFTConfig"): {"max_length": "longer samples are cut", "report_to": "nothing is logged to trackers"},
    ("trl", "DPOConfig"): {"report_to": "nothing is logged to trackers unless it is given"},
    ("trl", "GRPOConfig"): {
        "beta": "no KL penalty and no reference model",
        "loss_type": "the loss is averaged in another way",
        "scale_rewards": "rewards are scaled in another way",
        "report_to": "nothing is logged to trackers unless it is given",
    },
}
"""Defaults whose change alters what is trained or recorded (release notes of transformers 5 and TRL; the tables)."""


def find(project: Project) -> Iterator[Evidence]:
    for call in project.calls("TrainingArguments", "Seq2SeqTrainingArguments", "SFTConfig", "DPOConfig", "GRPOConfig"):
        found = callee(project, call)
        if found is None or found not in WATCHED or call.open_ended:
            continue
        given = {k.arg for k in call.node.keywords}
        for name, effect in WATCHED[found].items():
            if name in given or (name == "max_length" and "max_seq_length" in given):
                continue
            text = _changed(project, call, found, name)
            if text:
                yield sighting(__name__, call, f"{text}: {effect}", fix=Fix(f"say {name}= explicitly"))
                break


def _changed(project: Project, call: Call, found: tuple[str, str], name: str) -> str:
    path = call.scope.module.path
    history = _history(*found, name)
    where = aim(project, history.table.package, path) if history is not None else None
    if history is None or where is None:
        return ""
    old, new = _oldest(project, call, where, history), history.default(where.newest)
    if old is None or new is None or old == new:
        return ""
    changed = next((r for r in history.ranges if r[2] == new), None)
    since = releases.minor(where.table.releases[changed[0]]) if changed else ""
    return f"the default of {name} is {new} since {where.table.package} {since}, it was {old}"


def _oldest(project: Project, call: Call, where: Aim, history: History) -> str | None:
    """The default in the oldest release that the code seems to be for: of the pin, else the last with an argument that
    the same call or file still uses."""
    if where.pin is not None:
        return history.default(where.allowed[0]) if len(where.allowed) > 1 and where.pin.rank else None
    path = call.scope.module.path
    for item in mismatches(project):
        same = item.scope.module.path == path and item.history is not None and item.state == "gone"
        if same and item.history is not None and item.history.table is where.table:
            last: int = item.history.ranges[-1][1]
            at: Bracket = (last, last)
            return history.default(at)
    return None


def _history(package: str, owner: str, name: str) -> History | None:
    for home_name, holder in ((package, owner), ("transformers", "TrainingArguments")):
        home = releases.table(home_name)
        row = home.signature(holder) if home is not None else None
        if home is not None and row is not None and row["parameters"].get(name):
            return History(home, holder, row["parameters"][name])
    return None
