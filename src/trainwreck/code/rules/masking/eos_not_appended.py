"""Generation stops at an end token that no training sequence holds.

What: the program puts its own start token before each sequence and stops generating at an end token, and that token is
written nowhere else: into no list, tensor or table.
Why it matters: a model that never saw the end does not produce it: each answer runs to the limit of the length.
When it is fine: where the sequences come from elsewhere with their end, or all answers have one length.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence

from trainwreck.code.calls import last_name
from trainwreck.code.facts import source
from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.rehearsal import Rehearsing, rehearsals
from trainwreck.code.rehearsal.domain import Items, Node, Place, Table, Value
from trainwreck.code.rehearsal.graph import ancestors
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.stop_tokens import never_taught
from trainwreck.code.rule import sighting
from trainwreck.code.scopes import Scope
from trainwreck.core.evidence import Evidence

_LOOP = """
net = nn.GRU(16, 16, batch_first=True)
emb, out = nn.Embedding(30, 16), nn.Linear(16, 30)
opt = torch.optim.Adam([*net.parameters(), *emb.parameters(), *out.parameters()])
def train(rows):
    for row in rows:
        inp, gold = sample(row)
        opt.zero_grad()
        nn.functional.cross_entropy(out(net(emb(inp)[None])[0])[0], gold).backward()
        opt.step()
def answer():
    tokens = [BOS]
    for _ in range(20):
        token = out(net(emb(torch.tensor(tokens))[None])[0])[0, -1].argmax().item()
        if token == EOS:
            break
        tokens.append(token)
    return tokens[1:]
train([[3, 4, 5], [6, 7]])
print(answer())
"""
BAD = (
    f"""
import torch
from torch import nn
PAD, BOS, EOS = 0, 1, 2
def sample(row):
    return torch.tensor([BOS] + row[:-1]), torch.tensor(row)  # expect
{_LOOP}""",
    f"""
import torch
from torch import nn
BOS = 1
EOS = 2
def sample(row):
    ids = torch.tensor([BOS, *row])  # expect
    return ids[:-1], ids[1:]
{_LOOP}""",
)
GOOD = (
    f"""
import torch
from torch import nn
PAD, BOS, EOS = 0, 1, 2
def sample(row):
    return torch.tensor([BOS] + row), torch.tensor(row + [EOS])
{_LOOP}""",
    f"""
