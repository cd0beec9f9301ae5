import torch
from torch.utils.data import DataLoader, Dataset


class Photos(Dataset):
    def __init__(self, names):
        self.names = names

    def __len__(self):
        return len(self.names)

    def load(self, name):
        if "broken" in name:
            print("cannot read", name)
            return None
        return torch.rand(3, 8, 8)

    def __getitem__(self, i):
        return {"image": self.load(self.names[i]), "label": i % 2}


names = [f"img_{i}.jpg" for i in range(11)] + ["broken_11.jpg"]
for epoch in range(2):
    for batch in DataLoader(Photos(names), batch_size=4):
        print(epoch, batch["image"].shape)
