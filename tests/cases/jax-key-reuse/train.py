import jax

jax.config.update("jax_debug_key_reuse", True)
key = jax.random.key(0)
w1 = jax.random.normal(key, (4,))
w2 = jax.random.normal(key, (4,))
print(w1, w2)
