learning_rate = 1e-3
for epoch in range(2):
    print("epoch", epoch, "lr", learing_rate)
