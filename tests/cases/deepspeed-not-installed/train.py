from transformers import TrainingArguments
from transformers.integrations.deepspeed import HfTrainerDeepSpeedConfig

config = HfTrainerDeepSpeedConfig({
    "train_micro_batch_size_per_gpu": 4,
    "gradient_accumulation_steps": 8,
    "zero_optimization": {"stage": 2},
})
args = TrainingArguments("out", per_device_train_batch_size=2, gradient_accumulation_steps=8, use_cpu=True, report_to=[])
config.trainer_config_process(args)
config.trainer_config_finalize(args, None, 100)
