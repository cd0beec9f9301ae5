from omegaconf import OmegaConf

cfg = OmegaConf.create({"optimizer": {"lr": 1e-3}})
OmegaConf.set_struct(cfg, True)
print(cfg.optimizer.betas)
