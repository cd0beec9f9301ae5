import torch

torch.save(torch.nn.Linear(6, 3).state_dict(), "weights.pth")
model = torch.nn.DataParallel(torch.nn.Linear(6, 3))
model.load_state_dict(torch.load("weights.pth"))
