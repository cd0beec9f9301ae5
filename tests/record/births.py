"""Small training programs in which a value that is not finite is born; the line of birth bears ``# born: KIND OP``.

OP is the function as the user wrote it, or the op where the user wrote none. ``PROGRAMS`` maps a name to a source.
"""

from __future__ import annotations

import re
import textwrap

HEAD = """\
import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(0)
x, y = torch.randn(64, 6), torch.randint(3, (64,))
"""


def _program(body: str) -> str:
    return HEAD + textwrap.dedent(body)


PROGRAMS: dict[str, str] = {}


def _add(name: str, body: str) -> None:
    PROGRAMS[name] = _program(body)


_add(
    "plain loop, log of zero",
    """
    model = nn.Linear(6, 3)
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for i in range(6):
        logits = model(x * (1 if i < 3 else 4000))
        p = logits.softmax(-1)
        logp = torch.log(p)  # born: log log
        loss = -logp[torch.arange(64), y].mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    """,
)
_add(
    "function, exp overflow",
    """
    model = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 2))
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    def nll(out, target):
        mu, logvar = out.chunk(2, -1)
        inv = torch.exp(-logvar)  # born: exp exp
        return (inv * (mu.squeeze(-1) - target) ** 2 + logvar).mean()
    def train_step(a, b, scale):
        opt.zero_grad()
        out = model(a) * scale
        loss = nll(out, b.float())
        loss.backward()
        opt.step()
        return loss.item()
    for i in range(5):
        train_step(x, y, 1.0 if i < 3 else 1e4)
    """,
)
_add(
    "class trainer, division by a count of zero",
    """
    class Trainer:
        def __init__(self, model):
            self.model = model
            self.opt = torch.optim.AdamW(model.parameters())
            self.step = 0
        def masked_mean(self, losses, mask):
            return (losses * mask).sum() / mask.sum()  # born: division div
        def compute(self, a, b):
            losses = F.cross_entropy(self.model(a), b, reduction="none")
            mask = (b > (0 if self.step < 4 else 2)).float()
            return self.masked_mean(losses, mask)
        def fit(self, batches):
            for a, b in batches:
                self.step += 1
                loss = self.compute(a, b)
                self.opt.zero_grad()
                loss.backward()
                self.opt.step()
    Trainer(nn.Linear(6, 3)).fit([(x, y)] * 6)
    """,
)
_add(
    "masked attention, empty row",
    """
    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.q, self.k, self.v = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 8)
        def forward(self, h, pad):
            scores = self.q(h) @ self.k(h).transpose(-1, -2)
            scores = scores.masked_fill(pad[:, None, :], float("-inf"))
            return scores.softmax(-1) @ self.v(h)  # born: masked-softmax softmax
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.emb, self.attn, self.head = nn.Embedding(20, 8), Attention(), nn.Linear(8, 3)
        def forward(self, ids):
            return self.head(self.attn(self.emb(ids), ids.eq(0)).mean(1))
    net = Net()
    opt = torch.optim.Adam(net.parameters())
    ids = torch.randint(1, 20, (64, 5))
    ids[40] = 0
    for i in range(0, 64, 16):
        batch = {"ids": ids[i : i + 16], "labels": y[i : i + 16]}
        opt.zero_grad()
        loss = F.cross_entropy(net(batch["ids"]), batch["labels"])
        loss.backward()
        opt.step()
    """,
)
_add(
    "data with NaN in a column",
    """
    from torch.utils.data import DataLoader, TensorDataset
    x[50, 2] = float("nan")
    model = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for xb, yb in DataLoader(TensorDataset(x, y), batch_size=8):  # born: data xb
        loss = F.cross_entropy(model(xb), yb)
        opt.zero_grad()
        loss.backward()
        opt.step()
    """,
)
_add(
    "labels all ignored",
    """
    model = nn.Linear(6, 3)
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    y[32:48] = -100
    for i in range(0, 64, 16):
        opt.zero_grad()
        out = model(x[i : i + 16])
        loss = F.cross_entropy(out, y[i : i + 16], ignore_index=-100)  # born: all-ignored cross_entropy
        loss.backward()
        opt.step()
    """,
)
_add(
    "deviation of one element",
    """
    model = nn.Linear(6, 1)
    opt = torch.optim.SGD(model.parameters(), lr=0.01)
    def normalise(v):
        return (v - v.mean()) / (v.std() + 1e-6)  # born: deviation std
    for i in range(0, 60, 10):
        batch = x[i : i + (10 if i < 40 else 1)]
        loss = normalise(model(batch).squeeze(-1)).square().sum()
        opt.zero_grad()
        loss.backward()
        opt.step()
    """,
)
_add(
    "slope of sqrt at zero",
    """
    model = nn.Linear(6, 6, bias=False)
    opt = torch.optim.SGD(model.parameters(), lr=0.01)
    x[20] = 0.0
    for i in range(0, 60, 10):
        h = model(x[i : i + 10])
        dist = (h * h).sum(-1).sqrt()  # born: sqrt-gradient sqrt
        loss = dist.mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    """,
)
_add(
    "where hides a branch",
    """
    model = nn.Linear(6, 1, bias=False)
    opt = torch.optim.SGD(model.parameters(), lr=0.01)
    def safe_log(v):
        return torch.where(v > 0, torch.log(v), torch.zeros_like(v))  # born: where-gradient log
    x[40] = 0.0
    for i in range(0, 60, 10):
        out = model(x[i : i + 10]).abs()
        loss = safe_log(out).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    """,
)
_add(
    "arccos at one",
    """
    w = nn.Parameter(torch.randn(6))
    opt = torch.optim.SGD([w], lr=0.01)
    x[12] = 0
    for i in range(6):
        target = x[i * 4 : i * 4 + 4] if i < 3 else w.detach().expand(4, 6) * 2
        cos = F.cosine_similarity(w.expand(4, 6), target, dim=-1)
        angle = torch.acos(cos.clamp(-1, 1))  # born: slope acos
        loss = angle.mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    """,
)
_add(
    "fractional power of a negative",
    """
    model = nn.Linear(6, 1)
    opt = torch.optim.SGD(model.parameters(), lr=0.01)
    for i in range(5):
        out = model(x) + (100 if i < 3 else 0)
        loss = (out ** 1.5).mean()  # born: domain pow
        opt.zero_grad()
        loss.backward()
        opt.step()
    """,
)
_add(
    "half precision matmul",
    """
    model = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 3)).half()
    opt = torch.optim.SGD(model.parameters(), lr=1e-4)
    for i in range(5):
        a = x.half() * (1 if i < 3 else 6000)
        hidden = model[0](a)
        loss = model[2](hidden * 100).square().mean()  # born: half-overflow mul
        opt.zero_grad()
        loss.backward()
        opt.step()
    """,
)
_add(
    "autocast float16, sum of squares",
    """
    model = nn.Sequential(nn.Linear(6, 64), nn.Linear(64, 64))
    opt = torch.optim.SGD(model.parameters(), lr=1e-4)
    for i in range(4):
        with torch.autocast("cpu", dtype=torch.float16):
            out = model(x * (1 if i < 2 else 900))
            energy = (out * out)  # born: half-overflow mul
            loss = energy.float().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    """,
)
_add(
    "autocast bfloat16, log of an underflow",
    """
    model = nn.Sequential(nn.Linear(6, 64), nn.Linear(64, 3))
    opt = torch.optim.SGD(model.parameters(), lr=1e-4)
    for i in range(4):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            out = model(x * (1 if i < 2 else 20000))
            loss = -(out.sigmoid().log()).mean()  # born: log log
        opt.zero_grad()
        loss.backward()
        opt.step()
    """,
)
_add(
    "recurrent net with a carried state",
    """
    rnn, head = nn.GRU(6, 8, batch_first=True), nn.Linear(8, 1)
    opt = torch.optim.SGD([*rnn.parameters(), *head.parameters()], lr=0.01)
    h = None
    for t in range(6):
        chunk = x[: 8 * 5].view(8, 5, 6)
        out, h = rnn(chunk, h)
        h = h.detach()
        rate = head(out).squeeze(-1) - (0 if t < 3 else 50)
        lam = F.relu(rate + 5)
        loss = (lam - 2.0 * torch.log(lam)).mean()  # born: log log
        opt.zero_grad()
        loss.backward()
        opt.step()
    """,
)
_add(
    "custom autograd function",
    """
    class Scale(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a, k):
            ctx.save_for_backward(a)
            ctx.k = k
            return a * k
        @staticmethod
        def backward(ctx, g):
            a, = ctx.saved_tensors
            return g * ctx.k / (a - a), None  # born: custom-backward div
    model = nn.Linear(6, 3)
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for i in range(2):
        out = Scale.apply(model(x), 2.0)
        loss = F.cross_entropy(out, y)
        opt.zero_grad()
        loss.backward()
        opt.step()
    """,
)
for _reentrant in (True, False):
    _add(
        f"checkpointing, reentrant {_reentrant}",
        f"""
        from torch.utils.checkpoint import checkpoint
        class Block(nn.Module):
            def __init__(self):
                super().__init__()
                self.a = nn.Linear(6, 6)
            def forward(self, h, gain):
                h = self.a(h) * gain
                return torch.exp(h) / 100  # born: exp exp
        block, head = Block(), nn.Linear(6, 3)
        opt = torch.optim.SGD([*block.parameters(), *head.parameters()], lr=1e-3)
        for i in range(4):
            a = x.clone().requires_grad_()
            h = checkpoint(block, a, 1.0 if i < 2 else 1000.0, use_reentrant={_reentrant})
            loss = F.cross_entropy(head(h), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
        """,
    )
