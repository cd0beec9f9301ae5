"""Reports in people's own words about data loading, memory, distribution, environment, serving, JAX and generation."""

from __future__ import annotations

import pytest

from trainwreck.engine import diagnose

REPORTS: tuple[tuple[str, str], ...] = (
    # data loading
    ("Every time I iterate the loader on my Windows laptop the whole script seems to start from the top again", "spawn-without-main-guard"),
    ("RuntimeError about bootstrapping phase and freeze_support as soon as num_workers=4; the same file runs on the cluster", "spawn-without-main-guard"),
    ("AttributeError: Can't get attribute '<lambda>' on module __main__, only on macOS with two loading processes", "unpicklable-lambda"),
    ("TypeError: cannot pickle 'sqlite3.Connection' object when the first batch is requested with 2 workers", "unpicklable-handle"),
    ("reading from one h5py file with four workers returns random garbage, with zero workers the numbers are right", "unpicklable-handle"),
    ("some jpgs cannot be decoded so my dataset returns None for them and collate blows up", "none-in-batch"),
    ("RuntimeError: stack expects each tensor to be equal size, but got [31] at entry 0 and [18] at entry 1", "ragged-collate"),
    ("a batch of one sample trains, anything larger dies in the collate function because clips have different lengths", "ragged-collate"),
    ("my LSTM crashes on reviews that are empty strings after cleaning", "empty-sample"),
    ("Caught FileNotFoundError in DataLoader worker process 3, path of a wav that was moved", "worker-exception"),
    ("inside docker the loader dies with a bus error once I raise the batch size; nothing special set for shm", "shm-too-small"),
    ("k8s pod: dataloader workers crash after a while, df shows /dev/shm at 64M and full", "shm-too-small"),
    ("OSError: [Errno 24] Too many open files after roughly 1000 iterations, I append the targets of each batch to a list", "fd-limit-held-tensors"),
    ("RSS of every worker creeps up during the epoch, dataset is a list of 5 million dicts; no problem with num_workers=0", "copy-on-write-memory"),
    ("ValueError: persistent_workers option needs num_workers > 0", "loader-option-needs-workers"),
    ("DataLoader refuses my WeightedRandomSampler together with shuffle=True", "shuffle-with-sampler"),
    ("got ValueError that batch_sampler is mutually exclusive with drop_last", "batch-sampler-exclusive"),
    ("set_start_method('spawn') fails: context has already been set", "start-method-late"),
    ("augmentation with np.random is identical in all workers", "worker-seed-duplicate"),
    ("my IterableDataset with 4 workers gives every record 4 times per epoch", "iterable-not-sharded"),
    ("GPU utilisation swings between 0 and 95%, most of the time it waits for image decoding", "dataloader-bottleneck"),
    ("dataset moves tensors to cuda in __getitem__ and the worker raises Cannot re-initialize CUDA in forked subprocess", "cuda-in-worker"),
    # memory
    ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.50 GiB on the very first forward pass, batch size 64, 24 GB card", "cuda-oom-capacity"),
    ("CUDA OOM although nvidia-smi says 10 GB are free and pytorch reports 14 GiB reserved but unallocated", "alloc-fragmentation"),
    ("training is fine but evaluation with the Trainer runs out of GPU memory after a few hundred eval batches, vocabulary is 150k", "eval-logits-accumulated"),
    ("validation uses as much memory as training, I forgot torch.no_grad there", "eval-without-no-grad"),
    ("memory climbs a little with each iteration until OOM; I do running_loss += loss", "loss-graph-retained"),
    ("forward and backward work, then optimizer.step() of AdamW throws CUDA out of memory in the first iteration", "optimizer-state-memory"),
    ("out of memory for 20 MiB; nvidia-smi lists a python process of yesterday holding 22 GB", "other-process-on-gpu"),
    ("OOM once every few thousand steps when one extremely long document lands in the batch", "variable-length-peak"),
    ("I catch OutOfMemoryError and retry with half the batch inside the except block, but it fails again", "exception-traceback-holds-memory"),
    ("enabled gradient checkpointing and memory does not go down at all", "gradient-checkpointing-ineffective"),
    ("slurm job just says Killed while loading the csv, exit code 137", "host-ram-exhausted"),
    ("DefaultCPUAllocator: can't allocate memory: you tried to allocate 51200000000 bytes", "host-ram-exhausted"),
    # distributed
    ("second iteration under DDP: Expected to have finished reduction in the prior iteration before starting a new one", "ddp-unused-parameters"),
    ("RuntimeError: Expected to mark a variable ready only once, with gradient checkpointing on 4 GPUs", "ddp-reentrant-checkpoint"),
    ("all GPUs hang at 100% at the last step of the epoch; the shards do not have the same number of samples", "uneven-batches"),
    ("saving is done under if rank == 0 and calls model.state_dict() of FSDP; the job then hangs until the NCCL watchdog fires", "rank-divergent-branch"),
    ("the other ranks hit the nccl timeout while rank 0 spends an hour tokenizing the corpus", "rank0-long-work"),
    ("init_process_group hangs with two nodes, single node is fine, NCCL_SOCKET_IFNAME was not set", "nccl-network"),
    ("torchrun: The server socket has failed to listen, EADDRINUSE port 29500", "port-in-use"),
    ("checksums of the weights drift apart between gpus, I call model.module(x) in the loop", "gradient-desync"),
    ("steps per epoch do not shrink with 4 GPUs, every GPU reads the entire dataset", "distributed-sampler-missing"),
    ("I never call sampler.set_epoch so each epoch has the same order", "sampler-set-epoch-missing"),
    ("validation accuracy logged by the main process only covers its own shard", "eval-metric-not-gathered"),
    ("with 8 gpus the learning rate reaches zero far too early, num_processes multiplies the scheduler steps", "world-size-scales-batch"),
    ("Must flatten tensors with uniform dtype but got torch.float32 and torch.bfloat16 when wrapping the adapter model in FSDP", "fsdp-mixed-dtype"),
    ("deepspeed stage 3: model weights saved are only a few kilobytes", "zero3-save-not-gathered"),
    ("embedding has shape torch.Size([0]) when I look at it under zero stage 3", "zero3-params-partitioned"),
    ("vllm refuses tensor_parallel_size=8, 28 attention heads are not divisible", "tp-heads-indivisible"),
    # environment
    ("TrainingArguments.__init__() got an unexpected keyword argument 'evaluation_strategy'", "removed-api"),
    ("ImportError: cannot import name 'LlamaFlashAttention2' from 'transformers.models.llama.modeling_llama'", "missing-import"),
    ("A module that was compiled using NumPy 1.x cannot be run in NumPy 2.1.0", "native-library-mismatch"),
    ("AssertionError: Torch not compiled with CUDA enabled", "cuda-not-available"),
    ("pip install flash-attn stops with CUDA_HOME environment variable is not set", "extension-build-failed"),
    ("OSError: You are trying to access a gated repo. 401 Client Error for meta-llama", "gated-repo"),
    ("compute node cannot reach the internet: We couldn't connect to 'https://huggingface.co' to load this file", "hub-unreachable"),
    ("Dataset scripts are no longer supported, but found squad_it.py", "datasets-script-unsupported"),
    ("bitsandbytes was compiled without GPU support, 4-bit loading fails", "bnb-library-missing"),
    ("MyTrainer.compute_loss() got an unexpected keyword argument 'num_items_in_batch'", "compute-loss-signature"),
    # serving
    ("vllm at start: No available memory for the cache blocks", "kv-cache-too-small"),
    ("User-specified max_model_len (65536) is greater than the derived max_model_len", "max-len-above-derived"),
    ("server answers 400: This model's maximum context length is 8192 tokens, my chat history is longer", "context-truncated-serving"),
    ("I start a second vLLM server for embeddings on the same GPU and it runs out of memory", "two-engines-one-gpu"),
    ("sglang: Capture cuda graph failed, out of memory", "cudagraph-capture-memory"),
    ("retrieval with an e5 model is far below the published recall, no query: prefix used", "embedding-pooling-wrong"),
    ("tool call JSON ends in the middle, finish_reason is length", "structured-output-truncation"),
    # JAX
    ("jax: if x.sum() > 0 inside a jitted function raises TracerBoolConversionError", "tracer-concretization"),
    ("UnexpectedTracerError after I saved an activation on self inside jit", "tracer-leak"),
    ("jnp array: x[2] = 5 does not work, TypeError about immutable arrays", "jax-inplace-update"),
    ("x.at[0].set(1) leaves x unchanged", "jax-at-result-dropped"),
    ("RuntimeError: Array has been deleted with shape=float32[512,512], we use donate_argnums", "jax-donated-buffer"),
    ("every step of my jax sampler draws the same noise, the key is never split", "jax-key-reuse"),
    ("print in my jitted step shows up only at the first call", "jax-side-effects-in-jit"),
    ("jax recompiles for each new sequence length and a step takes 20 s", "jax-recompilation"),
    ("flax: Cannot update variable \"mean\" because collection \"batch_stats\" is immutable", "jax-batchnorm-state"),
    ("optax adamw: You are using a transformation that requires the current value of parameters", "jax-optax-misuse"),
    # generation
    ("batched generate gives gibberish but prompts one at a time are fine, tokenizer pads on the right", "right-padding-generation"),
    ("Asking to pad but the tokenizer does not have a padding token", "pad-token-missing"),
    ("answers of the vLLM engine stop mid-sentence after sixteen tokens", "default-max-tokens"),
    ("the model keeps writing the user's next question instead of answering, chat template used without generation prompt", "generation-prompt-missing"),
    ("generated text repeats the same sentence over and over", "repetition-degeneration"),
    ("`temperature` (=0.0) has to be a strictly positive float", "temperature-zero-sampling"),
    ("there are two begin_of_text tokens at the start of each prompt", "double-bos"),
    ("decoded output contains my question followed by the answer", "prompt-not-stripped"),
    ("Cannot handle batch sizes > 1 if no padding token is defined, reward model from Qwen", "seqcls-pad-id-unset"),
)  # fmt: skip


def causes(report: str) -> list[str]:
    result = diagnose(["-"], stdin=report.encode())
    return [cause.id for cause in result.root_causes]


@pytest.mark.parametrize(("report", "cause"), REPORTS, ids=lambda value: value[:40])
def test_report_in_own_words(report: str, cause: str) -> None:
    assert cause in causes(report)[:3]


def test_most_are_first() -> None:
    first = sum(causes(report)[:1] == [cause] for report, cause in REPORTS)
    assert first / len(REPORTS) >= 0.9


@pytest.mark.parametrize(
    "report",
    [
        "epoch 3: loss 0.41 accuracy 0.87, epoch 4: loss 0.38 accuracy 0.88",
        "how do I plot the training curve of two runs in one figure",
        "training finished after 3 epochs, validation accuracy 91%, all fine",
    ],
)
def test_ordinary_words_name_no_cause_with_confidence(report: str) -> None:
    result = diagnose(["-"], stdin=report.encode())
    assert not [c.id for c in result.root_causes if c.confidence >= 0.6]
