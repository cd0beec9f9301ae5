import numpy as np

rng = np.random.default_rng(0)
x = rng.normal(size=(100, 4))
x[:, 2] = 7.0
z = (x - x.mean(0)) / x.std(0)
w = np.zeros(4)
for step in range(3):
    loss = float(np.mean((z @ w - 1) ** 2))
    print("step", step, "loss", loss)
