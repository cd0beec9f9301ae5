import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 8, 3, padding=1)
        self.fc = nn.Linear(8 * 14 * 14, 10)

    def forward(self, x):
        h = F.max_pool2d(self.conv(x).relu(), 2)
        return self.fc(h.flatten(1))


print(Net()(torch.randn(2, 1, 28, 28)).shape)
print(Net()(torch.randn(2, 1, 32, 32)).shape)
