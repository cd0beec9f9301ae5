import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
cov = torch.tensor([[1.0, 2.0], [2.0, 1.0]])
factor = torch.linalg.cholesky(cov)
