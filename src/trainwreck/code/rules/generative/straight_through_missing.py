"""A quantised vector goes on without a straight-through estimate.

What: the entry of a codebook that is nearest (``argmin`` or ``argmax`` of a similarity) is returned or decoded as it
is, or detached, and nothing of the form ``z + (q - z).detach()`` stands in the program.
Why it matters: the choice of an entry has no gradient, so the encoder gets none from the reconstruction (VQ-VAE,
arXiv:1711.00937, section 3.2).
When it is fine: Gumbel-softmax, a custom ``autograd.Function``, a rotation trick, k-means outside of training.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.calls import Call, last_name
from trainwreck.code.facts import text_of, trains
from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.forms import straight_through_wrong
from trainwreck.code.rehearsal.questions.quantisers import estimator_turned, hard_choice
from trainwreck.code.rehearsal.questions.quantising import blocked
from trainwreck.code.rule import sighting
from trainwreck.code.scopes import Scope
from trainwreck.code.seek import is_loss, modules
from trainwreck.core.evidence import Evidence

BAD = (
    """
import torch
from torch import nn
class Quantizer(nn.Module):
    def __init__(self):
        super().__init__()
        self.codes = nn.Embedding(16, 8)
    def forward(self, z):
        idx = torch.cdist(z, self.codes.weight).argmin(1)
        q = self.codes(idx)
        return q, idx  # expect
def train(net, z, opt):
    net(z)[0].mean().backward()
""",
    """
import torch
from torch import nn
import torch.nn.functional as F
class VQ(nn.Module):
    def forward(self, h):
        flat = h.reshape(-1, self.dim)
        index = torch.cdist(flat, self.codebook).argmin(dim=-1)
        quantized = F.embedding(index, self.codebook).view_as(h)
        loss = F.mse_loss(quantized, h.detach()) + 0.25 * (quantized.detach() - h).pow(2).mean()
        return quantized.detach(), loss  # expect
def train(net, z, opt):
    net(z)[1].backward()
""",
    """
import torch
from torch import nn
class VQVAE(nn.Module):
    def forward(self, x):
        z = self.encoder(x)
        d = (z.unsqueeze(1) - self.codebook.weight).pow(2).sum(-1)
        _, k = d.min(1)
        e = self.codebook(k)
        commit = (z - e.detach()).pow(2).mean() + (z.detach() - e).pow(2).mean()
        recon = self.decoder(e)  # expect
        return recon, commit
def train(net, x):
    net(x)[1].backward()
""",
    """
import torch
from torch import nn
def quantise(z, codebook):
    nearest = torch.argmin(torch.cdist(z, codebook), dim=1)
    q = codebook[nearest]
    return q, nearest  # expect
class Model(nn.Module):
    def forward(self, x):
        q, idx = quantise(self.enc(x), self.codebook)
        return self.dec(q)
def train(net, x):
    net(x).mean().backward()
""",
)
GOOD = (
    """
import torch
from torch import nn
class Quantizer(nn.Module):
    def __init__(self):
        super().__init__()
        self.codes = nn.Embedding(16, 8)
    def forward(self, z):
        idx = torch.cdist(z, self.codes.weight).argmin(1)
        q = self.codes(idx)
        q = z + (q - z).detach()
        return q, idx
    def indices(self, z):
        return torch.cdist(z, self.codes.weight).argmin(1)
def train(net, z, opt):
    net(z)[0].mean().backward()
""",
    """
import torch
from torch import nn
class Quantizer(nn.Module):
    def forward(self, z):
        q = self.codes(torch.cdist(z, self.codes.weight).argmin(1))
        return q
class Model(nn.Module):
    def forward(self, x):
        z = self.enc(x)
        q = self.vq(z)
        return self.dec(z - z.detach() + q.detach())
class Router(nn.Module):
    def forward(self, x):
        cluster = torch.cdist(x, self.centers).argmin(1)
        return self.bias[cluster] + x
def train(net, z, opt):
    net(z)[0].mean().backward()
