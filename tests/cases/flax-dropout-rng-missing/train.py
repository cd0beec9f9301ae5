import flax.linen as nn
import jax
import jax.numpy as jnp


class Net(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.Dropout(0.1, deterministic=False)(nn.Dense(4)(x))


net = Net()
params = net.init({"params": jax.random.key(0), "dropout": jax.random.key(1)}, jnp.ones((1, 3)))
print("eval", net.apply(params, jnp.ones((1, 3))))
