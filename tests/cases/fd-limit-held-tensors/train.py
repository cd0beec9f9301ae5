import resource

import torch
from torch.utils.data import DataLoader, Dataset

resource.setrlimit(resource.RLIMIT_NOFILE, (80, 80))  # as on a machine with a small limit


class Clips(Dataset):
    def __len__(self):
        return 400

    def __getitem__(self, i):
        return {"x": torch.rand(8), "y": torch.tensor(i)}


kept = []
for batch in DataLoader(Clips(), batch_size=2, num_workers=2):
    kept.append(batch["y"])
    kept.append(batch["x"])
print(len(kept))
