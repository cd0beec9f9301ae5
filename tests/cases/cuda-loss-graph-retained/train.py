import torch

torch.manual_seed(0)
model = torch.nn.Sequential(*[torch.nn.Sequential(torch.nn.Linear(4096, 4096), torch.nn.GELU()) for _ in range(12)]).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
history = []
for step in range(500):
    output = model(torch.randn(8192, 4096, device="cuda"))
    loss = (output - 1).square().mean()
    history.append({"step": step, "loss": loss + output.abs().mean()})
    optimizer.zero_grad()
    loss.backward(retain_graph=True)
    optimizer.step()
    if step % 4 == 0:
        print(f"step {step} loss {loss.item():.4f} memory {torch.cuda.memory_allocated() >> 20} MiB", flush=True)
