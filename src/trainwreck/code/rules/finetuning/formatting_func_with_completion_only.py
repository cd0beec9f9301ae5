"""A formatting function together with a loss on completions only.

What: ``SFTTrainer(formatting_func=...)`` with ``completion_only_loss=True``.
Why it matters: the function turns prompt and completion into one text, so nothing marks the completion; TRL raises.
When it is fine: with one of them.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.arguments import imported
from trainwreck.code.facts import only, option
from trainwreck.code.huggingface import arguments_call
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.code.seek import keyword_place
from trainwreck.core.evidence import Evidence

BAD = (
    """
from trl import SFTConfig, SFTTrainer
args = SFTConfig(output_dir="o", completion_only_loss=True)
SFTTrainer("m", args=args, train_dataset=data, formatting_func=join).train()  # expect
""",
)
GOOD = """
from trl import SFTConfig, SFTTrainer
args = SFTConfig(output_dir="o", completion_only_loss=True)
SFTTrainer("m", args=args, train_dataset=data)
SFTTrainer("m", args=SFTConfig(output_dir="o"), train_dataset=data, formatting_func=join)
SFTTrainer("m", args=args, train_dataset=data, formatting_func=None)
"""


def find(project: Project) -> Iterator[Evidence]:
    for call in project.calls("SFTTrainer"):
        given, args = option(project, call, "formatting_func"), arguments_call(project, call)
        if given is None or args is None or not imported(project, call, "transformers"):
            continue
        named = getattr(given[0], "value", ...) is not None
        if named and only(project, option(project, args, "completion_only_loss")) is True:
            place = keyword_place(call, "formatting_func") or call
            text = "a formatting function makes one text of prompt and completion; completion_only_loss can't be kept"
            yield sighting(__name__, place, text, proof=[args])
