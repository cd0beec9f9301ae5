"""``trainwreck.jax.watch``: the step's results stay bit for bit, and a NaN is traced to its primitive and line."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from trainwreck.engine import diagnose

os.environ.setdefault("JAX_PLATFORMS", "cpu")
jax = pytest.importorskip("jax", reason="jax is not installed")
optax = pytest.importorskip("optax", reason="optax is not installed")
jnp = jax.numpy

from trainwreck.jax import watch  # noqa: E402
from trainwreck.record.jaxside.trace import Tracer, origin  # noqa: E402


def log_of_probability(params: Any, x: Any, y: Any) -> Any:
    hidden = jnp.tanh(x @ params["encoder"]["kernel"])
    probability = jax.nn.softmax(hidden @ params["head"]["kernel"])
    chosen = jnp.take_along_axis(probability, y[:, None], 1)[:, 0] * (x[0, 0] < 5)
    return -jnp.mean(jnp.log(chosen))  # the log


def parameters() -> Any:
    key = jax.random.key(0)
    return {
        "encoder": {"kernel": jax.random.normal(key, (4, 8)) * 0.1},
        "head": {"kernel": jax.random.normal(key, (8, 4)) * 0.1},
    }


def make_step(donate: bool = False) -> tuple[Callable[..., Any], Any]:
    optimizer = optax.adam(1e-2)

    def step(params: Any, state: Any, x: Any, y: Any) -> Any:
        loss, gradients = jax.value_and_grad(log_of_probability)(params, x, y)
        updates, state = optimizer.update(gradients, state, params)
        return optax.apply_updates(params, updates), state, {"loss": loss, "largest": x.max()}

    return jax.jit(step, donate_argnums=(0, 1) if donate else ()), optimizer.init(parameters())


def train(step: Callable[..., Any], state: Any, steps: int = 45, bad: int | None = None) -> Any:
    params, key, losses = parameters(), jax.random.key(7), []
    for i in range(steps):
        x = jax.random.normal(jax.random.fold_in(key, i), (16, 4)).clip(-2, 2)
        y = jax.random.randint(jax.random.fold_in(key, i), (16,), 0, 4)
        if i == bad:
            x = x.at[0, 0].set(9.0)
        params, state, metrics = step(params, state, x, y)
        losses.append(metrics["loss"])
    return [float(x) for x in losses], [leaf.tolist() for leaf in jax.tree.leaves(params)]


@pytest.mark.parametrize("donate", [False, True])
def test_results_are_the_same_and_norms_are_recorded(tmp_path: Path, donate: bool) -> None:
    plain = train(*make_step(donate))
    step, state = make_step(donate)
    observed = watch(step, record_to=str(tmp_path / "rec"))
    assert train(observed, state) == plain
    observed.close()
    found = {name for run in diagnose([tmp_path / "rec"]).runs for name in run.metrics}
    assert {"loss", "largest", "weight_norm/encoder", "weight_norm/head", "update_ratio/encoder"} <= found


@pytest.mark.parametrize("donate", [False, True])
@pytest.mark.parametrize("bad", [0, 13, 40])
def test_the_birth_of_an_infinity_has_its_line(tmp_path: Path, bad: int, donate: bool) -> None:
    step, state = make_step(donate)
    observed = watch(step, record_to=str(tmp_path / "rec"))
    train(observed, state, bad=bad)
    observed.close()
    if donate and bad == 0:
        return  # the arguments of the very first step are gone before anybody can know that they will be
    told = json.loads((tmp_path / f"rec/capture-{bad + 1}/origin.json").read_text())
    lines = Path(__file__).read_text().splitlines()
    assert (told["op"], told["kind"], told["step"]) == ("log", "log", bad + 1)
    assert lines[told["line"] - 1].endswith("# the log")


def birth(function: Callable[..., Any], *arguments: Any) -> tuple[str | None, list[str]]:
    flat = Tracer().run(lambda *a: [function(*a)], arguments, [f"argument {i}" for i in range(len(arguments))])
    event, blamed = origin(flat)
    return (event.op if event is not None else None), blamed


ONE = jnp.ones((3,))
CASES = {
    "sqrt of a negative number": (lambda x: jnp.sqrt(x - 2).sum(), "sqrt"),
    "zero by zero": (lambda x: ((x - 1) / (x - 1)).sum(), "div"),
    "exp overflows": (lambda x: jnp.exp(x * 1000).mean(), "exp"),
    "slope of the norm at zero": (lambda x: jax.grad(lambda z: jnp.sqrt(jnp.sum(z * z)))(x - 1).sum(), "div"),
    "within a scan": (lambda x: jax.lax.scan(lambda c, t: (jnp.log(c - t), c), x.sum(), x * 2)[0], "log"),
    "within a branch": (lambda x: jax.lax.cond(x[0] > 0, lambda z: jnp.log(z - 1), lambda z: z, x).sum(), "log"),
    "within a loop": (
        lambda x: jax.lax.fori_loop(0, 4, lambda i, z: jnp.log(z), x * 1.5).sum(),
        "log",
    ),
    "under jit, grad and remat": (jax.jit(jax.grad(jax.checkpoint(lambda x: jnp.log(x - 1).sum()))), "div"),
}


@pytest.mark.parametrize("name", CASES)
def test_births(name: str) -> None:
    function, wanted = CASES[name]
    op, blamed = birth(function, ONE)
    assert op == wanted
    assert not blamed


def test_a_mask_of_minus_infinity_is_no_birth() -> None:
    masked = jnp.where(jnp.array([True, False, True]), ONE, -jnp.inf)
    assert birth(lambda x: jax.nn.softmax(jnp.where(x > 0, x, -jnp.inf)).sum() + jnp.log(x - 2).sum(), ONE)[0] == "log"
    op, blamed = birth(lambda m: jax.nn.softmax(m - m).sum(), masked)
    assert op is None
    assert blamed == ["argument 0"]


def test_all_masked_rows_become_nan_where_they_meet() -> None:
    op, _ = birth(lambda x: jax.nn.softmax(jnp.where(x > 5, x, -jnp.inf)).sum(), ONE)
    assert op == "sub"


def test_a_step_of_any_shape_is_watched(tmp_path: Path) -> None:
    step = watch(lambda x: x * 2, record_to=str(tmp_path / "a"))
    assert step(3.0) == 6.0
    other = watch(lambda *, x: {"y": [x]}, record_to=str(tmp_path / "b"))
    assert other(x="text") == {"y": ["text"]}
    with pytest.raises(ZeroDivisionError):
        watch(lambda x: x / 0, record_to=str(tmp_path / "c"))(1)
    assert "ZeroDivisionError" in (tmp_path / "c/traceback-rank0.txt").read_text()


def test_gradients_on_request(tmp_path: Path) -> None:
    step, state = make_step()
    observed = watch(
        step,
        record_to=str(tmp_path / "rec"),
        gradients=jax.jit(lambda p, s, x, y: jax.grad(log_of_probability)(p, x, y)),
    )
    train(observed, state)
    observed.close()
    found = {name for run in diagnose([tmp_path / "rec"]).runs for name in run.metrics}
    assert {"grad_norm", "grad_norm/head"} <= found
