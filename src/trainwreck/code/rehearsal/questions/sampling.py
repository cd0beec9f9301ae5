"""Draws from a distribution that is learned: does the gradient of what is computed from them reach it?"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Obj, Value
from trainwreck.code.rehearsal.graph import ancestors, graph, parts
from trainwreck.code.rehearsal.library.distributions import parameters
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.gradients import backwards

PATHWISE = frozenset(
    """Normal LogNormal MultivariateNormal LowRankMultivariateNormal Laplace Cauchy Gumbel Uniform Gamma Beta Dirichlet
    Exponential StudentT HalfNormal HalfCauchy Weibull Kumaraswamy LogitNormal RelaxedBernoulli ContinuousBernoulli
    RelaxedOneHotCategorical VonMises""".split()
)
"""Distributions of ``torch.distributions`` with ``has_rsample`` (torch 2.13), and so a gradient to their parameters."""
DRAWS = frozenset(["sample", "sample_n"])
SCORES = frozenset(["log_prob"])
KEEPS = frozenset(
    """view reshape flatten squeeze unsqueeze permute transpose cat stack concat getitem add mul sub div float to
    contiguous expand repeat either clone chunk split tanh sigmoid softplus exp clamp part""".split()
)
"""Operations behind which a draw is still the draw, moved or scaled."""


def without_path(run: Rehearsing) -> Iterator[Answer]:
    """``z = q.sample()`` of a normal distribution whose mean and scale the same loss trains by another term only.

    The loss goes through what is computed from ``z``, and the gradient of that ends at the draw. Not meant: draws
    whose probability the program asks for (the score function estimator, a policy), and those of networks that this
    loss does not train."""
    told: set[int] = set()
    for event in backwards(run):
        if not event.turns or not isinstance(event.subject, Node):
            continue
        inside = {id(n): n for n in graph(event.subject)}
        for draw in _draws(run, inside):
            if draw.place is None or id(draw.place[0]) in told or _scored(run, draw):
                continue
            if not any(_trained(p, inside) for p in _distribution(draw)):
                continue
            told.add(id(draw.place[0]))
            text = "no gradient passes a draw that is not reparametrised: what is computed from it teaches nothing here"
            yield Answer(draw.place, text, (event.place,) if event.place is not None else ())


def _draws(run: Rehearsing, inside: dict[int, Node]) -> Iterator[Node]:
    """Draws that a layer goes on from, by themselves or beside something else."""
    seen: set[int] = set()
    for node in list(inside.values()):
        learns = any(p.op == "param" for p in _given(node)) or node.op in ("cat", "stack", "concat")
        if not node.grad or not learns:
            continue
        for inner in _given(node):
            for found in _behind(inner):
                if id(found) not in seen:
                    seen.add(id(found))
                    yield found


def _given(node: Node) -> Iterator[Node]:
    for item in node.inputs:
        yield from parts(item)


def _behind(node: Node) -> Iterator[Node]:
    queue, seen = [node], {id(node)}
    while queue and len(seen) < 60:
        at = queue.pop()
        if _draw(at):
            yield at
        elif at.op in KEEPS and not at.grad:
            new = [n for n in _given(at) if id(n) not in seen]
            seen |= {id(n) for n in new}
            queue += new


def _draw(node: Node) -> bool:
    if node.op == "normal" and node.full == "torch.normal":
        return True
    return node.op in DRAWS and node.owner is not None and _pathwise(node.owner)


def _pathwise(owner: Value, depth: int = 0) -> bool:
    if not isinstance(owner, Obj) or not owner.kind.startswith("torch.distributions.") or depth > 3:
        return False
    if owner.name in ("Independent", "TransformedDistribution"):
        return _pathwise(owner.get("base_dist", 0, owner.get("base_distribution", 0)), depth + 1)
    return owner.name in PATHWISE


def _distribution(draw: Node) -> list[Node]:
    """What mean and scale were computed from."""
    given = parameters(draw.owner) if draw.owner is not None else draw.inputs
    return [n for value in given for n in parts(value)]


def _trained(param: Node, inside: dict[int, Node]) -> bool:
    """True where the loss trains the network behind it: a weight of it lies in the graph."""
    if not param.grad:
        return False
    return any(n.op == "param" and n.trainable is not False and id(n) in inside for n in ancestors(param))


def _scored(run: Rehearsing, draw: Node) -> bool:
    """True where the program asks how probable the draw, or another of the same kind, was."""
    for node in run.nodes:
        if node.op in SCORES and isinstance(node.owner, Obj):
            if node.owner is draw.owner or any(n is draw for n in ancestors(tuple(node.inputs))):
                return True
            mine = draw.owner.place if isinstance(draw.owner, Obj) else None
            if mine is not None and node.owner.place is not None and node.owner.place[0] is mine[0]:
                return True
    return False
