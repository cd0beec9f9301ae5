"""Questions about data, asked of programs in several spellings. ``# here`` marks the line; without one all is well."""

from __future__ import annotations

import textwrap

import pytest

from marked import answered, marked
from trainwreck.code.rehearsal.questions import Question
from trainwreck.code.rehearsal.questions.balance import outweighed
from trainwreck.code.rehearsal.questions.blocks import sorted_batches
from trainwreck.code.rehearsal.questions.copies import before_the_split
from trainwreck.code.rehearsal.questions.distorting import distorted
from trainwreck.code.rehearsal.questions.evaluation import chosen_on_test, scaled_apart
from trainwreck.code.rehearsal.questions.inplace import overwritten
from trainwreck.code.rehearsal.questions.order import misaligned
from trainwreck.code.rehearsal.questions.scale import large_inputs, large_targets
from trainwreck.code.rehearsal.questions.splits import held_out_in_training, statistics_of_everything

HEAD = """
import numpy as np, torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, Subset, TensorDataset, random_split
"""
FIT = """
net = nn.Linear(8, 1)
opt = torch.optim.Adam(net.parameters(), 1e-3)
def fit(train, held):
    for epoch in range(30):
        net.train()
        for x, y in train:
            loss = ((net(x).squeeze(-1) - y) ** 2).mean()
            opt.zero_grad(); loss.backward(); opt.step()
        net.eval()
        with torch.no_grad():
            print(sum(((net(x).squeeze(-1) - y) ** 2).mean().item() for x, y in held))
"""
ARRAYS = """
rng = np.random.default_rng(0)
x = rng.normal(5, 3, size=(1000, 8)).astype(np.float32)
y = x.sum(1)
"""
PAIRS = "def pairs(a, b): return DataLoader(TensorDataset(torch.tensor(a), torch.tensor(b)), 32, shuffle=True)\n"

