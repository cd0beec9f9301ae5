"""Numbers of tokens, and the whole numbers that they are stored as: is there room for all of them?"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import last_name
from trainwreck.code.pattern import pattern
from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import NUMBERED, NUMBERING, External, Items, Node, Place, Table, Value
from trainwreck.code.rehearsal.graph import ancestors, near
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.counts import length
from trainwreck.code.rehearsal.questions.places import named
from trainwreck.code.rehearsal.questions.roles import STRUCTURE, bounds

ROOM = {"uint8": 256, "int8": 128, "uint16": 65536, "int16": 32768, "short": 32768, "byte": 256, "ubyte": 256}
"""How many numbers from 0 on a type holds."""
SHORT = {"u1": "uint8", "B": "uint8", "i1": "int8", "b": "int8", "u2": "uint16", "H": "uint16", "i2": "int16",
         "h": "int16"}  # fmt: skip
"""What numpy and ``array`` call them too."""
METHODS = {"byte": "uint8", "char": "int8", "short": "int16"}
"""Methods of torch's tensors."""
CASTS = frozenset(
    """astype to type array asarray tensor as_tensor fromiter new_tensor zeros empty full memmap open_memmap
    ByteTensor CharTensor ShortTensor""".split()
)
MADE = frozenset(["zeros", "empty", "full", "memmap", "open_memmap"])
"""Arrays that numbers are written into afterwards."""
PASSES = frozenset(
    """array asarray concatenate hstack stack cat fromiter astype copy setitem batch chain list from_iterable
    pad_sequence int long either sorted""".split()
)
CUT_OFF = frozenset(["mod", "remainder", "minimum", "clip", "clamp"])
LOOKS_UP = frozenset(["embedding", "embeddingbag", "embedding_bag"])
READS = frozenset(["memmap", "fromfile", "load"])
DRAWN = frozenset(["randint", "integers", "choice", "randrange"])
ENCODES = frozenset(["encode", "encode_ordinary", "encode_batch", "encode_ordinary_batch", "call", "batch_encode_plus"])
LEARNT = frozenset(["train_new_from_iterator", "train_from_iterator", "train"])
"""What gives a tokenizer a vocabulary of its own."""
TOKENIZERS = frozenset(["get_encoding", "encoding_for_model", "from_pretrained"])
SIZES = (
    (r"^(gpt2|r50k_base|p50k_base|distilgpt2|openai-community/gpt2)|(^|/)gpt2|pythia|gpt-neo", 50_257),
    (r"^(cl100k_base|gpt-4$|gpt-3\.5)", 100_277),
    (r"^(o200k_base|gpt-4o)", 200_019),
    (r"[Ll]lama-3", 128_256),
    (r"Qwen", 151_643),
    (r"gemma", 256_000),
    (r"bloom|mt5|xlm-r", 250_000),
)
"""How many tokens well-known tokenizers have, at least, by their name."""
KNOWN = tuple((pattern(name), size) for name, size in SIZES)
DEEP = 40


def overflows(run: Rehearsing) -> Iterator[Answer]:
    """Numbers of tokens that are stored as a type which holds fewer of them."""
    told: set[int] = set()
    for node in run.nodes:
        name, given = _narrowed(node)
        if not name or node.place is None or id(node.place[0]) in told:
            continue
        size, what, source = _many(run, given, node)
        if size > ROOM[name]:
            told.add(id(node.place[0]))
            text = f"{what} {size:,} numbers, and {name} holds {ROOM[name]:,}: those above are cut to other tokens"
            chosen = _chosen_at(run, node.place, name)
            proof = (source.place if source is not None else None, node.place if chosen is not None else None)
            yield Answer(chosen or node.place, text, tuple(p for p in proof if p is not None))


def _chosen_at(run: Rehearsing, place: Place, name: str) -> Place | None:
    """Where the type is written, if the call takes it from a name that is bound to it in one place."""
    call = place[0]
    given = [*call.args, *(k.value for k in call.keywords)] if isinstance(call, ast.Call) else []
    wanted = {last_name(g) for g in given if isinstance(g, ast.Name | ast.Attribute)}
    found: dict[int, Place] = {}
    for walked in run.project.walked.values() if name not in wanted else ():
        for scope in walked.scopes:
            for written_at in scope.nodes:
                for bound, value in named(written_at):
                    if bound.rpartition(".")[2] in wanted and _names(value) == name:
                        found[id(value)] = (value, scope)
    return next(iter(found.values())) if len(found) == 1 else None


def _names(value: ast.expr) -> str:
    """The narrow type that an expression names: ``np.uint8``, ``"u1"``."""
    text = value.value if isinstance(value, ast.Constant) else last_name(value)
    cut = text.lstrip("<>=|") if isinstance(text, str) else ""
    return SHORT.get(cut, cut)


def _narrowed(node: Node) -> tuple[str, Value]:
    """The narrow type that numbers are stored as here, and these numbers; an empty name where there is none."""
    first = node.inputs[0] if node.inputs else None
    if node.op == "setitem" and len(node.inputs) > 1:
        base: Value = first
        while isinstance(base, Node) and base.op in ("setitem", "getitem") and base.inputs:
            base = base.inputs[0]
        made = base if isinstance(base, Node) and base.op in MADE else None
        return (_type(made), node.inputs[1]) if made is not None else ("", None)
    if node.op in METHODS and len(node.inputs) == 1 and not node.full:
        return METHODS[node.op], first
    if node.op in ROOM and node.full.startswith(("numpy.", "array.")):
        return node.op, first
    if node.full == "array.array" and isinstance(first, str) and first in SHORT:
        return SHORT[first], node.inputs[1] if len(node.inputs) > 1 else None
    return (_type(node), first) if node.op in CASTS and node.op not in MADE else ("", None)


