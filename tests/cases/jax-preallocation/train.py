import torch

features = torch.empty(int(0.5 * torch.cuda.get_device_properties(0).total_memory), dtype=torch.uint8, device="cuda")
print("torch holds", features.numel() >> 30, "GiB")
import jax
import jax.numpy as jnp

x = jnp.ones((24, 1 << 15, 1 << 15), jnp.float32)
print((x @ x.swapaxes(1, 2)).sum())
