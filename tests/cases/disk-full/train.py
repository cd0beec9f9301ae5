import torch

model = torch.nn.Linear(2048, 2048)
for step in (100, 200, 300):
    torch.save(model.state_dict(), f"/mnt/small/checkpoint-{step}.pt")
    print("saved", step)