_add(
    "checkpointing, slope in the backward",
    """
    from torch.utils.checkpoint import checkpoint
    lin = nn.Linear(6, 6, bias=False)
    def inner(h):
        h = lin(h)
        return h.pow(2).sum(-1).sqrt()  # born: sqrt-gradient sqrt
    opt = torch.optim.SGD(lin.parameters(), lr=1e-3)
    x[3] = 0
    for i in range(2):
        a = x.clone().requires_grad_()
        loss = checkpoint(inner, a, use_reentrant=False).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    """,
)
_add(
    "compiled model",
    """
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(6, 8), nn.Linear(8, 3)
        def forward(self, v, floor):
            h = torch.relu(self.a(v))
            h = h / (h.sum(-1, keepdim=True) * floor)  # born: division div
            return self.b(h)
    net = torch.compile(Net(), backend="eager")
    opt = torch.optim.SGD(net.parameters(), lr=0.01)
    floors = torch.tensor([1.0, 1.0, 0.0])
    for i in range(3):
        loss = F.cross_entropy(net(x, floors[i]), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
    """,
)
_add(
    "two networks against each other",
    """
    G, D = nn.Linear(4, 6), nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 1))
    og, od = torch.optim.Adam(G.parameters(), 1e-3), torch.optim.Adam(D.parameters(), 1e-3)
    def saturating(p):
        return torch.log(1 - p)  # born: log log
    for i in range(5):
        z = torch.randn(64, 4)
        fake = G(z)
        d_loss = F.softplus(-D(x)).mean() + F.softplus(D(fake.detach())).mean()
        od.zero_grad(); d_loss.backward(); od.step()
        score = D(fake).abs() * (1 if i < 3 else 1e6)
        g_loss = saturating(torch.sigmoid(score)).mean()
        og.zero_grad(); g_loss.backward(); og.step()
    """,
)
_add(
    "accumulation over micro-batches",
    """
    model = nn.Linear(6, 3)
    opt = torch.optim.SGD(model.parameters(), lr=0.01)
    accum = 4
    for i in range(16):
        xb, yb = x[i * 4 : i * 4 + 4], y[i * 4 : i * 4 + 4]
        temperature = torch.tensor(1.0 if i != 9 else 0.0)
        logits = model(xb) / temperature  # born: division div
        loss = F.cross_entropy(logits, yb) / accum
        loss.backward()
        if (i + 1) % accum == 0:
            opt.step()
            opt.zero_grad()
    """,
)
_add(
    "module that computes its own loss, step in a closure",
    """
    class Task(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = nn.Linear(6, 1)
        def training_step(self, batch, i):
            out = self.net(batch).squeeze(-1)
            loss = (out - torch.rsqrt(batch[:, 0] * (i < 2))).pow(2).mean()  # born: division rsqrt
            return loss
    class Loop:
        def __init__(self, task):
            self.task, self.opt = task, torch.optim.SGD(task.parameters(), lr=1e-3)
        def manual_backward(self, loss, **kw):
            loss.backward(**kw)
        def closure(self, batch, i):
            loss = self.task.training_step(batch, i)
            self.opt.zero_grad()
            self.manual_backward(loss)
            return loss
        def run(self):
            for i in range(4):
                batch = x.abs() + 0.1
                self.opt.step(lambda: self.closure(batch, i))
    Loop(Task()).run()
    """,
)
_add(
    "quasi-Newton with a closure",
    """
    model = nn.Linear(6, 1)
    opt = torch.optim.LBFGS(model.parameters(), lr=0.5, max_iter=3)
    scale = 1.0
    for i in range(3):
        def closure():
            opt.zero_grad()
            out = model(x).squeeze(-1) * scale
            loss = torch.cosh(out).mean()  # born: exp cosh
            loss.backward()
            return loss
        opt.step(closure)
        scale = 1e5 if i == 1 else 1.0
    """,
)
_add(
    "loss kept in attributes between methods",
    """
    class Model:
        def __init__(self):
            self.net = nn.Linear(6, 6)
            self.opt = torch.optim.Adam(self.net.parameters(), lr=1e-3)
        def set_input(self, v, k):
            self.real, self.k = v, k
        def forward(self):
            self.fake = torch.log1p(self.net(self.real).abs() * self.k - 1)  # born: log log1p
        def backward_G(self):
            self.loss_G = F.l1_loss(self.fake, self.real)
            self.loss_G.backward()
        def optimize_parameters(self):
            self.forward()
            self.opt.zero_grad()
            self.backward_G()
            self.opt.step()
    m = Model()
    for i in range(4):
        m.set_input(x.abs() + 10, 100.0 if i < 2 else 0.0)
        m.optimize_parameters()
    """,
)
_add(
    "terms in a list and in a dictionary",
    """
    heads = nn.ModuleList([nn.Linear(6, 3) for _ in range(3)])
    opt = torch.optim.SGD(heads.parameters(), lr=0.01)
    for i in range(4):
        terms = {}
        parts = []
        for k, head in enumerate(heads):
            out = head(x)
            parts.append(F.cross_entropy(out, y))
        terms["ce"] = sum(parts)
        gate = heads[0](x).sigmoid() * (0.0 if i == 2 else 1.0)
        terms["entropy"] = -(gate * gate.log()).sum(-1).mean()  # born: log log
        loss = sum(terms.values())
        print({k: v.item() for k, v in terms.items()})
        opt.zero_grad()
        loss.backward()
        opt.step()
    """,
)
_add(
    "base class and super",
    """
    class Base:
        def loss_of(self, out, target):
            return F.mse_loss(out.squeeze(-1), target)
    class Child(Base):
        def __init__(self):
            self.__net = nn.Linear(6, 1)
            self.opt = torch.optim.SGD(self.__net.parameters(), lr=1e-3)
        def target(self, b, i):
            return torch.logit(b.float() / (4 if i < 2 else 2))  # born: log logit
        def step(self, a, b, i):
            b = b.clamp(1, 2)
            out = self.__net(a)
            goal = self.target(b, i)
            loss = super().loss_of(out, goal)
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
    c = Child()
    for i in range(4):
        c.step(x, y, i)
    """,
)
_add(
    "mean over nothing",
    """
    model = nn.Linear(6, 3)
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for i in range(4):
        out = model(x)
        hard = F.cross_entropy(out, y, reduction="none")
        keep = hard > (0.5 if i < 2 else 1e4)
        loss = hard[keep].mean()  # born: empty-mean mean
        opt.zero_grad()
        loss.backward()
        opt.step()
    """,
)
_add(
    "alignment loss with a long target",
    """
    model = nn.Linear(6, 5)
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for i in range(3):
        logp = model(x[:20].view(10, 2, 6)).log_softmax(-1)
        n = 4 if i < 2 else 12
        target = torch.ones(2, n, dtype=torch.long)
        loss = F.ctc_loss(logp, target, torch.tensor([10, 10]), torch.tensor([n, n]))  # born: ctc ctc_loss
        opt.zero_grad()
        loss.backward()
        opt.step()
    """,
)
_add(
    "mask constant in half",
    """
    model = nn.Linear(6, 6).half()
    opt = torch.optim.SGD(model.parameters(), lr=1e-3)
    for i in range(3):
        keep = torch.ones(64, 6)
        keep[:, 3:] = 0
        if i == 2:
            keep[5] = 0
        bias = ((1.0 - keep) * -1e9).half()  # born: mask-overflow half
        scores = model(x.half()) + bias
        loss = scores.softmax(-1).float().square().sum()
        opt.zero_grad()
        loss.backward()
        opt.step()
    """,
)
_add(
    "weights blown up by the step",
    """
    model = nn.Linear(6, 3)
    opt = torch.optim.SGD(model.parameters(), lr=1.0)
    for i in range(4):
        loss = F.cross_entropy(model(x), y)
        opt.zero_grad()
        loss.backward()
        if i == 2:
            opt.param_groups[0]["lr"] = float("inf")
        opt.step()  # born: optimizer rate
    """,
)
_add(
    "epsilon of Adam in half",
    """
    model = nn.Linear(6, 3).half()
    opt = torch.optim.Adam(model.parameters(), lr=1e-3, eps=1e-8, foreach=False)
    x[:, 5] = 0.0
    for i in range(4):
        loss = F.cross_entropy(model(x.half()).float(), y)
        opt.zero_grad()
        loss.backward()
        opt.step()  # born: optimizer half-eps
    """,
)
_add(
    "singular values with a repeated one",
    """
    w = nn.Parameter(torch.randn(3, 3))
    opt = torch.optim.SGD([w], lr=1e-3)
    eye = torch.eye(3)
    for i in range(3):
        m = w if i < 2 else w * 0 + eye
        u, s, v = torch.linalg.svd(m)  # born: linalg linalg_svd
        loss = (u[:, 0] * v[0]).sum() + s.sum()
        opt.zero_grad()
        loss.backward()
        opt.step()
    """,
)
_add(
    "ratio of a policy",
    """
    class Actor(nn.Module):
        def __init__(self):
            super().__init__()
            self.mu, self.log_std = nn.Linear(6, 2), nn.Parameter(torch.zeros(2))
        def log_prob(self, s, a):
            return -((a - self.mu(s)) ** 2 / (2 * self.log_std.exp() ** 2)).sum(-1)
    actor = Actor()
    opt = torch.optim.Adam(actor.parameters(), lr=1e-3)
    def ppo(states, actions, old, adv):
        new = actor.log_prob(states, actions)
        ratio = (new - old).exp()  # born: exp exp
        return -torch.min(ratio * adv, ratio.clamp(0.8, 1.2) * adv).mean()
    for i in range(4):
        actions = torch.randn(64, 2)
        old = torch.zeros(64) - (0 if i < 2 else 900)
        adv = -torch.ones(64)
        loss = ppo(x, actions, old, adv)
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(actor.parameters(), 0.5)
        opt.step()
    """,
)
_add(
    "loss read out before the step",
    """
    model = nn.Linear(6, 4, bias=False)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    x[7] = 0
    total = 0.0
    for epoch in range(2):
        for i in range(0, 64, 8):
            emb = model(x[i : i + 8])
            unit = emb / (emb ** 2).sum(-1, keepdim=True).sqrt().clamp_min(1e-12)  # born: sqrt-gradient sqrt
            loss = (unit @ unit.T).mean()
            opt.zero_grad()
            loss.backward()
            loss = loss.item()
            total += loss
            del emb, unit
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
    """,
)
_add(
    "targets made in the step",
    """
    model = nn.Linear(6, 1)
    opt = torch.optim.SGD(model.parameters(), lr=1e-3)
    sales = torch.arange(64.0)
    for i in range(4):
        rows = torch.randperm(64)[:32]
        goal = torch.log(sales[rows])  # born: log log
        loss = F.mse_loss(model(x[rows]).squeeze(-1), goal)
        opt.zero_grad()
        loss.backward()
        opt.step()
    """,
)
_add(
    "teacher without gradients",
    """
    teacher, student = nn.Linear(6, 3), nn.Linear(6, 3)
    opt = torch.optim.SGD(student.parameters(), lr=1e-3)
    for i in range(4):
        with torch.no_grad():
            t = teacher(x)
            spread = t.amax(-1, keepdim=True) - (t.amax(-1, keepdim=True) if i == 2 else 0)
            soft = t / spread  # born: division div
        loss = F.mse_loss(student(x), soft)
        opt.zero_grad()
        loss.backward()
        opt.step()
    """,
)
_add(
    "dropout and normalisation before the birth",
    """
    model = nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.5), nn.Linear(16, 3))
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    def js(p, q):
        m = (p + q) / 2
        return (p * (p / m).log()).sum(-1) + (q * (q / m).log()).sum(-1)  # born: log log
    for i in range(4):
        p = model(x * (1 if i < 2 else 3)).softmax(-1)
        q = F.one_hot(y, 3).float() if i >= 2 else torch.full((64, 3), 1 / 3)
        loss = js(p, q).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    """,
)


