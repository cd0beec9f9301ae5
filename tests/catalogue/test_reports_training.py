"""Reports in people's words about trainers, fine-tuning, adapters, checkpoints, loops and evaluation find their cause.

The texts are our own: an error or an observation, then a line of context, as somebody would put it into an issue.
"""

from __future__ import annotations

import pytest

from trainwreck.engine import diagnose

REPORTS: list[tuple[str, str]] = [
    # trainer
    ("ValueError: The model did not return a loss from the inputs, only the following keys: logits\n\nmy own dataset class", "labels-column-missing"),
    ("Trainer crashes because loss is None\n\nthe csv column with the classes is called sentiment, there is no labels column", "labels-column-missing"),
    ("IndexError: Target 6 is out of bounds.\n\nAutoModelForSequenceClassification, num_labels not set, 7 intents", "num-labels-mismatch"),
    ("ValueError: Target size (torch.Size([16])) must be the same as input size (torch.Size([16, 9]))\n\nproblem_type multi_label", "problem-type-wrong"),
    ("sequence classifier trains with MSE although I have classes\n\nnum_labels=1 in the config", "problem-type-wrong"),
    ("--load_best_model_at_end requires the save and eval strategy to match\n\ntransformers 4.5x, save every epoch", "eval-save-strategy-mismatch"),
    ("sample weights never arrive in compute_loss\n\nTrainer, collator gets no such key, remove_unused_columns untouched", "columns-removed"),
    ("No columns in the dataset match the model's forward method signature\n\nwrapper module with **kwargs", "columns-removed"),
    ("SFTTrainer refuses my formatting_func\n\ncompletion_only_loss is on", "formatting-func-with-completion-only"),
    # configuration
    ("TypeError: '<=' not supported between instances of 'float' and 'str'\n\nAdamW built from settings.yml", "yaml-number-as-string"),
    ("learning rate from YAML is a string\n\nlr: 5e-5", "yaml-number-as-string"),
    ("Could not override 'model.dropout'. To append to your config use +model.dropout=0.1\n\nlaunch script", "hydra-override-error"),
    ("omegaconf.errors.ConfigAttributeError: Key 'seed' is not in struct\n\ncfg from hydra", "hydra-override-error"),
    ("ValueError: Some specified arguments are not used by the HfArgumentParser: ['--bf16_full']\n\nrun_clm.py", "config-key-unknown"),
    # checkpoints
    ("RuntimeError: PytorchStreamReader failed reading zip archive: failed finding central directory\n\npreempted job", "checkpoint-corrupt"),
    ("safetensors_rust.SafetensorError: Error while deserializing header: HeaderTooLarge\n\ncloned the repo without lfs", "checkpoint-corrupt"),
    ("EOFError: Ran out of input when loading the latest checkpoint\n\nthe disk was full last night", "checkpoint-corrupt"),
    ("size mismatch for classifier.weight: copying a param with shape torch.Size([1000, 512]) from checkpoint, the shape in current model is torch.Size([37, 512])\n\nImageNet weights", "head-size-mismatch"),
    ("Unexpected key(s) in state_dict: \"_orig_mod.layers.0.weight\"\n\ninference script without compile", "key-prefix-compile"),
    ("Missing key(s) in state_dict: \"conv1.weight\" ... Unexpected key(s): \"module.conv1.weight\"\n\ntrained on 4 GPUs, testing on one", "key-prefix-dataparallel"),
    ("weights from the multi-GPU run do not load into the plain model, every name starts with module.\n\nDataParallel", "key-prefix-dataparallel"),
    ("ValueError: loaded state dict contains a parameter group that doesn't match the size of optimizer's group\n\nbackbone frozen since", "param-group-mismatch"),
    ("Some tensors share memory, this will lead to duplicate memory on disk\n\nembedding tied to the output layer", "shared-tensors-safetensors"),
    ("_pickle.UnpicklingError: Weights only load failed\n\nupgraded to torch 2.6, the checkpoint holds an argparse namespace", "weights-only-default"),
    ("no error on load, but accuracy is at chance afterwards\n\nload_state_dict(state, strict=False)", "strict-false-hides-mismatch"),
    ("loss spikes for some hundred steps after every resume and then recovers\n\nonly the model weights are in the checkpoint, the optimizer state is not saved", "optimizer-state-not-restored"),
    ("after restart the learning rate goes through warm-up again\n\nscheduler is created fresh when resuming", "scheduler-state-not-restored"),
    ("global step starts at 0 again when I resume\n\nthe same batches are seen twice", "step-counter-not-restored"),
    ("restoring the best weights gives exactly the accuracy of the last epoch\n\nbest = model.state_dict() inside the loop", "state-dict-by-reference"),
    ("loss is nan at the very first step after loading\n\nthe saved checkpoint itself contains nan in two layers", "nonfinite-checkpoint"),
    ("my trained classifier is random again after reload\n\nthe constructor calls init_weights after loading the head", "head-reinitialised"),
    # peft
    ("ValueError: Target modules {'q_proj', 'k_proj'} not found in the base model. Please check the target modules and try again.\n\nfalcon", "lora-targets-unmatched"),
    ("LoRA is only attached to attention, the MLP layers are skipped\n\nno message at all", "lora-targets-unmatched"),
    ("trainable params: 0 || all params: 6,738,415,616 || trainable%: 0.0\n\nPeftModel.from_pretrained, want to continue", "adapter-not-trainable"),
    ("adapter weights do not change when I continue training\n\nloaded with PeftModel.from_pretrained", "adapter-not-trainable"),
    ("outputs with the LoRA adapter are identical to the base model\n\nloaded from disk, no error", "adapter-not-applied"),
    ("UserWarning: Found missing adapter keys while loading the checkpoint\n\nadapter saved under FSDP", "adapter-not-applied"),
    ("You are trying to modify a model with PEFT for a second time.\n\nget_peft_model in a notebook cell that was run again", "peft-double-wrap"),
    ("quality drops after merging the QLoRA adapter\n\nbase in 4-bit, unmerged adapter is fine", "lora-merge-dtype"),
    ("merge_and_unload does nothing, the folder still holds only the adapter\n\nreturn value not assigned", "peft-merge-result-dropped"),
    ("style is far too strong once deployed\n\nadapter is loaded on top of the already merged weights", "adapter-merged-twice"),
    ("reloaded adapter gives garbage for the new special tokens\n\nLoRA, vocabulary resized, modules_to_save empty", "lora-modules-not-saved"),
    ("You cannot perform fine-tuning on purely quantized models\n\nload_in_4bit, Trainer", "quantized-no-adapter"),
    ("You passed a `PeftModel` instance together with a `peft_config` to the trainer\n\nsft script", "peft-config-on-peft-model"),
    ("LoRA loss hardly moves within an epoch\n\nlearning rate 1e-5, r=16", "lora-lr-too-low"),
    ("training explodes with lora_alpha=1024 and r=8\n\nlr is the usual one, alpha is far too large", "lora-scale-excessive"),
    ("raising the rank from 8 to 256 is no better\n\nlora_alpha fixed at 16", "lora-alpha-rank-scaling"),
    ("own LoRA layer: gradients stay zero forever\n\nA and B are both zero at the start", "lora-init-both-zero"),
    # masking and fine-tuning
    ("model trained with SFT keeps talking until the token limit\n\ntokenizer.pad_token = tokenizer.eos_token", "eos-masked-as-pad"),
    ("generations never stop\n\nno end token is appended to the training answers", "eos-not-appended"),
    ("Could not find response key `### Answer:` in the following instance\n\nllama tokenizer, collator for completions", "template-not-in-context"),
    ("loss is 0.0 from step one and grad_norm 0\n\nmax_length cuts the answers, so every label is -100", "labels-all-ignored"),
    ("loss well above the published value from the first step\n\nlabels are shifted by me and the model shifts them again", "labels-double-shifted"),
    ("loss drops to 0.01 within 200 steps, samples repeat one word\n\nlabels = inputs, logits are not shifted in my own loss", "labels-not-shifted"),
    ("suspiciously low loss that depends on the padding\n\nlabels contain pad ids instead of -100", "pad-not-ignored"),
    ("model parrots the question before it answers\n\nloss is computed over the whole conversation, train_on_inputs true", "prompt-not-masked"),
    ("Cannot use chat template functions because tokenizer.chat_template is not set\n\nbase checkpoint", "chat-template-missing"),
    ("fine-tuned model is great in my notebook and gibberish in ollama\n\nexported to GGUF, other prompt template", "chat-template-mismatch"),
    ("double BOS at the beginning of each prompt\n\napply_chat_template, then the tokenizer again, inference differs from training", "chat-template-mismatch"),
    ("The current model class (BertModel) is not compatible with `.generate()`\n\nAutoModel", "incompatible-model-class"),
    ("Some weights were not initialized from the model checkpoint and are newly initialized: ['classifier.weight']\n\npredictions at chance, evaluation only", "wrong-model-head"),
    ("This tokenizer does not have a mask token which is necessary for masked language modeling\n\ngpt-neo", "mlm-collator-for-causal"),
    ("vocabulary ids do not mean the same\n\ntokenizer of another model family than the checkpoint", "tokenizer-model-mismatch"),
    ("evaluation gets worse with packing=True\n\nsdpa attention, packed samples attend to each other", "packing-cross-contamination"),
    ("long documents lose their answers\n\nSFTConfig default max_length truncates silently at 1024", "truncation-silent"),
    ("train loss falls in a staircase, one step at each epoch boundary\n\n3k instructions, 8 epochs", "sft-too-many-epochs"),
    ("fine-tuned BERT stays at the majority class for 3 of 10 seeds\n\nsmall GLUE task", "finetune-degenerate-seed"),
    ("the model makes up more facts after fine-tuning\n\nSFT on new company knowledge", "knowledge-injection-hallucination"),
    # training loop
    ("reported loss is 8 times too high\n\ngradient_accumulation_steps=8, custom loss", "grad-accum-normalisation"),
    ("accumulation over 4 micro-batches does not match one large batch\n\nloss not divided", "grad-accum-normalisation"),
    ("the last batches of every epoch never reach the optimizer\n\naccumulation of 8, number of batches not divisible", "grad-accum-tail-dropped"),
    ("replaced classifier never changes during training\n\noptimizer was created before the head was replaced", "optimizer-missing-parameters"),
    ("dropout has no effect after the first validation\n\nforgot to call model.train() again", "eval-mode-in-training"),
    ("gradient norm grows every step and loss oscillates\n\nforgot zero_grad", "zero-grad-missing"),
    ("weights do not change\n\nzero_grad() is called after backward and before step", "zero-grad-before-step"),
    ("loss constant to the last digit, gradients fine\n\noptimizer.step() is missing", "optimizer-step-missing"),
    ("TypeError: unsupported operand type(s) for +=: 'float' and 'builtin_function_or_method'\n\nrunning loss", "method-not-called"),
    ("Training with multiple optimizers is only supported with manual optimization\n\nGAN in Lightning 2", "lightning-two-optimizers-auto"),
    ("attention is random in eval\n\nF.scaled_dot_product_attention(q, k, v, dropout_p=0.1)", "sdpa-dropout-in-eval"),
    ("model.eval() does not make predictions deterministic\n\nF.dropout in forward without training=self.training", "functional-dropout-always-on"),
    ("Accelerator(gradient_accumulation_steps=4) but weights change every batch\n\nno accelerator.accumulate context", "accelerate-accum-without-context"),
    # evaluation
    ("The `metric_for_best_model` training argument is set to 'eval_rouge', which is not found in the evaluation metrics\n\nseq2seq", "metric-name-mismatch"),
    ("EarlyStopping watches val_f1 and says it is not available\n\nLightning, logged as valid/f1", "metric-name-mismatch"),
    ("KeyError: 'eval_loss' at the first checkpoint\n\nload_best_model_at_end, PEFT model", "label-names-hidden"),
    ("predictions for the same image differ at every call\n\ninference script without model.eval()", "train-mode-in-eval"),
    ("the checkpoint kept as best has the lowest accuracy\n\nmode='min'", "best-checkpoint-wrong-mode"),
    ("AssertionError: EarlyStoppingCallback requires metric_for_best_model to be defined\n\nTrainer", "early-stopping-metric-missing"),
    ("eval_dataset is given but there are no evaluation metrics in the log\n\neval_strategy not set", "eval-never-runs"),
    ("Trainer: evaluation requires an eval_dataset\n\neval_strategy=steps", "eval-strategy-without-dataset"),
    ("Classification metrics can't handle a mix of binary and continuous targets\n\nsklearn", "metric-wrong-axis"),
    ("F1 changes with the evaluation batch size\n\naverage of per-batch F1", "averaging-batch-metrics"),
    ("scores below the paper for the same weights\n\nlm-eval without the chat template", "eval-harness-mismatch"),
    ("half of the correct outputs are counted wrong\n\nregex does not find the answer", "eval-answer-extraction-failure"),
    ("win rate flips when I swap the order of the two answers\n\nGPT judge", "llm-judge-bias"),
    ("model is 99% confident and wrong in a third of the cases\n\nno calibration", "miscalibration"),
    ("early stopping used the test set\n\nreported the best test accuracy", "test-set-selection"),
    # error hiding
    ("training 'works' but the model is poor\n\nexcept Exception: continue around each batch, many batches fail", "failing-batch-skipped"),
    ("NaN losses are replaced with nan_to_num and quality still degrades\n\nsource unknown", "nonfinite-masked"),
]

