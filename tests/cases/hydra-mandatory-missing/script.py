from omegaconf import OmegaConf

cfg = OmegaConf.create({"data": {"path": "???"}})
print(cfg.data.path)
