import torch

model = torch.nn.DataParallel(torch.nn.Linear(6, 3))
torch.save({"epoch": 12, "model": model.state_dict()}, "best.pth")
single = torch.nn.Linear(6, 3)
single.load_state_dict(torch.load("best.pth")["model"])
