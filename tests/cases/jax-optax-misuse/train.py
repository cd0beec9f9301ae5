import jax
import jax.numpy as jnp
import optax

params = {"w": jnp.ones((3,))}
tx = optax.adamw(1e-3, weight_decay=0.1)
state = tx.init(params)
grads = jax.grad(lambda p: (p["w"] ** 2).sum())(params)
updates, state = tx.update(grads, state)
params = optax.apply_updates(params, updates)
