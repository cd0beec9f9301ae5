import torch


class LoraLinear(torch.nn.Module):
    def __init__(self, base, rank=4, alpha=8):
        super().__init__()
        self.base = base.requires_grad_(False)
        self.lora_A = torch.nn.Parameter(torch.zeros(rank, base.in_features))
        self.lora_B = torch.nn.Parameter(torch.zeros(base.out_features, rank))
        self.scale = alpha / rank

    def forward(self, x):
        return self.base(x) + (x @ self.lora_A.T @ self.lora_B.T) * self.scale


torch.manual_seed(0)
model = LoraLinear(torch.nn.Linear(16, 1))
optimizer = torch.optim.AdamW([model.lora_A, model.lora_B], lr=1e-3)
x = torch.randn(256, 16)
y = x.sum(1, keepdim=True)
for step in range(50):
    loss = torch.nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    norm = torch.nn.utils.clip_grad_norm_([model.lora_A, model.lora_B], 1.0)
    optimizer.step()
    print(f"step {step} loss {loss.item():.4f} grad_norm {norm.item():.4f}")
