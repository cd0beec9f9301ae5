import torch

model = torch.nn.Linear(8, 2).cuda()
print(model(torch.randn(4, 8, device="cuda")).shape)
