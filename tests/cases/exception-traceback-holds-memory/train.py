import torch

total = torch.cuda.get_device_properties(0).total_memory


def attention(rows):
    scores = torch.empty(int(0.6 * total), dtype=torch.uint8, device="cuda")
    return torch.cat([scores[: rows], torch.empty(int(0.5 * total), dtype=torch.uint8, device="cuda")])


try:
    attention(1000)
except torch.OutOfMemoryError:
    print("out of memory, retrying with a smaller batch")
    torch.cuda.empty_cache()
    smaller = torch.empty(int(0.5 * total), dtype=torch.uint8, device="cuda")
