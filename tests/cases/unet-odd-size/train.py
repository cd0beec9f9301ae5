import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
down, up = nn.Conv2d(3, 8, 3, stride=2, padding=1), nn.ConvTranspose2d(8, 8, 2, stride=2)
skip = nn.Conv2d(3, 8, 1)
x = torch.randn(1, 3, 101, 75)
y = up(down(x)) + skip(x)
