"""A response marker that ends in a space.

What: ``DataCollatorForCompletionOnlyLM`` with a ``response_template`` text that ends in a blank.
Why it matters: the blank joins the first word of the answer into one token, so the marker is never found and all
labels are masked.
When it is fine: with ids, or without the blank.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.facts import only, option
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.code.seek import keyword_place
from trainwreck.core.evidence import Evidence
from trainwreck.core.fix import Fix

BAD = (
    """
from trl import DataCollatorForCompletionOnlyLM
TEMPLATE = "### Answer: "
collate = DataCollatorForCompletionOnlyLM(TEMPLATE, tokenizer=tok)  # expect
""",
)
GOOD = """
from trl import DataCollatorForCompletionOnlyLM
one = DataCollatorForCompletionOnlyLM("### Answer:", tokenizer=tok)
two = DataCollatorForCompletionOnlyLM(ids, tokenizer=tok)
three = DataCollatorForCompletionOnlyLM(response_template=tok.encode("### Answer: ")[2:], tokenizer=tok)
"""


def find(project: Project) -> Iterator[Evidence]:
    for call in project.calls("DataCollatorForCompletionOnlyLM"):
        template = only(project, option(project, call, "response_template", 0))
        if isinstance(template, str) and template.endswith(" ") and template.strip():
            place = keyword_place(call, "response_template") or call
            text = f"the marker {template!r} ends in a blank, which is part of another token in context"
            yield sighting(__name__, place, text, fix=Fix("leave the blank out, or give the ids"))
