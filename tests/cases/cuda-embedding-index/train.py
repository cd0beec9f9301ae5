import torch

embed = torch.nn.Embedding(1000, 32).cuda()
head = torch.nn.Linear(32, 2).cuda()
for step in range(5):
    tokens = torch.randint(0, 1003, (64, 128), device="cuda")
    loss = head(embed(tokens).mean(1)).square().mean()
    loss.backward()
    print(step, loss.item())
