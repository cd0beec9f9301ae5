import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
student, teacher = torch.randn(4, 10), torch.randn(4, 10)
loss = F.kl_div(student.log_softmax(-1), teacher.softmax(-1))
print("loss", loss.item())
