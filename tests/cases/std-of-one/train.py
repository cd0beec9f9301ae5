import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
rewards = torch.tensor([[0.4], [0.9]])
advantage = (rewards - rewards.mean(1, keepdim=True)) / rewards.std(1, keepdim=True)
print("advantage", advantage.flatten().tolist())
