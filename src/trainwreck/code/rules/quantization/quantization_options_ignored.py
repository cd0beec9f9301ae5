"""Options for 4 bits, and no 4 bits.

What: ``bnb_4bit_quant_type`` without ``load_in_4bit=True``.
Why it matters: the model is loaded in 8 bits, or not quantised at all.
When it is fine: with ``load_in_4bit=True``.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.arguments import contradicted
from trainwreck.code.project import Project
from trainwreck.core.evidence import Evidence

BAD = (
    """
from transformers import BitsAndBytesConfig
config = BitsAndBytesConfig(bnb_4bit_quant_type="nf4")  # expect
""",
    """
from transformers import BitsAndBytesConfig
config = BitsAndBytesConfig(
    load_in_8bit=True,
    bnb_4bit_quant_type="nf4",  # expect
)
""",
)
GOOD = """
from transformers import BitsAndBytesConfig
four = BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4")
read = BitsAndBytesConfig(load_in_4bit=args.four, bnb_4bit_quant_type="nf4")
eight = BitsAndBytesConfig(load_in_8bit=True)
"""


def find(project: Project) -> Iterator[Evidence]:
    yield from contradicted(project, __name__)
