import torch

model = torch.compile(torch.nn.Linear(6, 3))
torch.save(model.state_dict(), "compiled.pt")
plain = torch.nn.Linear(6, 3)
plain.load_state_dict(torch.load("compiled.pt"))
