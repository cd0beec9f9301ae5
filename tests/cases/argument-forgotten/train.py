def step(model, batch, lr):
    return lr


step(None, [1, 2])
