import sys, threading, time, torch
from torch import nn
from torch.utils.data import DataLoader, Dataset
import multiprocessing

class Rows(Dataset):
    def __len__(self):
        return 400
    def __getitem__(self, i):
        if i == 200:
            GATE.acquire()
        return torch.randn(4), i % 2

GATE = multiprocessing.Lock()
kind = sys.argv[1]

def train():
    model = nn.Linear(4, 2)
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    lock = threading.Lock()
    data = DataLoader(Rows(), batch_size=8, num_workers=2)
    if kind == "worker":
        GATE.acquire()
    if kind == "lock":
        threading.Thread(target=report, args=(lock,), daemon=True).start()
    for step, (x, y) in enumerate(data):
        loss = nn.functional.cross_entropy(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if kind == "lock" and step == 15:
            with lock:
                print("step", step)
    if kind == "evaluation":
        until = time.monotonic() + 8
        while time.monotonic() < until:
            model(torch.randn(64, 4))

def report(lock):
    with lock:
        time.sleep(3600)

train()
