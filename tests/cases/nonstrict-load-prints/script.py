import torch


def build():
    return torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.ReLU(), torch.nn.Linear(32, 2))


torch.manual_seed(0)
x = torch.randn(256, 8)
y = (x[:, 0] > 0).long()
model = build()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(100):
    loss = torch.nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("accuracy before saving", (model(x).argmax(1) == y).float().mean().item())
torch.save({"backbone." + k: v for k, v in model.state_dict().items()}, "model.pt")
restored = build()
print(restored.load_state_dict(torch.load("model.pt"), strict=False))
print("accuracy after loading", (restored(x).argmax(1) == y).float().mean().item())
