import flax.linen as nn
import jax
import jax.numpy as jnp


class Net(nn.Module):
    @nn.compact
    def __call__(self, x, train):
        x = nn.Dense(8)(x)
        x = nn.BatchNorm(use_running_average=not train)(x)
        return nn.Dense(1)(x)


net = Net()
x = jnp.ones((4, 3))
variables = net.init(jax.random.key(0), x, train=False)
loss = lambda params: net.apply({"params": params, "batch_stats": variables["batch_stats"]}, x, train=True).mean()
print(jax.grad(loss)(variables["params"]))