""",
)
CODES = pattern(r"(?<![a-z])codes?(?![a-z])|codebook|quant(?!ile)|\bvq|commit|\bk_?means|vocab_emb", re.IGNORECASE)
OTHER_WAY = pattern(r"gumbel|straight|autograd\.Function|register_hook|rotat|rotation", re.IGNORECASE)
KEEPS = frozenset(
    [
        "view",
        "view_as",
        "reshape",
        "permute",
        "transpose",
        "contiguous",
        "detach",
        "to",
        "squeeze",
        "unsqueeze",
        "clone",
    ]
)


def find(project: Project) -> Iterator[Evidence]:
    yield from further(
        __name__, project, _written(project), blocked, straight_through_wrong, estimator_turned, hard_choice
    )


def _written(project: Project) -> Iterator[Evidence]:
    if not trains(project) or any(_estimates(project, scope) for scope in project.functions):
        return
    owned = {id(m) for owner in modules(project) for m in owner.children}
    for function in project.functions:
        text = text_of(project, function)
        if id(function) not in owned and not CODES.search(text):
            continue
        if function.name == "__init__" or "no_grad" in text or OTHER_WAY.search(text):
            continue
        owner_text = text_of(project, function.owner) if function.owner is not None else text
        if not CODES.search(owner_text):
            continue
        found = _passed_on(project, function)
        if found is not None:
            yield sighting(__name__, (found, function), "the nearest code goes on without a straight-through estimate")


def _passed_on(project: Project, function: Scope) -> ast.AST | None:
    """Where the vector of the nearest entry leaves the function or goes into a decoder."""
    chosen = _names(project, function, _chooses)
    if not chosen and not any(_chooses(n) for n in project.within(function, ast.Call)):
        return None
    looked_up = _names(project, function, lambda node: _looks_up(node, chosen))
    for node in project.within(function, ast.Call, ast.Return):
        if isinstance(node, ast.Return):
            parts = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
            given = next((p for p in parts if p is not None and _is_lookup(p, looked_up, chosen)), None)
            if given is not None:
                return _renamed(function, given, looked_up) or node
        elif isinstance(node, ast.Call) and _decodes(project, Call(node, function)):
            handed = [a for a in node.args if _is_lookup(a, looked_up, chosen)]
            if handed:
                return node
    return None


def _renamed(function: Scope, given: ast.expr, names: set[str]) -> ast.AST | None:
    """``quantised = chosen``: where the code gets the name under which it goes on, in place of an estimate."""
    bindings = function.bindings.get(given.id, ()) if isinstance(given, ast.Name) else ()
    values = [b.value for b in bindings if isinstance(b.value, ast.Name) and b.value.id in names]
    return values[0] if len(values) == len(bindings) == 1 else None


def _names(project: Project, function: Scope, wanted: object) -> set[str]:
    """Names that are bound to something wanted, or to a reshaped one of these names."""
    assert callable(wanted)
    found: set[str] = set()
    for _ in range(3):
        for name, bindings in function.bindings.items():
            for binding in bindings:
                value = binding.value
                if value is None or binding.kind != "assign":
                    continue
                inner = _bare(value)
                direct = any(wanted(n) for n in ast.walk(value) if isinstance(n, ast.Call | ast.Subscript | ast.BinOp))
                if direct or (isinstance(inner, ast.Name) and inner.id in found):
                    found.add(name)
    return found


def _chooses(node: ast.AST) -> bool:
    """``argmin``, ``d.min(1)`` with its index, ``topk(1)``."""
    if not isinstance(node, ast.Call):
        return False
    name = last_name(node.func)
    return name == "argmin" or (name == "min" and bool(node.args) and isinstance(node.func, ast.Attribute))


def _looks_up(node: ast.AST, chosen: set[str]) -> bool:
    inner: list[ast.expr] = []
    if isinstance(node, ast.Call) and (last_name(node.func) not in ("one_hot", "bincount", "unique", "view", "long")):
        inner = node.args
    elif isinstance(node, ast.Subscript):
        inner = [node.slice]
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
        return any(isinstance(n, ast.Call) and last_name(n.func) == "one_hot" for n in ast.walk(node.left))
    for part in inner:
        bare = _bare(part)
        if (isinstance(bare, ast.Name) and bare.id in chosen) or _chooses(bare):
            return True
    return False


def _is_lookup(node: ast.expr, names: set[str], chosen: set[str]) -> bool:
    bare = _bare(node)
    return (isinstance(bare, ast.Name) and bare.id in names - chosen) or _looks_up(bare, chosen)


def _bare(node: ast.expr) -> ast.expr:
    """Without reshapes."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in KEEPS:
        node = node.func.value
    return node


def _decodes(project: Project, call: Call) -> bool:
    return bool(re.search(r"dec|generator|head|post", call.name, re.IGNORECASE)) and not is_loss(project, call)


def _estimates(project: Project, function: Scope) -> bool:
    """True if there is ``z + (q - z).detach()`` in any arrangement."""
    for node in project.within(function, ast.BinOp):
        if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Add | ast.Sub):
            continue
        leaves = _leaves(node)
        detached = [leaf for leaf in leaves if isinstance(leaf, ast.Call) and last_name(leaf.func) == "detach"]
        difference = any(
            isinstance(leaf.func, ast.Attribute) and isinstance(leaf.func.value, ast.BinOp) for leaf in detached
        )
        if detached and (len(leaves) > 2 or (difference and len(leaves) > 1)):
            return True
    return False


def _leaves(node: ast.expr) -> list[ast.expr]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
        return [*_leaves(node.left), *_leaves(node.right)]
    return [node]
