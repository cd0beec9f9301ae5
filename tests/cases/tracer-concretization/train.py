import jax
import jax.numpy as jnp


@jax.jit
def huber(x, delta):
    if jnp.abs(x).max() < delta:
        return 0.5 * x**2
    return delta * (jnp.abs(x) - 0.5 * delta)


print(huber(jnp.array([0.1, 3.0]), 1.0))
