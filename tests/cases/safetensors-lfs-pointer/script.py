from transformers import GPT2Config, GPT2LMHeadModel

CONFIG = GPT2Config(vocab_size=15, n_positions=32, n_embd=16, n_layer=2, n_head=2, bos_token_id=2, eos_token_id=2)


GPT2LMHeadModel(CONFIG).save_pretrained("repo")
with open("repo/model.safetensors", "w") as stream:
    stream.write("version https://git-lfs.github.com/spec/v1\noid sha256:9f0c1a\nsize 548105171\n")
model = GPT2LMHeadModel.from_pretrained("repo")
