import torch
from torch.utils.data import DataLoader, Dataset


class Points(Dataset):
    def __len__(self):
        return 16

    def __getitem__(self, i):
        return torch.rand(128, 3).to("cuda")  # moved to the GPU inside the worker


model = torch.nn.Linear(3, 8).cuda()
for points in DataLoader(Points(), batch_size=4, num_workers=2):
    print(model(points).mean().item())