CASES: list[tuple[Question, str]] = [
    (
        statistics_of_everything,
        ARRAYS + PAIRS + FIT
        + """
mu, sd = x.mean(0), x.std(0)  # here
x = (x - mu) / sd
cut = int(0.8 * len(x))
fit(pairs(x[:cut], y[:cut]), pairs(x[cut:], y[cut:]))
""",
    ),
    (
        statistics_of_everything,
        ARRAYS + PAIRS + FIT
        + """
cut = int(0.8 * len(x))
mu, sd = x[:cut].mean(0), x[:cut].std(0)
x = (x - mu) / sd
fit(pairs(x[:cut], y[:cut]), pairs(x[cut:], y[cut:]))
""",
    ),
    (
        statistics_of_everything,
        ARRAYS + PAIRS + FIT
        + """
from sklearn.preprocessing import StandardScaler
class Prepared:
    def __init__(self, x, y):
        self.scaler = StandardScaler()
        self.x, self.y = self.scaler.fit_transform(x), y  # here
    def split(self, fraction):
        idx = np.random.permutation(len(self.x))
        n = int(fraction * len(idx))
        return (self.x[idx[n:]], self.y[idx[n:]]), (self.x[idx[:n]], self.y[idx[:n]])
train, held = Prepared(x, y).split(0.2)
fit(pairs(*train), pairs(*held))
""",
    ),
    (
        statistics_of_everything,
        ARRAYS + PAIRS + FIT
        + """
from sklearn.preprocessing import StandardScaler
from sklearn.model_selection import train_test_split
a, b, c, d = train_test_split(x, y, test_size=0.2)
scaler = StandardScaler().fit(a)
fit(pairs(scaler.transform(a), c), pairs(scaler.transform(b), d))
""",
    ),
    (
        statistics_of_everything,
        ARRAYS + FIT
        + """
class Rows(Dataset):
    def __init__(self, x, y):
        x = torch.from_numpy(x)
        self.x = (x - x.min(dim=0).values) / (x.max(dim=0).values - x.min(dim=0).values)  # here
        self.y = torch.from_numpy(y)
    def __len__(self): return len(self.y)
    def __getitem__(self, i): return self.x[i], self.y[i]
train, held = random_split(Rows(x, y), [800, 200])
fit(DataLoader(train, 32, shuffle=True), DataLoader(held, 100))
""",
    ),
    (
        statistics_of_everything,
        ARRAYS + FIT
        + """
class Rows(Dataset):
    def __init__(self, x, y):
        x = torch.from_numpy(x)
        self.x = (x - x.mean(dim=1, keepdim=True)) / x.std(dim=1, keepdim=True)
        self.y = torch.from_numpy(y)
    def __len__(self): return len(self.y)
    def __getitem__(self, i): return self.x[i], self.y[i]
train, held = random_split(Rows(x, y), [800, 200])
fit(DataLoader(train, 32, shuffle=True), DataLoader(held, 100))
""",
    ),
    (
        statistics_of_everything,
        ARRAYS + FIT
        + """
def series(n):
    s = torch.randn(n).cumsum(0)
    return (s - s.mean()) / s.std()
s = series(4000)  # here
def windows(s):
    return [(s[i : i + 8], s[i + 8]) for i in range(len(s) - 8)]
fit(DataLoader(windows(s[:3000]), 16, shuffle=True), DataLoader(windows(s[3000:]), 16))
""",
    ),
    (
        held_out_in_training,
        ARRAYS + PAIRS + FIT
        + """
order = rng.permutation(len(x))
val_idx = order[:200]
train_idx = order
fit(pairs(x[train_idx], y[train_idx]), pairs(x[val_idx], y[val_idx]))
""".replace("val_idx = order[:200]", "val_idx = order[:200]  # here"),
    ),
    (
        held_out_in_training,
        ARRAYS + PAIRS + FIT
        + """
x_train, y_train = x[:900], y[:900]
x_test, y_test = x[700:], y[700:]  # here
fit(pairs(x_train, y_train), pairs(x_test, y_test))
""",
    ),
    (
        held_out_in_training,
        ARRAYS + PAIRS + FIT
        + """
x_train, y_train = x[:-200], y[:-200]
x_test, y_test = x[-200:], y[-200:]
fit(pairs(x_train, y_train), pairs(x_test, y_test))
shown = x_train[:100], y_train[:100]
with torch.no_grad():
    print("fit", net(torch.tensor(shown[0])).mean())
""",
    ),
    (
        held_out_in_training,
        ARRAYS + FIT
        + """
data = TensorDataset(torch.tensor(x), torch.tensor(y))
test_part = Subset(data, range(800, 1000))  # here
fit(DataLoader(data, 32, shuffle=True), DataLoader(test_part, 100))
""",
    ),
    (
        held_out_in_training,
        ARRAYS + FIT
        + """
data = TensorDataset(torch.tensor(x), torch.tensor(y))
train_part, test_part = random_split(data, [800, 200], generator=torch.Generator().manual_seed(0))
fit(DataLoader(train_part, 32, shuffle=True), DataLoader(test_part, 100))
""",
    ),
    (
        misaligned,
        ARRAYS + PAIRS + FIT
        + """
def balanced(x, y):
    order = np.argsort(y)
    return x[order], y  # here
a, b = balanced(x, y)
fit(pairs(a[:800], b[:800]), pairs(a[800:], b[800:]))
""",
    ),
    (
        misaligned,
        ARRAYS
        + FIT
        + """
class Batches:
    def __init__(self, x, y, size): self.x, self.y, self.size = torch.tensor(x), torch.tensor(y), size
    def __iter__(self):
        picked = torch.randperm(len(self.x))
        for i in range(0, len(self.x), self.size):
            rows = picked[i : i + self.size]
            yield self.x[rows], self.y[i : i + self.size]  # here
fit(Batches(x, y, 32), Batches(x, y, 32))
""",
    ),
    (
        misaligned,
        ARRAYS
        + FIT
        + """
class Batches:
    def __init__(self, x, y, size): self.x, self.y, self.size = torch.tensor(x), torch.tensor(y), size
    def __iter__(self):
        picked = torch.randperm(len(self.x))
        for i in range(0, len(self.x), self.size):
            rows = picked[i : i + self.size]
            yield self.x[rows], self.y[rows]
fit(Batches(x, y, 32), Batches(x, y, 32))
""",
    ),
    (
        misaligned,
        ARRAYS
        + """
net = nn.Linear(8, 1)
xs, ys = torch.tensor(x), torch.tensor(y)
for step in range(100):
    idx = torch.randint(0, 1000, (32,))
    a, b = xs[idx], ys[idx]
    mix = torch.randperm(32)
    lam = np.random.beta(0.3, 0.3)
    mixed = lam * a + (1 - lam) * a[mix]
    out = net(mixed).squeeze(-1)
    loss = lam * ((out - b) ** 2).mean() + (1 - lam) * ((out - b[mix]) ** 2).mean()
    loss.backward()
""",
    ),
    (
        scaled_apart,
        ARRAYS + """
net = nn.Sequential(nn.Linear(8, 4), nn.ReLU(), nn.Linear(4, 1))
x, y = torch.tensor(x), torch.tensor(y)
tr, te = x[:800], x[800:]  # here
mu, sd = tr.mean(0), tr.std(0)
for epoch in range(20):
    for rows in torch.randperm(800).split(32):
        ((net((tr[rows] - mu) / sd).squeeze(-1) - y[rows]) ** 2).mean().backward()
with torch.no_grad():
    print(((net(te).squeeze(-1) - y[800:]) ** 2).mean())
""",
    ),
    (
        scaled_apart,
        ARRAYS + """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 1)
    def forward(self, x): return self.fc(x).squeeze(-1)
def batches(x, y, size):
    for i in range(0, len(x), size):
        yield torch.tensor(x[i : i + size]) / 255.0, torch.tensor(y[i : i + size])
def score(net, x, y):
    net.eval()
    with torch.no_grad():
        inputs = torch.tensor(x)  # here
        return (net(inputs) - torch.tensor(y)).abs().mean()
net = Net()
for epoch in range(10):
    net.train()
    for a, b in batches(x[:800], y[:800], 32):
        (net(a) - b).pow(2).mean().backward()
    print(score(net, x[800:], y[800:]))
""",
    ),
    (
        scaled_apart,
        ARRAYS + """
class Net(nn.Module):
    def __init__(self, mu, sd):
        super().__init__()
        self.fc = nn.Linear(8, 1)
        self.register_buffer("mu", mu)
        self.register_buffer("sd", sd)
    def forward(self, x): return self.fc((x - self.mu) / self.sd).squeeze(-1)
x, y = torch.tensor(x), torch.tensor(y)
net = Net(x[:800].mean(0), x[:800].std(0))
def prepare(a): return a.float() / 255.0
for epoch in range(10):
    net.train()
    for rows in torch.randperm(800).split(32):
        (net(prepare(x[rows])) - y[rows]).pow(2).mean().backward()
    net.eval()
    with torch.no_grad():
        print((net(prepare(x[800:])) - y[800:]).abs().mean())
""",
    ),
    (
        scaled_apart,
        ARRAYS + """
net = nn.Linear(8, 8)
x = torch.tensor(x)
for step in range(100):
    clean = x[torch.randint(0, 800, (32,))]
    noisy = clean + 0.3 * torch.randn_like(clean)
    (net(noisy) - clean).pow(2).mean().backward()
net.eval()
with torch.no_grad():
    print((net(x[800:]) - x[800:]).abs().mean())
""",
    ),
    (
        distorted,
        ARRAYS + """
def jitter(v): return v * (1 + 0.1 * torch.randn_like(v))
class Rows(Dataset):
    def __init__(self, x, y, transform=jitter):
        self.x, self.y, self.transform = torch.tensor(x), torch.tensor(y), transform
    def __len__(self): return len(self.y)
    def __getitem__(self, i):
        v = self.x[i]
        if self.transform is not None:
            v = self.transform(v)
        return v, self.y[i]
train = Rows(x[:800], y[:800])
held = Rows(x[800:], y[800:])  # here
""" + FIT + """
fit(DataLoader(train, 32, shuffle=True), DataLoader(held, 100))
""",
    ),
    (
        distorted,
        ARRAYS + """
def jitter(v): return v * (1 + 0.1 * torch.randn_like(v))
class Rows(Dataset):
    def __init__(self, x, y, transform=None):
        self.x, self.y, self.transform = torch.tensor(x), torch.tensor(y), transform
    def __len__(self): return len(self.y)
    def __getitem__(self, i):
        v = self.x[i]
        if self.transform is not None:
            v = self.transform(v)
        return v, self.y[i]
train = Rows(x[:800], y[:800], jitter)
held = Rows(x[800:], y[800:])
""" + FIT + """
fit(DataLoader(train, 32, shuffle=True), DataLoader(held, 100))
""",
    ),
    (
        distorted,
        ARRAYS + """
net = nn.Linear(8, 1)
x, y = torch.tensor(x), torch.tensor(y)
def mask_features(v):
    keep = torch.rand(v.shape[1]) > 0.2
    return v * keep
def predict(v):
    return net(mask_features(v)).squeeze(-1)  # here
for step in range(100):
    net.train()
    rows = torch.randint(0, 800, (32,))
    (predict(x[rows]) - y[rows]).pow(2).mean().backward()
    net.eval()
    with torch.no_grad():
        print((predict(x[800:]) - y[800:]).abs().mean())
""".replace("def mask_features(v):", "def augment(v):").replace("net(mask_features(v))", "net(augment(v))"),
    ),
    (
        sorted_batches,
        """
def build(k, n):
    xs = np.concatenate([np.random.randn(n, 8) + 3 * c for c in range(k)]).astype(np.float32)
    return torch.tensor(xs), torch.tensor(np.repeat(np.arange(k), n))
a, b = build(3, 300)
net = nn.Linear(8, 3)
for epoch in range(20):
    for i in range(0, len(a), 32):
        loss = nn.functional.cross_entropy(net(a[i : i + 32]), b[i : i + 32])  # here
        loss.backward()
""",
    ),
    (
        sorted_batches,
        """
def build(k, n):
    xs = torch.cat([torch.randn(n, 8) + 3 * c for c in range(k)])
    return xs, torch.cat([torch.full((n,), c) for c in range(k)])
a, b = build(3, 300)
net = nn.Linear(8, 3)
for epoch in range(20):
    order = torch.randperm(len(a))
    for i in range(0, len(a), 32):
        rows = order[i : i + 32]
        nn.functional.cross_entropy(net(a[rows]), b[rows]).backward()
""",
    ),
    (
        sorted_batches,
        """
a, b = torch.randn(900, 8), torch.arange(3).repeat_interleave(300)
net = nn.Linear(8, 3)
loader = DataLoader(TensorDataset(a, b), batch_size=30)  # here
for u, v in loader:
    nn.functional.cross_entropy(net(u), v).backward()
""",
    ),
    (
        sorted_batches,
        """
a, b = torch.randn(900, 8), torch.arange(3).repeat_interleave(300)
net = nn.Linear(8, 3)
loader = DataLoader(TensorDataset(a, b), batch_size=30, shuffle=True)
for u, v in loader:
    nn.functional.cross_entropy(net(u), v).backward()
""",
    ),
    (
        chosen_on_test,
        ARRAYS + PAIRS + """
import copy
net = nn.Linear(8, 1)
def evaluate(net, loader):
    with torch.no_grad():
        return sum((net(a).squeeze(-1) - b).abs().mean().item() for a, b in loader)
train_loader, test_loader = pairs(x[:800], y[:800]), pairs(x[800:], y[800:])
best, best_state = 1e9, None
for epoch in range(10):
    for a, b in train_loader:
        (net(a).squeeze(-1) - b).pow(2).mean().backward()
    err = evaluate(net, test_loader)  # here
    if err < best:
        best, best_state = err, copy.deepcopy(net.state_dict())
net.load_state_dict(best_state)
print("test", evaluate(net, test_loader))
""",
    ),
    (
        chosen_on_test,
        ARRAYS + PAIRS + """
import copy
net = nn.Linear(8, 1)
def evaluate(net, loader):
    with torch.no_grad():
        return sum((net(a).squeeze(-1) - b).abs().mean().item() for a, b in loader)
train_loader, val_loader, test_loader = pairs(x[:700], y[:700]), pairs(x[700:800], y[700:800]), pairs(x[800:], y[800:])
best, best_state = 1e9, None
for epoch in range(10):
    for a, b in train_loader:
        (net(a).squeeze(-1) - b).pow(2).mean().backward()
    err = evaluate(net, val_loader)
    if err < best:
        best, best_state = err, copy.deepcopy(net.state_dict())
net.load_state_dict(best_state)
print("test", evaluate(net, test_loader))
""",
    ),
    (
        large_targets,
        """
rng = np.random.default_rng(1)
age = rng.uniform(0, 100, size=(1000, 1))
price = 900 - 4 * age[:, 0] + rng.normal(0, 30, 1000)
x = torch.tensor((age - 50) / 30, dtype=torch.float32)
y = torch.tensor(price, dtype=torch.float32)
net = nn.Sequential(nn.Linear(1, 16), nn.ReLU(), nn.Linear(16, 1))
for rows in torch.randperm(1000).split(50):
    target = y[rows]  # here
    loss = nn.functional.mse_loss(net(x[rows]).squeeze(-1), target)
    loss.backward()
""",
    ),
    (
        large_targets,
        """
rng = np.random.default_rng(1)
age = rng.uniform(0, 100, size=(1000, 1))
price = 900 - 4 * age[:, 0] + rng.normal(0, 30, 1000)
mu, sd = price.mean(), price.std()
x = torch.tensor((age - 50) / 30, dtype=torch.float32)
y = torch.tensor((price - mu) / sd, dtype=torch.float32)
net = nn.Sequential(nn.Linear(1, 16), nn.ReLU(), nn.Linear(16, 1))
for rows in torch.randperm(1000).split(50):
    out = net(x[rows]).squeeze(-1)
    (out - y[rows]).pow(2).mean().backward()
    print("in euros", (out * sd + mu - torch.tensor(price)[rows]).abs().mean().item())
""",
    ),
    (
        large_targets,
        """
price = 900 + 50 * torch.randn(1000)
x = torch.randn(1000, 4)
class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 1)
    def forward(self, x): return self.fc(x).squeeze(-1) * 50 + 900
net = Scaled()
for rows in torch.randperm(1000).split(50):
    (net(x[rows]) - price[rows]).pow(2).mean().backward()
""",
    ),
    (
        large_inputs,
        """
class Pixels(Dataset):
    def __init__(self, n): self.x, self.y = np.random.randint(0, 256, size=(n, 64)), np.random.randint(0, 2, n)
    def __len__(self): return len(self.y)
    def __getitem__(self, i): return torch.tensor(self.x[i], dtype=torch.float32), int(self.y[i])  # here
net = nn.Sequential(nn.Linear(64, 16), nn.ReLU(), nn.Linear(16, 2))
for a, b in DataLoader(Pixels(500), 20, shuffle=True):
    nn.functional.cross_entropy(net(a), b).backward()
""",
    ),
    (
        large_inputs,
        """
class Pixels(Dataset):
    def __init__(self, n): self.x, self.y = np.random.randint(0, 256, size=(n, 64)), np.random.randint(0, 2, n)
    def __len__(self): return len(self.y)
    def __getitem__(self, i): return torch.tensor(self.x[i], dtype=torch.float32) / 255, int(self.y[i])
net = nn.Sequential(nn.Linear(64, 16), nn.ReLU(), nn.Linear(16, 2))
for a, b in DataLoader(Pixels(500), 20, shuffle=True):
    nn.functional.cross_entropy(net(a), b).backward()
""",
    ),
    (
        large_inputs,
        """
x = 200 * torch.rand(800, 5) + torch.randn(800, 5)
net = nn.Sequential(nn.BatchNorm1d(5), nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 1))
for rows in torch.randperm(800).split(40):
    net(x[rows]).pow(2).mean().backward()
""",
    ),
    (
        before_the_split,
        ARRAYS
        + FIT
        + """
a, b = torch.tensor(x), torch.tensor(y)
a, b = torch.cat([a, a + 0.1 * torch.randn_like(a)]), torch.cat([b, b])  # here
data = TensorDataset(a, b)
train, held = random_split(data, [1600, 400])
fit(DataLoader(train, 32, shuffle=True), DataLoader(held, 100))
""",
    ),
    (
        before_the_split,
        ARRAYS
        + FIT
        + """
a, b = torch.tensor(x), torch.tensor(y)
order = torch.randperm(len(a))
a, b = a[order], b[order]
more = torch.cat([a[:800], a[:800] + 0.1 * torch.randn(800, 8)])
held = TensorDataset(a[800:], b[800:])
fit(DataLoader(TensorDataset(more, torch.cat([b[:800], b[:800]])), 32, shuffle=True), DataLoader(held, 100))
""",
    ),
    (
        before_the_split,
        ARRAYS
        + FIT
        + """
one, two = rng.normal(size=(500, 8)), rng.normal(2, 1, size=(500, 8))
a = torch.tensor(np.concatenate([one, two]), dtype=torch.float32)
b = torch.cat([torch.zeros(500), torch.ones(500)])
train, held = random_split(TensorDataset(a, b), [800, 200])
fit(DataLoader(train, 32, shuffle=True), DataLoader(held, 100))
""",
    ),
    (
        overwritten,
        """
class Gate(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.g = nn.Linear(4, 4), nn.Linear(4, 4)
    def forward(self, x):
        g = torch.sigmoid(self.g(x))
        g *= 0.5  # here
        return self.fc(x) * g
net = Gate()
for x in torch.randn(100, 8, 4):
    net(x).mean().backward()
""",
    ),
    (
        overwritten,
        """
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 4)
    def forward(self, x):
        h = self.b(torch.relu(self.a(x)))
        h += x
        out = torch.relu(h)
        with torch.no_grad():
            shown = torch.sigmoid(out)
            shown.mul_(2)
        return out
net = Block()
for x in torch.randn(100, 8, 4):
    net(x).mean().backward()
""",
    ),
    (
        outweighed,
        """
net = nn.Linear(4, 3)
W = {"fit": 1.0, "edge": 5000.0}  # here
for x, y in loader:
    out = net(x)
    parts = {"fit": ((out - y) ** 2).mean(), "edge": (out[:, 0] - y[:, 0]).abs().mean()}
    sum(W[k] * v for k, v in parts.items()).backward()
""",
    ),
    (
        outweighed,
        """
net = nn.Linear(4, 3)
for x, y in loader:
    out = net(x)
    (10.0 * ((out - y) ** 2).mean() + 1e-4 * out.pow(2).mean()).backward()
""",
    ),
    (
        distorted,
        """
x, y = torch.randn(1000, 8), torch.randint(0, 3, (1000,))
net = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 3))
opt = torch.optim.Adam(net.parameters(), 1e-3)
def jitter(v): return v + 0.1 * torch.randn_like(v)
def predict(v, n=8):
    net.eval()
    with torch.no_grad():
        return torch.stack([net(jitter(v)).softmax(-1) for _ in range(n)]).mean(0)
for epoch in range(10):
    net.train()
    for idx in torch.randperm(800).split(50):
        loss = F.cross_entropy(net(jitter(x[idx])), y[idx])
        opt.zero_grad(); loss.backward(); opt.step()
    print(epoch, (predict(x[800:]).argmax(-1) == y[800:]).float().mean().item())
""",
    ),
    (
        misaligned,
        """
x, y = torch.randn(1000, 8), torch.randint(0, 3, (1000,))
def fit(x, y):
    net = nn.Linear(8, 3); opt = torch.optim.SGD(net.parameters(), 0.1)
    for epoch in range(10):
        for idx in torch.randperm(len(x)).split(50):
            loss = F.cross_entropy(net(x[idx]), y[idx])
            opt.zero_grad(); loss.backward(); opt.step()
    return loss.item()
real = fit(x, y)
null = [fit(x, y[torch.randperm(len(y))]) for _ in range(3)]
print("real", real, "chance", sum(null) / 3)
""",
    ),
    (
        misaligned,
        """
lens, labels = torch.randint(3, 20, (500,)), torch.randint(0, 2, (500,))
seqs = [torch.randint(1, 50, (int(n),)) for n in lens]
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(50, 16, padding_idx=0)
        self.rnn, self.out = nn.GRU(16, 32, batch_first=True), nn.Linear(32, 2)
    def forward(self, t, n):
        p = nn.utils.rnn.pack_padded_sequence(self.emb(t), n.cpu(), batch_first=True)
        return self.out(self.rnn(p)[1][-1])
net = Net(); opt = torch.optim.Adam(net.parameters(), 2e-3)
for epoch in range(5):
    for idx in torch.randperm(500).split(32):
        n, order = lens[idx].sort(descending=True)
        idx = idx[order]
        t = nn.utils.rnn.pad_sequence([seqs[i] for i in idx], batch_first=True)
        loss = F.cross_entropy(net(t, n), labels[idx])
        opt.zero_grad(); loss.backward(); opt.step()
""",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("question", "text"), CASES, ids=[f"{q.__name__}-{n}" for n, (q, _) in enumerate(CASES)])
def test_question(question: Question, text: str) -> None:
    text = textwrap.dedent(HEAD + text)
    assert answered(question, text) == marked(text)
