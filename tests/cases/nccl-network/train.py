import torch.distributed as dist

# the first node's address is not reachable from here
dist.init_process_group("gloo", init_method="tcp://127.0.0.1:29741", rank=1, world_size=2,
                        timeout=__import__("datetime").timedelta(seconds=10))
print("connected")
