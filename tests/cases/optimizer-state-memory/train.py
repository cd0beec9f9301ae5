import torch

total = torch.cuda.get_device_properties(0).total_memory
layers = int(total * 0.80 / (2 * 4 * 8192 * 8192))  # weights and gradients take 80% of the card
model = torch.nn.Sequential(*[torch.nn.Linear(8192, 8192, device="cuda") for _ in range(layers)])
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
for step in range(3):
    loss = model(torch.randn(4, 8192, device="cuda")).square().mean()
    loss.backward()
    print("backward done, memory", torch.cuda.memory_allocated() >> 30, "GiB")
    optimizer.step()
    optimizer.zero_grad()
