from peft import LoraConfig, get_peft_model
from transformers import PretrainedConfig, PreTrainedModel
import torch


class OwnConfig(PretrainedConfig):
    model_type = "own-decoder"


class OwnModel(PreTrainedModel):
    config_class = OwnConfig

    def __init__(self, config):
        super().__init__(config)
        self.proj = torch.nn.Linear(8, 8)
        self.post_init()


model = get_peft_model(OwnModel(OwnConfig()), LoraConfig(r=8))
