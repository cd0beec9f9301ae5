import numpy
import torch

torch.save({"step": 100, "best": numpy.float64(0.81), "mean": numpy.zeros(3)}, "stats.pt")
state = torch.load("stats.pt")
