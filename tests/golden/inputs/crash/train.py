"""A small classifier whose labels count from 1: it was run once, and its output is train.log."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

NUM_CLASSES = 5


def make_data(rows=256):
    generator = torch.Generator().manual_seed(0)
    features = torch.randn(rows, 16, generator=generator)
    labels = torch.randint(1, NUM_CLASSES + 1, (rows,), generator=generator)
    return TensorDataset(features, labels)


def train_one_epoch(model, loader, optimizer):
    for step, (features, labels) in enumerate(loader):
        logits = model(features)
        loss = F.cross_entropy(logits, labels)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        print(f"step {step} loss {loss.item():.4f}", flush=True)


def main():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, NUM_CLASSES))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    print("training on cpu, 256 rows", flush=True)
    train_one_epoch(model, DataLoader(make_data(), batch_size=32), optimizer)


if __name__ == "__main__":
    main()
