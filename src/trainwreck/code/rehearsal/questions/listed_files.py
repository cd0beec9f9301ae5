"""Files in the order of a folder, beside labels in the order in which they were numbered."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import WRITTEN, Items, Node, Obj, Value
from trainwreck.code.rehearsal.graph import ancestors, carries, parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.left_turned import indices
from trainwreck.code.rehearsal.questions.paths import RANDOM, meets

LISTS = frozenset(["listdir", "glob", "iglob", "rglob", "iterdir", "scandir", "walk"])
READS = frozenset("open load loadtxt genfromtxt read_csv read_text read_json fromfile read_parquet read_table".split())
WRITES = frozenset(
    """save savez savetxt imwrite imsave write_text write_bytes write_png write_jpeg dump open to_csv to_json tofile
    savemat to_parquet""".split()
)
TEN = 10
"""Numbers of one digit sort as texts as they do as numbers. Of how many are unknown: data to learn from are more."""


def lined_up(run: Rehearsing) -> Iterator[tuple[Node, list[Node], list[Node]]]:
    """Where a loss meets its targets: the node, and what the numbers of its inputs and of its targets were made of."""
    for event in run.tape:
        if event.name == "backward":
            for meeting, inside, outside in meets(event.subject):
                inputs = [n for i in inside for n in ancestors(i, through=carries)]
                yield meeting, inputs, [n for o in outside for n in ancestors(o, through=carries)]


def listed_otherwise(run: Rehearsing) -> Iterator[Answer]:
    """``sorted(os.listdir(folder))`` of files that the program numbers without leading zeros (1, 10, 11, 2), read
    with the same index as labels that the program wrote down in the order of the numbers."""
    if not any(n.op in LISTS for n in run.nodes):
        return
    told: set[int] = set()
    for meeting, files, labels in lined_up(run):
        listing = next((n for n in files if n.op in LISTS), None)
        if listing is None or any(n.op in (*LISTS, "counter", "key", "argsort", "sorted") for n in labels):
            continue
        order = next((n for n in files if n.op == "sorted" and any(p is listing for p in parts(n.inputs))), None)
        call = order.place[0] if order is not None and order.place is not None else None
        if order is None or order.place is None or not isinstance(call, ast.Call) or call.keywords:
            continue
        if id(order.place[0]) in told or not indices(files) & indices(labels) or not _written_here(run, labels):
            continue
        named = _numbered(run, listing)
        if named is not None and named.place is not None:
            told.add(id(order.place[0]))
            text = "as texts, the numbers in these names sort as 1, 10, 11, 2, and the labels stand as they were made"
            proof = (named.place, *((meeting.place,) if meeting.place is not None else ()))
            yield Answer(order.place, text, proof)


def listed_in_any_order(run: Rehearsing) -> Iterator[Answer]:
    """Files as the system lists them, in no order that is promised, read with the same index as labels that stand in
    the order of a file of their own."""
    if not any(n.op in LISTS for n in run.nodes) or any(e.name == "sort" for e in run.tape):
        return
    for meeting, files, labels in lined_up(run):
        listing = next((n for n in files if n.op in LISTS and n.op != "walk"), None)
        if listing is None or listing.place is None or any(n.op in LISTS for n in labels):
            continue
        if any(n.op in ("sorted", "natsorted", "sort", "argsort", "lexsort", "key") for n in (*files, *labels)):
            continue
        if indices(files) & indices(labels) and any(n.op in READS for n in labels):
            text = "files are listed in no particular order here, and the labels stand in the order of their file"
            yield Answer(listing.place, text, (meeting.place,) if meeting.place is not None else ())
            return


def _numbered(run: Rehearsing, listing: Node) -> Node | None:
    """The name of a file with a number as it is, under which the program saves into the folder that is listed."""
    folder = [n for i in listing.inputs for n in parts(i)]
    words = {w for w in _words(listing.inputs) if "." not in w and "*" not in w}
    every = list(_written_to(run))
    there: dict[int, set[str]] = {}
    for at, value in every:
        there.setdefault(at, set()).update(_words((value,)))  # a turn whose number is known shows the whole text
    for at, path in every:
        behind = list(ancestors(path)) if isinstance(path, Node) else []
        name = next((n for n in behind if _plain(n)), None)
        same = any(n is f for f in folder for n in behind) or (bool(words) and words <= there[at])
        if name is not None and same and (count := _turns(name)) is not None and count > TEN:
            return name
    return None


def _written_to(run: Rehearsing) -> Iterator[tuple[int, Value]]:
    """The paths that the program writes to, and what else is given to what writes; each with its place (by ``id``)."""
    for event in run.tape:
        if event.name in WRITES and (event.name != "open" or str(event.get("mode", 1, ""))[:1] in ("w", "a", "x")):
            at = id(event.place[0]) if event.place is not None else 0
            yield from ((at, value) for value in (*event.args, event.subject))
    for node in run.nodes:
        if node.op in WRITES and (node.op != "open" or str(node.get("mode", 1, ""))[:1] in ("w", "a", "x")):
            at = id(node.place[0]) if node.place is not None else 0
            yield from ((at, value) for value in node.inputs)


def _plain(text: Node) -> bool:
    """True for a text that shows the number of the turn, without a width."""
    shown = text.attributes.get(WRITTEN, ()) if text.op == "text" else text.inputs[1:]
    numbers = [n for s in shown for n in parts(s)]
    if text.place is None or not any(n.op == "counter" for n in numbers):
        return False
    form = text.inputs[0] if text.inputs and isinstance(text.inputs[0], str) else ""
    match text.place[0]:
        case ast.JoinedStr(values=pieces):
            return all(p.format_spec is None for p in pieces if isinstance(p, ast.FormattedValue))
        case ast.BinOp(op=ast.Mod()):
            return "%d" in form or "%s" in form or "%i" in form
        case ast.Call(func=ast.Attribute(attr="format")):
            return "{}" in form
    return False


def _turns(text: Node) -> float | None:
    """How many names there are; infinite where it isn't known, None outside of a loop."""
    if not text.turns:
        return None
    over = text.turns[-1].over
    if isinstance(over, Items):
        if over.length is not None or not over.more:
            return over.length if over.length is not None else len(over.items)
        over = over.source
    size = over.shape.dims[0] if isinstance(over, Node) and over.shape.dims and not over.shape.open else None
    return float(size) if isinstance(size, int) else float("inf")


def _written_here(run: Rehearsing, labels: list[Node]) -> bool:
    """True for labels that are read from a file which the program wrote itself, or that it drew."""
    readers = [n for n in labels if n.op in READS]
    if not readers:
        return any(n.op in RANDOM for n in labels)
    wanted = {w for n in readers for w in _words(n.inputs) if "." in w}
    return bool(wanted) and any(wanted <= _words((path,)) for _, path in _written_to(run))


def _words(values: tuple[Value, ...]) -> set[str]:
    """The names of folders and files in a path, as far as they are known."""
    found = {v for v in values if isinstance(v, str)}
    found |= {a for v in values if isinstance(v, Obj) for a in v.args if isinstance(a, str)}
    for node in (n for v in values for n in ancestors(v)):
        shown = node.attributes.get(WRITTEN, ()) if node.op == "text" else ()
        found |= {i for i in (*node.inputs, *shown) if isinstance(i, str)}
        if node.place is not None and isinstance(node.place[0], ast.JoinedStr):
            pieces = node.place[0].values
            found |= {p.value for p in pieces if isinstance(p, ast.Constant) and isinstance(p.value, str)}
    return {w for text in found for w in text.split("/") if len(w) > 1}
