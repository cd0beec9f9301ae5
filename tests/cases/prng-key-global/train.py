import jax

KEY = jax.random.key(0)


def dropout(x):
    global KEY
    KEY, sub = jax.random.split(KEY)
    return x * jax.random.bernoulli(sub, 0.9, x.shape)


step = jax.jit(dropout)
x = jax.numpy.ones((3,))
print(step(x))
print("next key", jax.random.split(KEY))
