import torch
from torch.utils.data import DataLoader, Dataset

CLASSES = {"cat": 0, "dog": 1}
ROWS = [("a.png", "cat"), ("b.png", "dog"), ("c.png", "Dog"), ("d.png", "cat")]


class Pets(Dataset):
    def __len__(self):
        return len(ROWS)

    def __getitem__(self, i):
        name, label = ROWS[i]
        return torch.rand(3, 4, 4), CLASSES[label]


for image, target in DataLoader(Pets(), batch_size=2, num_workers=2):
    print(target)
