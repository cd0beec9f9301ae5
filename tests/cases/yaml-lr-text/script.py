import torch
import yaml

config = yaml.safe_load("model: {width: 32}\noptimizer:\n  lr: 3e-4\n  weight_decay: 1e-2\n")
model = torch.nn.Linear(config["model"]["width"], 2)
optimizer = torch.optim.AdamW(model.parameters(), lr=config["optimizer"]["lr"], weight_decay=config["optimizer"]["weight_decay"])
