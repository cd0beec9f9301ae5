import torch
import torch.distributed as dist

dist.init_process_group("nccl")
torch.cuda.set_device(0)  # the local rank was forgotten
x = torch.ones(4, device="cuda")
dist.all_reduce(x)
print(x)
