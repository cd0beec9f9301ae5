import jax.numpy as jnp

table = jnp.zeros((4, 3))
for row in range(4):
    table[row, 0] = row
print(table)
