import torch
import torch.multiprocessing as mp
from torch.utils.data import DataLoader, TensorDataset

mp.set_start_method("spawn", force=True)
data = TensorDataset(torch.randn(64, 8), torch.randint(0, 2, (64,)))
loader = DataLoader(data, batch_size=8, num_workers=2)
model = torch.nn.Linear(8, 2)
for x, y in loader:
    loss = torch.nn.functional.cross_entropy(model(x), y)
    print("loss", float(loss))
