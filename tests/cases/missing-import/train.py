import torch
from transformers import AdamW, get_linear_schedule_with_warmup

model = torch.nn.Linear(2, 2)
optimizer = AdamW(model.parameters(), lr=1e-4)
