import torch
import yaml

config = yaml.safe_load("lr: 1e-3\nsteps: 20\n")
model = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=config["lr"])
warmed = config["lr"] * 0.1
