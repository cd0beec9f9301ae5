import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
p = torch.full((2, 5), float("nan"), device="cuda")
print(torch.multinomial(p, 1).tolist())
