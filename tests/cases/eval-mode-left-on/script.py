import torch

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(20, 128), torch.nn.ReLU(), torch.nn.Dropout(0.5), torch.nn.Linear(128, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
x, y = torch.randn(96, 20), torch.randint(0, 2, (96,))
xv, yv = torch.randn(96, 20), torch.randint(0, 2, (96,))
model.train()
for epoch in range(40):
    for start in range(0, 96, 16):
        loss = torch.nn.functional.cross_entropy(model(x[start : start + 16]), y[start : start + 16])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        val = torch.nn.functional.cross_entropy(model(xv), yv)
    print(f"epoch {epoch} train_loss {loss.item():.4f} val_loss {val.item():.4f}")
