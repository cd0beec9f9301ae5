import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
lstm = nn.LSTM(12, 20)
readings = torch.randn(8, 50, 12)  # (batch, time, sensors)
state = (torch.zeros(1, 8, 20), torch.zeros(1, 8, 20))
out, state = lstm(readings, state)