def _type(node: Node) -> str:
    if node.op.endswith("Tensor"):
        return {"B": "uint8", "C": "int8", "S": "int16"}.get(node.op[:1], "")
    for value in (node.options.get("dtype"), *node.inputs[1:]):
        name = value.name if isinstance(value, External) else value if isinstance(value, str) else ""
        name = SHORT.get(name.lstrip("<>=|"), name.lstrip("<>=|"))
        if name in ROOM:
            return name
    return ""


def _many(run: Rehearsing, given: Value, stored: Node) -> tuple[int, str, Node | None]:
    """How many different numbers there are at least, whose they are, and where that shows; 0 where it isn't known."""
    seen: set[int] = set()
    queue: list[Value] = [given]
    for _ in range(400):
        if not queue:
            break
        value = queue.pop(0)
        if isinstance(value, Items | tuple):
            queue += list(value.items if isinstance(value, Items) else value)[:8]
            continue
        if not isinstance(value, Node) or id(value) in seen:
            continue
        seen.add(id(value))
        if _sifted(run, value):
            continue
        table = value.attributes.get(NUMBERING)
        if isinstance(table, Table) and (size := _entries(run, table)):
            return size, "the vocabulary has", value
        if value.op in ENCODES or (value.op == "getitem" and value.inputs[1:] == ("input_ids",)):
            coder = near(value, 12)
            size = next((s for n in coder if n.op in TOKENIZERS and (s := _of_tokenizer(n))), 0)
            if size and not any(n.op in LEARNT for n in coder):
                return size, "the tokenizer has", value
        if value.op in DRAWN and _indexes(run, stored):
            high = bounds(value).high
            if high < 1e9 and bounds(value).low >= 0:
                return int(high) + 1, "these are", value
        if value.op in CUT_OFF and (high := _rows(value)) and high in _tables(run, stored):
            return high, "these are", value
        if value.op in ("add", "counter") and any(n.op == "counter" for n in near(value, 4)):
            high = bounds(value).high  # the end of a range is not among its numbers
            if high < 1e9 and bounds(value).low >= 0 and high > ROOM["int8"]:
                return int(high), "these are", value
        if (value.op in PASSES or value.op in STRUCTURE) and not _chosen_by_value(value):
            queue += list(value.inputs[:2] if value.op == "setitem" else value.inputs[:1])
    return 0, "", None


def _sifted(run: Rehearsing, value: Node) -> bool:
    """True for one number of many (``[i for i in ids if i < 256]``) where its size decides whether it is kept."""
    if value.op != "element":
        return False
    asked = (*run.memo.get("tested", ()), *run.memo.get("sifted", ()))
    return any(n is value for test, _ in asked for n in ancestors(test))


def _chosen_by_value(taken: Node) -> bool:
    """``ids[ids < 256]``: the values themselves say which of them are kept."""
    if taken.op not in ("getitem", "index_select", "masked_select") or len(taken.inputs) < 2:
        return False
    return any(n is taken.inputs[0] for i in taken.inputs[1:] for n in ancestors(i))


def _entries(run: Rehearsing, table: Table) -> int:
    """How many values a table numbers, at least; 0 where that isn't known."""
    known, over = run.memo.get(NUMBERED, {}).get(id(table), (None, None))
    return int(length(run, over) or 0) if known is table and _in_full(over) else 0


def _in_full(over: Value) -> bool:
    """True for what is counted element by element: a range, or a list that was made along one (a set is shorter)."""
    while isinstance(over, Items):
        if over.kind == "range" or not over.more:
            return True
        made = over.place[0] if over.place is not None else None
        if made is not None and not isinstance(made, ast.ListComp | ast.GeneratorExp):
            return False
        over = over.source
    return False


def _of_tokenizer(made: Node) -> int:
    name = next((i for i in made.inputs if isinstance(i, str)), "")
    return next((size for word, size in KNOWN if word.search(name)), 0)


def _indexes(run: Rehearsing, stored: Node) -> bool:
    """True if the stored numbers are looked up in an embedding, be it after they were read back from their file."""
    return bool(_tables(run, stored))


def _tables(run: Rehearsing, stored: Node) -> set[Value]:
    """How many rows the embeddings have in which the stored numbers are looked up; None stands for an unknown count."""
    mine = {id(n) for n in (stored, *_read_back(run, stored))}
    found: set[Value] = set()
    for node in run.nodes:
        if node.op not in LOOKS_UP or not node.inputs:
            continue
        if any(id(n) in mine for n in ancestors(node.inputs[0], through=_handed)):
            rows = node.owner.get("num_embeddings", 0) if node.owner is not None else None
            found.add(rows if isinstance(rows, int) else None)
    return found


def _read_back(run: Rehearsing, stored: Node) -> list[Node]:
    """What is read from the file, by its written name, that the numbers are written to."""
    files: set[str] = set()
    for node in run.nodes:
        if node.op in ("tofile", "save") and any(n is stored for i in node.inputs[:2] for n in near(i, 6)):
            files |= {i for i in node.inputs if isinstance(i, str)}
    return [n for n in run.nodes if n.op in READS and any(i in files for i in n.inputs if isinstance(i, str))]


def _rows(value: Node) -> int:
    """The number of values from 0 on that a remainder or an upper limit leaves; 0 where that isn't known."""
    if value.op in ("mod", "remainder"):
        by = value.inputs[1] if len(value.inputs) > 1 else None
        return by if isinstance(by, int) else 0
    high = bounds(value).high
    return int(high) + 1 if high < 1e9 else 0


def _handed(node: Node) -> bool:
    return node.op in STRUCTURE or node.op in PASSES or node.op in METHODS or node.op == "part"
