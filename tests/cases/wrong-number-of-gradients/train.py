import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, factor):
        return x * factor

    @staticmethod
    def backward(ctx, grad):
        return grad


x = torch.ones(3, requires_grad=True)
Scale.apply(x, torch.tensor(2.0)).sum().backward()
