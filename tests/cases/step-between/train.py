import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
gen, disc = nn.Linear(4, 4), nn.Linear(4, 1)
opt = torch.optim.SGD(disc.parameters(), lr=0.1)
fake = gen(torch.randn(8, 4))
score = disc(fake)
score.mean().backward(retain_graph=True)
opt.step()
(-score.mean()).backward()
