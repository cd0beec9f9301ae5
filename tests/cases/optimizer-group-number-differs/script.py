import torch

model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 2))
torch.save(torch.optim.AdamW(model.parameters(), lr=1e-3).state_dict(), "optimizer.pt")
optimizer = torch.optim.AdamW([{"params": model[0].parameters(), "weight_decay": 0.0}, {"params": model[1].parameters()}], lr=1e-3)
optimizer.load_state_dict(torch.load("optimizer.pt"))
