import os
import torch

torch.save(torch.nn.Linear(256, 256).state_dict(), "model.pt")
os.truncate("model.pt", os.path.getsize("model.pt") - 1000)
model = torch.nn.Linear(256, 256)
model.load_state_dict(torch.load("model.pt"))
