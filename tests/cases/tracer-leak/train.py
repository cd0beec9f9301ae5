import jax
import jax.numpy as jnp


class Model:
    def __init__(self):
        self.w = jnp.ones((4,))
        self.last_hidden = jnp.zeros((4,))

    def loss(self, w, x):
        self.last_hidden = w * x
        return (self.last_hidden**2).mean()


model = Model()
step = jax.jit(jax.value_and_grad(model.loss))
loss, grad = step(model.w, jnp.arange(4.0))
print("train loss", loss)
print("hidden norm", jnp.linalg.norm(model.last_hidden))
