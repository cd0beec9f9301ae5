"""Probability distributions of torch: what is computed with them hangs on their parameters."""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal.calling import Asked
from trainwreck.code.rehearsal.domain import Node, Obj, Value
from trainwreck.code.rehearsal.library import function, method
from trainwreck.code.rehearsal.rehearsing import Rehearsing
from trainwreck.code.shapes.domain import ANY, Shape, broadcast

POSITIONS = {
    **dict.fromkeys(("Normal", "LogNormal", "Laplace", "Cauchy", "Gumbel"), ("loc", "scale")),
    **dict.fromkeys(
        ("Categorical", "Bernoulli", "OneHotCategorical", "OneHotCategoricalStraightThrough", "ContinuousBernoulli"),
        ("probs", "logits"),
    ),
    **dict.fromkeys(("RelaxedBernoulli", "RelaxedOneHotCategorical"), ("temperature", "probs", "logits")),
    "MultivariateNormal": ("loc", "covariance_matrix", "precision_matrix", "scale_tril"),
    "Beta": ("concentration1", "concentration0"),
    "Gamma": ("concentration", "rate"),
    "Dirichlet": ("concentration",),
    "Poisson": ("rate",),
    "Exponential": ("rate",),
    "Uniform": ("low", "high"),
    "Independent": ("base_dist", "reinterpreted_batch_ndims"),
    "TransformedDistribution": ("base_distribution", "transforms"),
    "MixtureSameFamily": ("mixture_distribution", "component_distribution"),
    "Multinomial": ("total_count", "probs", "logits"),
    "NegativeBinomial": ("total_count", "probs", "logits"),
    "StudentT": ("df", "loc", "scale"),
}
"""The arguments of each class in their order."""
ELEMENTWISE = frozenset(["Normal", "Bernoulli", "Laplace", "LogNormal", "Uniform", "Beta", "Gamma"])
_NAMES = [f"torch.distributions.{name}" for name in POSITIONS] + [
    f"torch.distributions.{name.lower()}.{name}" for name in POSITIONS
]


def parameters(value: Value, depth: int = 0) -> Iterator[Value]:
    """The values that a distribution was made with, also of those that it holds."""
    if isinstance(value, Obj) and value.kind.startswith("torch.distributions.") and depth < 5:
        for item in (*value.args, *value.options.values()):
            yield from parameters(item, depth + 1)
    elif isinstance(value, Node | int | float):
        yield value


@function(*_NAMES)
def _made(run: Rehearsing, asked: Asked) -> Value:
    made = run.thing(asked.full, asked.args, asked.options, asked.place)
    names = POSITIONS[asked.name]
    made.attributes.update(dict(zip(names, asked.args, strict=False)))
    made.attributes.update({k: v for k, v in asked.options.items() if k in names})
    if "loc" in made.attributes and asked.name in ("Normal", "Laplace", "MultivariateNormal"):
        made.attributes.setdefault("mean", made.attributes["loc"])
        if "scale" in made.attributes:
            made.attributes.setdefault("stddev", made.attributes["scale"])
    if asked.name in ("Categorical", "Bernoulli", "OneHotCategorical"):
        logits, probs = made.attributes.get("logits"), made.attributes.get("probs")
        if probs is None and isinstance(logits, Node):
            op = "sigmoid" if asked.name == "Bernoulli" else "softmax"
            made.attributes["probs"] = run.node(op, (logits,), asked.place, {"dim": -1})
            made.attributes["logits"] = logits
        elif isinstance(probs, Node):
            made.attributes["logits"] = run.node("log", (probs,), asked.place)
    return made


def _methods(run: Rehearsing, asked: Asked) -> Value:
    """``log_prob``, ``entropy``, ``rsample``: computed from the distribution's parameters too."""
    given = [*asked.args, *asked.options.values(), *parameters(asked.receiver)]
    made = run.node(asked.name, given, asked.place, owner=asked.receiver)
    if made.shape is ANY:
        made.shape = _shape(asked)
    if asked.name in ("sample", "sample_n"):
        made.grad = False
    return made


def _shape(asked: Asked) -> Shape:
    """Of a categorical distribution: one number for each row of scores. Of normal and like ones: that of the
    parameters, together with what the probability is asked of."""
    receiver = asked.receiver
    kind = receiver.name if isinstance(receiver, Obj) else ""
    shapes = [v.shape for v in parameters(receiver) if isinstance(v, Node)]
    sized = asked.name in ("sample", "rsample", "sample_n") and bool(asked.args or asked.options)
    if not shapes or sized or any(s.open for s in shapes):
        return ANY
    if kind == "Categorical" and asked.name in ("sample", "log_prob", "entropy") and shapes[0].dims:
        return Shape(shapes[0].dims[:-1], False, shapes[0].by)
    if kind in ELEMENTWISE and asked.name != "perplexity":
        given = [a.shape for a in asked.args[:1] if isinstance(a, Node)] if asked.name == "log_prob" else []
        result = shapes[0]
        for other in (*shapes[1:], *given):
            result, wrong = broadcast(result, other)
            if wrong is not None:
                return ANY
        return result
    return ANY


for _name in _NAMES:
    method(_name, "log_prob", "entropy", "rsample", "sample", "cdf", "icdf", "perplexity", "enumerate_support")(
        _methods
    )


@function("torch.distributions.kl_divergence", "torch.distributions.kl.kl_divergence")
def _divergence(run: Rehearsing, asked: Asked) -> Value:
    one, other = asked.get("p", 0), asked.get("q", 1)
    return run.node("kl_divergence", (tuple(parameters(one)), tuple(parameters(other))), asked.place, full=asked.full)
