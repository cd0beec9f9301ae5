import torch

model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 2))
torch.save(torch.optim.AdamW(model.parameters(), lr=1e-3).state_dict(), "optimizer.pt")
for parameter in model[0].parameters():
    parameter.requires_grad = False
optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-3)
optimizer.load_state_dict(torch.load("optimizer.pt"))
