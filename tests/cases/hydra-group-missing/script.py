from hydra import compose, initialize_config_dir
import os

os.makedirs("conf/model")
open("conf/config.yaml", "w").write("defaults:\n  - model: small\n")
open("conf/model/small.yaml", "w").write("width: 64\n")
with initialize_config_dir(os.path.abspath("conf"), version_base=None):
    cfg = compose("config", overrides=["model=large"])
