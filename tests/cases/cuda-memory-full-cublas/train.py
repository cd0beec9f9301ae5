import torch
x = torch.ones(8, 8, device="cuda")
blocks = []
for size in (64 << 20, 2 << 20):
    try:
        while True:
            blocks.append(torch.empty(size, dtype=torch.uint8, device="cuda"))
    except torch.OutOfMemoryError:
        pass
print((x @ x.t()).sum().item())
