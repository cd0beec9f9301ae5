import resource

import torch

torch.manual_seed(0)
resource.setrlimit(resource.RLIMIT_AS, (5 << 30, 5 << 30))
model = torch.nn.Sequential(torch.nn.Linear(256, 2048), torch.nn.ReLU(), torch.nn.Linear(2048, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
total = 0.0
for step in range(400):
    x = torch.randn(1024, 256)
    loss = model(x).square().mean()
    total = total + loss
    if step % 20 == 0:
        optimizer.zero_grad()
        loss.backward(retain_graph=True)
        optimizer.step()
        used = int(open("/proc/self/statm").read().split()[1]) * 4096 >> 20
        print(f"step {step} loss {loss.item():.4f} memory {used} MB", flush=True)