import torch
from torch import nn
PAD, BOS, EOS = 0, 1, 2
def sample(row):
    row = torch.cat([torch.tensor(row), torch.full((1,), EOS)])
    return torch.cat([torch.tensor([BOS]), row[:-1]]), row
{_LOOP}""",
)
TOKENISERS = pattern(
    r"import (tokenizers|transformers|sentencepiece|tiktoken)|from (tokenizers|transformers)|[\"'][<\[]/?(e|s|end)"
    r"|\bopen\((?![^()]*[\"'][wax]b?\+?[\"'])|(?<!torch)(?<!yaml)\.load\(|load_dataset|read_text|read_csv|fromfile|memmap|readlines|genfromtxt|loadtxt"
)
"""Libraries, files and special texts by which an end may come into the data unseen."""
COMPARES = frozenset(["eq", "equal"])
PICKS = frozenset(["argmax", "multinomial", "sample", "topk", "max"])
MAX_NESTED = 4
"""Lists within lists: rows of tokens in batches."""
STARTS = (ast.List, ast.Tuple)
PUTS = frozenset(["tensor", "full", "append", "insert", "full_like"])


def find(project: Project) -> Iterator[Evidence]:
    yield from further(__name__, project, _written(project), never_taught)


def _written(project: Project) -> Iterator[Evidence]:
    """Tokens are whole numbers that one statement, or neighbouring ones, of a module name."""
    runs = rehearsals(project)
    if not runs or TOKENISERS.search(source(project)):
        return
    behind = [n for run in runs for e in run.tape if e.name == "backward" for n in ancestors(e.subject)]
    trained = {id(p[0]) for n in behind for p in (*n.stack, *([n.place] if n.place is not None else []))}
    trained |= {id(i.place[0]) for n in behind for i in _lists(n.inputs) if i.place is not None}
    answers = _answers(runs)
    for walked in project.walked.values():
        top = walked.top
        numbers = _numbers(top.module.tree)
        uses = _uses(top.module.tree, set(numbers))
        for end, value in numbers.items():
            mine = uses.get(end, [])
            puts = [use for use in mine if not _compared(use)]
            if not any(_stops(use) or _cuts(use) for use in mine):
                continue
            begun = _begun(runs, {n for name, n in numbers.items() if name != end}, value)
            if begun is None and any(_answered(use, answers) for use in puts):
                continue
            if list(numbers.values()).count(value) > 1 or _written_elsewhere(top.module.tree, value):
                continue
            starts = [u for name in numbers if name != end for u in uses.get(name, []) if _starts(u)]
            prompted = [u for u in starts if _beside_data(u) and any(id(a) in trained for a in u[1])]
            if not prompted and begun is None:
                continue
            place = (prompted[0][0], _scope(walked.scopes, prompted[0][0], top)) if prompted else begun
            text = f"sequences get a start token here, and none gets {end}, at which the generation stops"
            stop = next(use for use in mine if _stops(use) or _cuts(use))
            proof = [(top.module.path, stop[0].lineno, ast.unparse(stop[1][0])[:80])]
            if place is not None:
                yield sighting(__name__, place, text, proof=proof)
            break


Use = tuple[ast.Name, list[ast.AST]]
"""A name where it is read, and what stands around it from the innermost outwards."""


def _answers(runs: Sequence[Rehearsing]) -> set[int] | None:
    """The expressions that targets of cross entropies are computed by; None where one can't be told."""
    found: set[int] = set()
    for run in runs:
        for node in run.nodes:
            if node.op not in ("cross_entropy", "nll_loss") or len(node.inputs) < 2 or not node.grad:
                continue
            target = node.inputs[1]
            for inner in ancestors(target):
                if inner.op in ("argument", "call"):
                    return None
                found |= {id(p[0]) for p in (*inner.stack, *([inner.place] if inner.place is not None else []))}
            found |= {id(i.place[0]) for n in ancestors(target) for i in _lists(n.inputs) if i.place is not None}
    return found


def _begun(runs: Sequence[Rehearsing], starts: set[int], end: int) -> Place | None:
    """Where a row of tokens that the network answers gets a start token; None where one may hold the end."""
    found: Place | None = None
    for run in runs:
        targets = [
            n.inputs[1] for n in run.nodes if n.op in ("cross_entropy", "nll_loss") and len(n.inputs) > 1 and n.grad
        ]
        for node in ancestors(tuple(targets)):
            rows = list(_lists(node.inputs))
            given = [v for i in ((*node.inputs, *node.options.values()), *(r.items for r in rows)) for v in i]
            given += [v for i in node.inputs if isinstance(i, Table) for v in i.entries.values()]
            if node.op in ("argument", "call") or any(v == end for v in given if _whole(v)):
                return None
            for row in rows:
                first, rest = row.items[0] if row.items else None, row.items[1:]
                if _whole(first) and first in starts and any(isinstance(v, Node) for v in rest):
                    put = next((e.place for e in run.tape if e.name == "insert" and e.subject is row), row.place)
                    found = put  # the innermost list comes last
    return found


def _lists(values: Iterable[Value], depth: int = 0) -> Iterator[Items]:
    """The lists among values, those within them, and those whose elements they were made from one by one."""
    for value in values:
        if isinstance(value, Items):
            yield value
        if isinstance(value, Items | tuple) and depth < MAX_NESTED:
            yield from _lists(value if isinstance(value, tuple) else (*value.items, value.source), depth + 1)


def _answered(use: Use, answers: set[int] | None) -> bool:
    """True where the end is put into something that the network is to answer, as far as can be told."""
    return answers is None or any(id(a) in answers for a in use[1] if isinstance(a, ast.expr)) or not answers


def _numbers(tree: ast.AST) -> dict[str, int]:
    """Module level names of whole numbers that are given a value once."""
    found: dict[str, int] = {}
    twice: set[str] = set()
    for statement in getattr(tree, "body", []):
        for target in statement.targets if isinstance(statement, ast.Assign) else ():
            pairs = [(target, statement.value)]
            if isinstance(target, ast.Tuple) and isinstance(statement.value, ast.Tuple):
                pairs = list(zip(target.elts, statement.value.elts, strict=False))
            for name, value in pairs:
                if isinstance(name, ast.Name) and isinstance(value, ast.Constant) and _whole(value.value):
                    twice |= {name.id} & set(found)
                    found[name.id] = int(str(value.value))
    return {n: v for n, v in found.items() if n not in twice}


