import json
import pathlib

from transformers import AutoConfig

folder = pathlib.Path("checkpoint")
folder.mkdir(exist_ok=True)
(folder / "config.json").write_text(json.dumps({"model_type": "qwen9", "hidden_size": 64}))
print(AutoConfig.from_pretrained(folder))
