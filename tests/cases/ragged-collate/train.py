import torch
from torch.utils.data import DataLoader, Dataset


class Sentences(Dataset):
    lengths = [7, 7, 12, 5, 9, 9, 3, 8]

    def __len__(self):
        return len(self.lengths)

    def __getitem__(self, i):
        return torch.randint(0, 100, (self.lengths[i],)), i % 2


embed = torch.nn.EmbeddingBag(100, 16)
for tokens, labels in DataLoader(Sentences(), batch_size=4, num_workers=1):
    print(embed(tokens).shape)
