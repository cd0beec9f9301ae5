import multiprocessing as mp

import torch
from torch.utils.data import DataLoader, TensorDataset


def main():
    queue = mp.Queue()  # fixes the start method
    mp.set_start_method("spawn")
    loader = DataLoader(TensorDataset(torch.randn(8, 2)), batch_size=4, num_workers=2)
    for (x,) in loader:
        queue.put(x.sum().item())


if __name__ == "__main__":
    main()
