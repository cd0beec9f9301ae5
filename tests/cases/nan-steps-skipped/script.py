import torch

torch.manual_seed(0)
model = torch.nn.Linear(6, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for step in range(60):
    x = torch.randn(16, 6)
    target = torch.relu(x.sum(1, keepdim=True) + 4.0)
    loss = (torch.log(model(x).exp()) - torch.log(target)).pow(2).mean()
    if not torch.isfinite(loss):
        print(f"step {step}: non-finite loss, skipping")
        continue
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step} loss {loss.item():.4f}")
