import torch

model = torch.nn.Linear(16, 10).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(5):
    x, y = torch.randn(32, 16, device="cuda"), torch.randint(1, 11, (32,), device="cuda")
    loss = torch.nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    print(step, loss.item())
