import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
net = nn.Linear(4, 2)
opt = torch.optim.Adam(net.parameters())
net(torch.randn(3, 4)).sum().backward()
opt.step()
net.cuda()
net(torch.randn(3, 4, device="cuda")).sum().backward()
opt.step()
