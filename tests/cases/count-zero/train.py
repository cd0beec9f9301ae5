def accuracy(hits, total):
    return hits / total


print("accuracy", accuracy(0, 0))
