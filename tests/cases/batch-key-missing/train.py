batch = {"image": 1, "target": 2}
y = batch["label"]
