import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
head = nn.Linear(6, 1)
data = torch.randn(33, 6)
for start in range(0, 33, 8):
    out = head(data[start : start + 8])
    values = [float(v) for v in out.squeeze()]
    print("batch", start, "first", values[0])