_add(
    "endless iterator, comprehension",
    """
    import itertools
    net = nn.Linear(6, 3)
    opt = torch.optim.Adam(net.parameters(), lr=1e-3)
    stream = itertools.cycle(zip(x.split(16), y.split(16)))
    step = 0
    while True:
        step += 1
        a, b = next(stream)
        outs = [net(part) for part in a.chunk(2)]
        cold = [o / (1.0 if step < 4 else 0.0) for o in outs]  # born: division div
        loss = sum(F.cross_entropy(o, t) for o, t in zip(cold, b.chunk(2)))
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        if step == 5:
            break
    """,
)
_add(
    "several losses, one backward each",
    """
    trunk, a, b = nn.Linear(6, 8), nn.Linear(8, 1), nn.Linear(8, 1)
    opt = torch.optim.SGD([*trunk.parameters(), *a.parameters(), *b.parameters()], lr=1e-3)
    for i in range(4):
        h = torch.tanh(trunk(x))
        first = a(h).square().mean()
        second = torch.log(b(h).abs() * (i < 2)).mean()  # born: log log
        opt.zero_grad()
        for part in (first, second):
            part.backward(retain_graph=True)
        opt.step()
    """,
)
_add(
    "distribution with a vanishing scale",
    """
    class Policy(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Linear(6, 4)
        def forward(self, s, k):
            mu, raw = self.body(s).chunk(2, -1)
            return torch.distributions.Normal(mu, F.softplus(raw * k), validate_args=False)
    policy = Policy()
    opt = torch.optim.Adam(policy.parameters(), lr=1e-3)
    for i in range(4):
        dist = policy(x, 1.0 if i < 2 else 1e5)
        action = torch.zeros(64, 2)
        logp = dist.log_prob(action).sum(-1)  # born: log log
        loss = -(logp * 0.5).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    """,
)
_add(
    "fused attention with an empty row",
    """
    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.qkv, self.out = nn.Linear(6, 18), nn.Linear(6, 3)
        def forward(self, h, mask):
            q, k, v = self.qkv(h).chunk(3, -1)
            att = torch.einsum("bid,bjd->bij", q, k) + mask
            att = att - att.amax(-1, keepdim=True)  # born: infinity-met sub
            w = att.exp()
            return self.out((w / w.sum(-1, keepdim=True)) @ v).mean(1)
    block = Block()
    opt = torch.optim.SGD(block.parameters(), lr=1e-3)
    tokens = x.view(8, 8, 6)
    for i in range(3):
        mask = torch.zeros(8, 8, 8)
        mask[:, :, 4:] = float("-inf")
        if i == 2:
            mask[3, 5] = float("-inf")
        loss = F.cross_entropy(block(tokens, mask), y[:8])
        opt.zero_grad()
        loss.backward()
        opt.step()
    """,
)
_add(
    "gradient penalty",
    """
    critic = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 1))
    opt = torch.optim.Adam(critic.parameters(), lr=1e-3)
    def penalty(v):
        v = v.clone().requires_grad_()
        out = critic(v)
        g, = torch.autograd.grad(out.sum(), v, create_graph=True)
        return ((g.square().sum(-1).sqrt() - 1) ** 2).mean()  # born: sqrt-gradient sqrt
    for i in range(4):
        if i == 2:
            with torch.no_grad():
                critic[0].bias.fill_(-1e3)
        loss = critic(x).mean() + 10 * penalty(x)
        opt.zero_grad()
        loss.backward()
        opt.step()
    """,
)
_add(
    "scripted helper",
    """
    def _energy(v, t: float):
        return torch.logsumexp(v / t, -1)  # born: division *
    net = nn.Linear(6, 3)
    opt = torch.optim.SGD(net.parameters(), lr=1e-3)
    for i in range(4):
        e = _energy(net(x), 1.0 if i < 2 else 0.0)
        loss = (e - net(x).gather(1, y[:, None]).squeeze(1)).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    """,
)
_add(
    "function with many returns and a guard",
    """
    from collections import namedtuple
    Out = namedtuple("Out", "loss aux")
    class VAE(nn.Module):
        def __init__(self):
            super().__init__()
            self.enc, self.dec = nn.Linear(6, 8), nn.Linear(4, 6)
        def forward(self, v, k):
            mu, logvar = self.enc(v).mul(k).chunk(2, -1)
            z = mu + (0.5 * logvar).exp() * torch.randn_like(mu)
            rec = F.mse_loss(self.dec(z).tanh(), v)
            kl = -0.5 * (1 + logvar - mu.pow(2) - logvar.exp()).sum(-1).mean()  # born: exp exp
            return Out(rec + 1e-3 * kl, {"kl": kl.detach(), "rec": rec.detach()})
    vae = VAE()
    opt = torch.optim.AdamW(vae.parameters(), lr=1e-3)
    def run(k):
        try:
            out = vae(x, k)
            if out.loss.requires_grad:
                opt.zero_grad()
                out.loss.backward()
                opt.step()
            return out.aux
        finally:
            vae.train()
    for k in (1.0, 1.0, 70.0, 1.0):
        run(k)
    """,
)
_add(
    "double precision, inverse of a covariance",
    """
    net = nn.Linear(6, 4).double()
    opt = torch.optim.SGD(net.parameters(), lr=1e-3)
    for i in range(3):
        z = net(x.double() * (1 if i < 2 else 0)) - (net.bias if i == 2 else 0)
        cov = z.T @ z / len(z)
        score = -torch.logdet(cov)  # born: linalg logdet
        opt.zero_grad()
        score.backward()
        opt.step()
    """,
)
_add(
    "scheduler, scaler and clipping around it",
    """
    net = nn.Sequential(nn.Linear(6, 32), nn.GELU(), nn.Linear(32, 1))
    opt = torch.optim.AdamW(net.parameters(), lr=1e-3)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, 10)
    scaler = torch.amp.GradScaler("cpu", enabled=False)
    history = []
    for epoch in range(2):
        for i, (xb, yb) in enumerate(zip(x.split(16), y.split(16))):
            with torch.autocast("cpu", dtype=torch.bfloat16):
                pred = net(xb).squeeze(-1)
            rate = pred.float().sigmoid() * (1 if (epoch, i) != (1, 1) else 0)
            loss = -torch.xlogy(yb.float() / 2, rate).mean() + F.mse_loss(rate, yb / 2.0)  # born: log xlogy
            scaler.scale(loss).backward()
            scaler.unscale_(opt)
            history.append(float(nn.utils.clip_grad_norm_(net.parameters(), 1.0)))
            scaler.step(opt)
            scaler.update()
            opt.zero_grad()
            sched.step()
    """,
)
_add(
    "contrastive pairs, cdist at zero",
    """
    enc = nn.Linear(6, 4, bias=False)
    opt = torch.optim.SGD(enc.parameters(), lr=1e-2)
    def pairs(z):
        d = ((z[:, None] - z[None]) ** 2).sum(-1) ** 0.5  # born: sqrt-gradient pow
        return F.relu(1 - d).mean() + d.mean()
    for chunk in x.split(32):
        total = pairs(enc(chunk))
        opt.zero_grad(); total.backward(); opt.step()
    """,
)
_add(
    "weighted mean with weights of zero",
    """
    net = nn.Linear(6, 3)
    opt = torch.optim.SGD(net.parameters(), lr=1e-2)
    seen = {"n": 0}
    def loss_fn(logits, target):
        weight = torch.ones(3) if seen["n"] < 2 else torch.zeros(3)
        return F.cross_entropy(logits, target, weight=weight)  # born: empty-mean cross_entropy
    def loop(batches):
        for a, b in batches:
            seen["n"] += 1
            opt.zero_grad()
            out = loss_fn(net(a), b)
            out.backward()
            opt.step()
    loop(zip(x.split(16), y.split(16)))
    """,
)
_add(
    "spectral loss, log of a magnitude",
    """
    gen = nn.Linear(6, 32)
    opt = torch.optim.Adam(gen.parameters(), lr=1e-3)
    class MultiScale:
        def __call__(self, wave):
            spec = torch.fft.rfft(wave).abs()
            return spec.log10().mean()  # born: log log10
    criterion = MultiScale()
    for i in range(4):
        wave = gen(x) * torch.tensor([1.0, 1.0, 0.0, 1.0])[i]
        loss = criterion(wave)
        opt.zero_grad()
        loss.backward()
        opt.step()
    """,
)


def expected(source: str) -> tuple[int, str, str]:
    """Line, kind and op of the mark."""
    for number, line in enumerate(source.splitlines(), 1):
        if found := re.search(r"# born: (\S+) (\S+)", line):
            return number, found[1], found[2]
    raise ValueError("no mark")
