import torch

device = "cuda"
model = torch.nn.TransformerEncoder(
    torch.nn.TransformerEncoderLayer(2048, 16, 8192, batch_first=True, dropout=0.0), 24).to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
for step in range(10):
    x = torch.randn(256, 1024, 2048, device=device)
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print("step", step, loss.item())
