import torch

torch.manual_seed(0)
layer = torch.nn.TransformerEncoderLayer(1024, 16, 4096, batch_first=True, dropout=0.1).cuda()
model = torch.nn.TransformerEncoder(layer, 6).cuda()
optimizer = torch.optim.AdamW(model.parameters())
torch.backends.cuda.enable_flash_sdp(False), torch.backends.cuda.enable_mem_efficient_sdp(False)
for step in range(60):
    length = 180 + (step * 37) % 200 if step != 43 else 14_000  # one document is far longer than the others
    x = torch.randn(8, length, 1024, device="cuda")
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print(f"step {step} longest sequence {length} loss {loss.item():.4f} peak {torch.cuda.max_memory_allocated() >> 20} MiB", flush=True)
