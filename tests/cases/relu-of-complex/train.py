import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
spectrum = torch.fft.fft(torch.randn(4, 16))
h = F.max_pool1d(spectrum, 2)
