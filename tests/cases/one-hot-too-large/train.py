import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
labels = torch.tensor([0, 3, 4])
y = F.one_hot(labels, num_classes=4)
