from omegaconf import OmegaConf
import torch

torch.save({"cfg": OmegaConf.create({"lr": 1e-3}), "weights": torch.nn.Linear(2, 2).state_dict()}, "epoch_3.ckpt")
torch.load("epoch_3.ckpt")