def _whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _uses(tree: ast.AST, names: set[str]) -> dict[str, list[Use]]:
    found: dict[str, list[Use]] = {}

    def walk(node: ast.AST, above: list[ast.AST]) -> None:
        if isinstance(node, ast.Name) and node.id in names and isinstance(node.ctx, ast.Load):
            found.setdefault(node.id, []).append((node, above[::-1]))
        for child in ast.iter_child_nodes(node):
            walk(child, [*above, node])

    walk(tree, [])
    return found


def _compared(use: Use) -> bool:
    """``token == EOS``, ``token.eq(EOS)``: the name is not put anywhere."""
    name, above = use
    first = above[0]
    if isinstance(first, ast.Compare):
        return all(isinstance(op, ast.Eq | ast.NotEq | ast.In | ast.NotIn) for op in first.ops)
    return isinstance(first, ast.Call) and last_name(first.func) in (*COMPARES, "ne", "index") and name in first.args


def _cuts(use: Use) -> bool:
    """``row[: row.index(END)]``: what stands behind the end is thrown away."""
    call, rest = use[1][0], use[1][1:3]
    return (
        isinstance(call, ast.Call)
        and last_name(call.func) == "index"
        and bool(rest)
        and isinstance(rest[0], ast.Slice)
        and rest[0].upper is call
    )


def _stops(use: Use) -> bool:
    """A comparison in a loop that decides to leave it, or who is done."""
    above = use[1]
    statement = next((a for a in above if isinstance(a, ast.stmt)), None)
    test = isinstance(statement, ast.If) and any(isinstance(n, ast.Break | ast.Return) for n in statement.body)
    if not test and not isinstance(statement, ast.AugAssign | ast.Assign):
        return False
    return any(_generates(loop) for loop in above if isinstance(loop, ast.For | ast.While))


def _generates(loop: ast.AST) -> bool:
    """True for a loop that picks one token after the other, and may be left."""
    inner = list(ast.walk(loop))
    picks = any(isinstance(n, ast.Call) and last_name(n.func) in PICKS for n in inner)
    return picks and any(isinstance(n, ast.Break | ast.Return) for n in inner)


def _starts(use: Use) -> bool:
    return isinstance(use[1][0], STARTS)


def _beside_data(use: Use) -> bool:
    """``[BOS] + row`` or ``[BOS, *row]``: the token stands before a sequence in what is no start of a generation."""
    name, above = use
    listed = above[0]
    if not isinstance(listed, ast.List) or not listed.elts or listed.elts[0] is not name:
        return False
    if any(isinstance(e, ast.Starred) for e in listed.elts[1:]):
        return True
    outer = above[1] if len(above) > 1 else None
    return isinstance(outer, ast.BinOp) and isinstance(outer.op, ast.Add) and outer.left is listed


def _written_elsewhere(tree: ast.AST, value: int) -> bool:
    """True where the number itself is put beside a sequence or into a tensor, in the place of its name."""
    for node in ast.walk(tree):
        items: list[ast.expr] = []
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            items = [e for side in (node.left, node.right) if isinstance(side, ast.List) for e in side.elts]
        elif isinstance(node, ast.Dict):
            items = node.values
        elif isinstance(node, ast.List | ast.Tuple) and any(isinstance(e, ast.Starred) for e in node.elts):
            items = node.elts
        elif isinstance(node, ast.Call) and last_name(node.func) in PUTS:
            items = [e for a in node.args for e in (a.elts if isinstance(a, ast.List) else [a])]
        elif isinstance(node, ast.Assign) and any(isinstance(t, ast.Subscript) for t in node.targets):
            items = [node.value]
        if any(isinstance(i, ast.Constant) and _whole(i.value) and i.value == value for i in items):
            return True
    return False


def _scope(scopes: list[Scope], node: ast.AST, top: Scope) -> Scope:
    return next((s for s in scopes if any(n is node for n in s.nodes)), top)
