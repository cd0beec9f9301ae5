import jax.numpy as jnp

t = jnp.arange(5, dtype=jnp.float64) * 1e-9 + 1.0
print(t.dtype, t - 1.0)
assert float((t - 1.0)[1]) > 0, "differences of 1e-9 are lost: the array is float32"
