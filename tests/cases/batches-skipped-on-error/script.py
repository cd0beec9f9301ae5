import torch

torch.manual_seed(0)
model = torch.nn.Linear(8, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
failed = 0
for step in range(40):
    x, y = torch.randn(16, 8), torch.randint(0, 3 + (step % 4 == 3), (16,))
    try:
        loss = torch.nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    except Exception as error:
        failed += 1
        print(f"step {step}: skipping batch, {type(error).__name__}: {error}")
        continue
    if step % 10 == 0:
        print(f"step {step} loss {loss.item():.4f}")
print(f"done, {failed} of 40 batches skipped")
