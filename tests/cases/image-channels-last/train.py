import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
import numpy as np

images = np.random.rand(16, 48, 64, 3).astype("float32")
conv = nn.Conv2d(3, 8, 3)
features = conv(torch.from_numpy(images))
