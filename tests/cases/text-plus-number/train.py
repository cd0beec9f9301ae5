sizes = [64, 128]
print(sizes + 256)
