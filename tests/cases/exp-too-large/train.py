import numpy as np

logits = np.array([[1000.0, 1.0, 0.0]])
p = np.exp(logits) / np.exp(logits).sum()
print("loss", -np.log(p[0, 1]))
