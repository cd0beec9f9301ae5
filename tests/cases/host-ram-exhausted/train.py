import resource

import torch

resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))  # a job's memory limit
features = []
for shard in range(40):
    features.append(torch.zeros(64, 1024, 1024))  # 256 MB each
    print("loaded shard", shard)
