import argparse
import torch

args = argparse.Namespace(lr=3e-4, depth=12)
torch.save({"model": torch.nn.Linear(2, 2).state_dict(), "args": args}, "checkpoint.pth")
state = torch.load("checkpoint.pth", map_location="cpu")