HEALTHY = [
    "step 100 loss 2.31 lr 0.0003 grad_norm 1.02\nstep 200 loss 2.12 lr 0.0003 grad_norm 0.98\nstep 300 loss 2.01 lr 0.0003 grad_norm 0.95\n",
    "trainable params: 4,194,304 || all params: 6,742,609,920 || trainable%: 0.0622\nloaded checkpoint from step 500\n<All keys matched successfully>\n",
    "0 Non-trainable params\nTrainable params: 1.2 M\nNon-trainable params: 0\nTotal params: 1.2 M\n",
]


def first_ids(text: str) -> list[str]:
    return [cause.id for cause in diagnose(["-"], stdin=text.encode()).root_causes]


@pytest.mark.parametrize(("text", "wanted"), REPORTS, ids=[f"{n}-{w}" for n, (_, w) in enumerate(REPORTS)])
def test_report_finds_its_cause_among_the_first_three(text: str, wanted: str) -> None:
    assert wanted in first_ids(text)[:3]


def test_most_reports_name_the_cause_first() -> None:
    first = sum(first_ids(text)[:1] == [wanted] for text, wanted in REPORTS)
    assert first >= 0.9 * len(REPORTS)


@pytest.mark.parametrize("text", HEALTHY)
def test_healthy_text_is_silent(text: str) -> None:
    assert first_ids(text) == []
