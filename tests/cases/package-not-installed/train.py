import torch
import flash_attn

print(flash_attn.__version__)
