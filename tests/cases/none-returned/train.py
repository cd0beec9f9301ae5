def load(path):
    data = [1, 2, 3]


batch = load("x")
print(batch.shape)
