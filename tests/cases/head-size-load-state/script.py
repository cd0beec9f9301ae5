import torch

net = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 10))
torch.save(net.state_dict(), "ten.pt")
other = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 4))
other.load_state_dict(torch.load("ten.pt"))
