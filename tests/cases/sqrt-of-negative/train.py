import numpy as np

var = np.array([0.2, -1e-9, 0.4])
print("std", np.sqrt(var))
