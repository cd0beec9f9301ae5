import torch

blocks, total = [], torch.cuda.get_device_properties(0).total_memory
# documents of varying length: buffers of varying size, half of them released
for i in range(100_000):
    if torch.cuda.memory_reserved() > 0.93 * total:
        break
    blocks.append(torch.empty((5 + i % 4) * 2**20, dtype=torch.uint8, device="cuda"))
del blocks[::2]
print("allocated", torch.cuda.memory_allocated() >> 20, "MiB, reserved", torch.cuda.memory_reserved() >> 20, "MiB")
hidden = torch.empty(int(0.3 * total), dtype=torch.uint8, device="cuda")
