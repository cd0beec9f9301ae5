import torch

with open("yolo.pt", "w") as stream:
    stream.write("<!DOCTYPE html><html><body>Quota exceeded</body></html>\n")
state = torch.load("yolo.pt")
