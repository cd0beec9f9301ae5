"""Old ways to encode text.

What: `encode_plus`, `batch_encode_plus`, `prepare_seq2seq_batch` or `as_target_tokenizer` of a tokenizer.
Why it matters: they left the tokenizers of transformers in 5.0 (some classes still carry them).
When it is fine: with transformers below 5, and on objects that are no tokenizer of transformers.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code import edits
from trainwreck.code.order import constructors
from trainwreck.code.outdated import callee, guarded
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.code.targets import aim
from trainwreck.core.evidence import Evidence
from trainwreck.core.fix import Fix

BAD = """
from transformers import AutoTokenizer
tok = AutoTokenizer.from_pretrained("bert-base-uncased")
def encode(text):
    with tok.as_target_tokenizer():  # expect
        pass
    return tok.encode_plus(text, truncation=True)  # expect
"""
GOOD = """
from transformers import AutoTokenizer
tok = AutoTokenizer.from_pretrained("bert-base-uncased")
class Codec:
    def encode_plus(self, text):
        return text
def encode(text):
    Codec().encode_plus(text)
    return tok(text, truncation=True)
"""


METHODS = {
    "encode_plus": "call the tokenizer",
    "batch_encode_plus": "call the tokenizer with the list",
    "prepare_seq2seq_batch": "call the tokenizer with text_target=",
    "as_target_tokenizer": "call the tokenizer with text_target=",
}


def find(project: Project) -> Iterator[Evidence]:
    for call in sorted(project.calls(*METHODS), key=lambda c: (c.scope.module.path, c.line)):
        if call.receiver is None or guarded(project, call.node, call.scope):
            continue
        made = [callee(project, c) for c in constructors(project, call.receiver, call.scope)]
        if not any(m is not None and m[0] == "transformers" and "Tokenizer" in m[1] for m in made):
            continue
        where = aim(project, "transformers", call.scope.module.path)
        if where is None or where.newest[0] < 0 or where.table.versions[where.newest[0]] < (5,):
            continue
        words = METHODS[call.name]
        fix = Fix(words)
        if call.name == "encode_plus" and isinstance(call.node.func, ast.Attribute):
            fix = edits.replace(call.node.func, call.scope, ast.unparse(call.receiver), words)
        yield sighting(__name__, call, f"{call.name} left the tokenizers in transformers 5.0; {words}", fix=fix)
