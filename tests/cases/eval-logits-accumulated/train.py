import torch

model = torch.nn.Sequential(torch.nn.Embedding(128_000, 512), torch.nn.Linear(512, 128_000)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def train_one_epoch():
    for step in range(5):
        tokens = torch.randint(0, 128_000, (2, 512), device="cuda")
        loss = torch.nn.functional.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    print("train loss", loss.item())


@torch.no_grad()
def evaluate():
    all_logits = []
    for batch in range(2000):
        tokens = torch.randint(0, 128_000, (4, 1024), device="cuda")
        all_logits.append(model(tokens))
        if batch % 10 == 0:
            print("eval batch", batch, "memory", torch.cuda.memory_allocated() >> 20, "MiB", flush=True)
    return torch.cat(all_logits)


train_one_epoch()
evaluate()
