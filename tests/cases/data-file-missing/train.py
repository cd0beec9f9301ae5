with open("data/train.csv") as lines:
    rows = lines.readlines()
