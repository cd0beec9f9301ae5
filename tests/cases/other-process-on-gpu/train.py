import torch

model = torch.nn.Linear(4096, 4096).cuda()
x = torch.randn(8192, 4096, device="cuda")
for step in range(3):
    y = torch.cat([model(x).relu() for _ in range(40)])
    print(step, y.mean().item())
