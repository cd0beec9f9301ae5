from hydra import compose, initialize_config_dir
import os

os.makedirs("conf")
open("conf/config.yaml", "w").write("optimizer:\n  lr: 0.001\ntrainer:\n  max_epochs: 3\n")
with initialize_config_dir(os.path.abspath("conf"), version_base=None):
    cfg = compose("config", overrides=["optimizer.weight_decay=0.01"])
