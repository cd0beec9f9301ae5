import torch

torch.manual_seed(0)
model = torch.nn.Sequential(*[torch.nn.Sequential(torch.nn.Linear(4096, 4096), torch.nn.GELU()) for _ in range(24)]).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)


def validate():
    losses = []
    for batch in range(200):
        x = torch.randn(8192, 4096, device="cuda")
        losses.append(model(x).square().mean())
        if batch % 2 == 0:
            print("validation batch", batch, "memory", torch.cuda.memory_allocated() >> 20, "MiB", flush=True)
    return torch.stack(losses).mean()


for step in range(3):
    loss = model(torch.randn(8192, 4096, device="cuda")).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print("train step", step, "memory", torch.cuda.memory_allocated() >> 20, "MiB")
model.eval()
print("validation loss", validate())
