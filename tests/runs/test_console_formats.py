"""Each framework's console text, in our own invented numbers: the right series at the right steps."""

from __future__ import annotations

import math

import pytest

from trainwreck.core.run import Run
from trainwreck.core.source import from_bytes
from trainwreck.runs.readers import console

nan = math.nan


def read(text: str) -> list[Run]:
    return console.read(from_bytes("run.log", text.encode("utf-8")))


def curve(run: Run, name: str) -> list[tuple[float, float]]:
    series = run.series[name]
    return [(round(s, 6), round(v, 6)) for s, v in zip(series.steps, series.values, strict=True)]


CASES: dict[str, tuple[str, dict[str, list[tuple[float, float]]]]] = {
    "nanogpt": (
        "number of parameters: 10.65M\nstep 0: train loss 4.2874, val loss 4.2823\niter 0: loss 4.2659, time 312"
        "47.65ms, mfu -100.00%\n"
        "iter 10: loss 3.2100, time 210.51ms, mfu 31.20%\niter 20: loss 3.0100, time 211.51ms, mfu 31.20%\n"
        "step 20: train loss 3.0012, val loss 3.1200\n",
        {
            "loss": [(0, 4.2659), (10, 3.21), (20, 3.01)],
            "val loss": [(0, 4.2823), (20, 3.12)],
            "train loss": [(0, 4.2874), (20, 3.0012)],
        },
    ),
    "llm.c": (
        "step    1/2000 | loss 10.98 (+nanz)| norm 21.12 (+nanz)| lr 1.00e-06 | 180.20 ms | 31.2% bf16 MFU | 900"
        "00 tok/s\n"
        "step    2/2000 | loss 10.70 (+0.31z)| norm 20.00 (-0.11z)| lr 2.00e-06 | 180.10 ms | 31.3% bf16 MFU | 9"
        "0010 tok/s\n"
        "val loss 10.61\n",
        {
            "loss": [(1, 10.98), (2, 10.7)],
            "norm": [(1, 21.12), (2, 20.0)],
            "lr": [(1, 1e-6), (2, 2e-6)],
            "val loss": [(2, 10.61)],
        },
    ),
    "llm.c-main-log": (
        "s:0 tel:11.02\ns:0 trl:11.01\ns:1 trl:10.80\ns:250 hel:0.2461\n",
        {"trl": [(0, 11.01), (1, 10.8)], "tel": [(0, 11.02)]},
    ),
    "modded-nanogpt": (
        "import os\nimport torch\nclass GPT(nn.Module):\n    def forward(self, x):\n        loss = 0.0\n        "
        "lr = 0.003\n"
        "    print(f'step:{step}/{args.num_iterations} val_loss:{val_loss:.4f} train_time:{t:.0f}ms')\n========="
        "===========\n"
        "Running python 3.12.1\n| N/A   34C    P0    52W / 400W |      0MiB / 81559MiB |      0%      Default |\n"
        "step:0/1480 val_loss:10.8258 train_time:0ms step_avg:nanms\nstep:1/1480 train_loss:10.6 train_time:90ms"
        " step_avg:nanms\n"
        "step:125/1480 val_loss:4.4123 train_time:20000ms step_avg:160.01ms\n",
        {"val_loss": [(0, 10.8258), (125, 4.4123)], "train_loss": [(1, 10.6)]},
    ),
    "megatron": (
        "  lr .............................................. 0.00015\n  min_loss_scale ..... 1.0\n"
        " iteration       10/    1000 | consumed samples:           40 | elapsed time per iteration (ms): 2711.1"
        " | learning rate: 0.000E+00 | "
        "global batch size:     4 | loss scale: 65536.0 | number of skipped iterations:  10 | number of nan iter"
        "ations:   0 |\n"
        " [2025-01-02 03:04:05] iteration       20/    1000 | consumed samples:           80 | elapsed time per "
        "iteration (ms): 2700.1 | "
        "learning rate: 7.500E-05 | global batch size:     4 | lm loss: 1.249E+01 | loss scale: 16384.0 | grad n"
        "orm: 6.069 | "
        "number of skipped iterations:   1 | number of nan iterations:   0 |\n"
        " validation loss at iteration 20 | lm loss value: 7.5E+00 | lm loss PPL: 1.808E+03 |\n",
        {
            "lm loss": [(20, 12.49)],
            "loss scale": [(10, 65536), (20, 16384)],
            "grad norm": [(20, 6.069)],
            "number of skipped iterations": [(10, 10), (20, 1)],
            "number of nan iterations": [(10, 0), (20, 0)],
            "val/lm loss value": [(20, 7.5)],
        },
    ),
    "deepspeed": (
        "[2024-05-01 10:00:00,123] [INFO] [logging.py:69:log_dist] [Rank 0] step=10, skipped=3, lr=[5e-05], mom="
        "[(0.9, 0.999)]\n"
        "steps: 10 loss: 2.3100 iter time (s): 1.200 samples/sec: 13.300\n"
        "[2024-05-01 10:00:09,923] [INFO] [logging.py:69:log_dist] [Rank 0] step=20, skipped=4, lr=[4e-05], mom="
        "[(0.9, 0.999)]\n"
        "steps: 20 loss: 2.2100 iter time (s): 1.200 samples/sec: 13.300\n",
        {"loss": [(10, 2.31), (20, 2.21)], "skipped": [(10, 3), (20, 4)], "lr": [(10, 5e-5), (20, 4e-5)]},
    ),
    "torchtitan": (
        "[titan] 2025-01-02 03:04:05,678 - root - INFO - \x1b[31mstep: 10  \x1b[32mloss:  8.1234  \x1b[38;2;180;"
        "60;0mgrad_norm:  1.2000  "
        "\x1b[33mmemory: 40.10GiB(42.21%)  \x1b[34mtps: 1,234  \x1b[36mtflops: 99.10  \x1b[35mmfu: 30.12%\x1b[39m\n"
        "[titan] 2025-01-02 03:04:15,678 - root - INFO - step: 20  loss:  7.9000  grad_norm:  1.1000  memory: 40"
        ".10GiB(42.21%)  tps: 1,250  "
        "tflops: 99.30  mfu: 30.13%\n",
        {"loss": [(10, 8.1234), (20, 7.9)], "grad_norm": [(10, 1.2), (20, 1.1)], "tps": [(10, 1234), (20, 1250)]},
    ),
    "torchtune": (
        "Step 10 | loss:1.93 lr:2e-05 tokens_per_second_per_gpu:812.1 grad_norm:0.5\nStep 11 | loss:1.91 lr:2e-05 "
        "tokens_per_second_per_gpu:815.1 grad_norm:0.4\n",
        {"loss": [(10, 1.93), (11, 1.91)], "lr": [(10, 2e-5), (11, 2e-5)], "grad_norm": [(10, 0.5), (11, 0.4)]},
    ),
    "torchtune-bar": (
        "\r1|9|Loss: 1.95:   1%|▏      | 9/1000 [00:09<10:00, 1.2it/s]\r1|10|Loss: 1.93:   1%|▏      | 10/1000 ["
        "00:10<10:00, 1.2it/s]",
        {"Loss": [(9, 1.95), (10, 1.93)]},
    ),
    "fairseq": (
        '2024-01-01 10:00:00 | INFO | train_inner | {"epoch": 1, "update": 0.05, "loss": "12.3", "ppl": "5000.1"'
        ', "wps": "0", "num_updates": '
        '"100", "lr": "1e-05", "gnorm": "3.2", "loss_scale": "128", "train_wall": "40"}\n'
        '2024-01-01 10:01:00 | INFO | train_inner | {"epoch": 1, "update": 0.1, "loss": "11.1", "ppl": "4000.1",'
        ' "wps": "0", "num_updates": '
        '"200", "lr": "2e-05", "gnorm": "3.1", "loss_scale": "64", "train_wall": "41"}\n'
        '2024-01-01 10:02:00 | INFO | valid | {"epoch": 1, "valid_loss": "10.5", "valid_ppl": "1448.2", "valid_n'
        'um_updates": "200"}\n',
        {"loss": [(100, 12.3), (200, 11.1)], "gnorm": [(100, 3.2), (200, 3.1)], "loss_scale": [(100, 128), (200, 64)]},
    ),
    "espnet": (
        "[gpu1] 2024-01-01 10:00:00,001 (trainer:737) INFO: 1epoch:train:1-50batch: iter_time=0.1, loss_ctc=90.1"
        ", loss=80.2, optim0_lr0=1.0e-06\n"
        "[gpu1] 2024-01-01 10:01:00,001 (trainer:737) INFO: 1epoch:train:51-100batch: iter_time=0.1, loss_ctc=80"
        ".1, loss=70.2, optim0_lr0=2.0e-06\n"
        "[gpu1] 2024-01-01 10:02:00,001 (trainer:737) INFO: 2epoch:train:1-50batch: iter_time=0.1, loss_ctc=70.1"
        ", loss=60.2, optim0_lr0=3.0e-06\n",
        {"loss": [(50, 80.2), (100, 70.2), (150, 60.2)]},
    ),
    "timm": (
        "Train: 0 [   0/1251 (  0%)]  Loss: 6.95 (6.95)  Time: 3.352s,  305.46/s  (3.352s,  305.46/s)  LR: 1.000"
        "e-06  Data: 1.2 (1.2)\n"
        "Train: 0 [  50/1251 (  4%)]  Loss: 6.91 (6.93)  Time: 0.352s,  905.46/s  (0.452s,  805.46/s)  LR: 1.000"
        "e-06  Data: 0.0 (0.1)\n"
        "Train: 1 [   0/1251 (  0%)]  Loss: 6.80 (6.80)  Time: 0.352s,  905.46/s  (0.452s,  805.46/s)  LR: 2.000"
        "e-06  Data: 0.0 (0.1)\n"
        "Test: [   0/48]  Time: 1.2 (1.2)  Loss:   6.70 ( 6.70)  Acc@1:   1.00 (  1.00)\n"
        "Test: [  48/48]  Time: 0.2 (0.3)  Loss:   6.60 ( 6.65)  Acc@1:   2.00 (  1.50)\n",
        {
            "Loss": [(0, 6.95), (50, 6.91), (1251, 6.8)],
            "LR": [(0, 1e-6), (50, 1e-6), (1251, 2e-6)],
            "test/Loss": [(1251, 6.6)],
        },
    ),
    "mmdetection": (
        "2024-01-01 10:00:00,000 - mmdet - INFO - Epoch [1][50/1000]\tlr: 1.000e-03, eta: 1:02:03, time: 0.300, "
        "data_time: 0.010, memory: 3000, "
        "loss_cls: 0.8000, loss_bbox: 0.4000, loss: 1.2000\n"
        "2024-01-01 10:05:00,000 - mmdet - INFO - Epoch [2][50/1000]\tlr: 1.000e-03, eta: 1:00:03, time: 0.300, "
        "data_time: 0.010, memory: 3000, "
        "loss_cls: 0.7000, loss_bbox: 0.3000, loss: 1.0000\n",
        {"loss": [(50, 1.2), (1050, 1.0)], "loss_cls": [(50, 0.8), (1050, 0.7)]},
    ),
    "mmengine": (
        "2024/01/01 10:00:00 - mmengine - INFO - Epoch(train)  [1][  50/7330]  lr: 9.9000e-05  eta: 3:22:12  tim"
        "e: 0.13  loss: 1.2500\n"
        "2024/01/01 10:00:10 - mmengine - INFO - Epoch(train)  [1][ 100/7330]  lr: 9.9000e-05  eta: 3:22:12  tim"
        "e: 0.13  loss: 1.1500\n",
        {"loss": [(50, 1.25), (100, 1.15)], "lr": [(50, 9.9e-5), (100, 9.9e-5)]},
    ),
    "keras": (
        "Epoch 1/3\n\r 1/64 [..............................] - ETA: 10s - loss: 0.9000\b\b\b\r64/64 [==========="
        "===================] - 3s 40ms/step "
        "- loss: 0.6900 - accuracy: 0.5100 - val_loss: 0.7000 - val_accuracy: 0.5000\nEpoch 2/3\n"
        "64/64 [==============================] - 2s 38ms/step - loss: 0.5900 - accuracy: 0.6100 - val_loss: 0.6"
        "500 - val_accuracy: 0.6000\n",
        {"loss": [(1, 0.69), (2, 0.59)], "val_loss": [(1, 0.7), (2, 0.65)], "accuracy": [(1, 0.51), (2, 0.61)]},
    ),
    "keras-3": (
        "Epoch 1/2\n\x1b[1m64/64\x1b[0m \x1b[32m━━━━━━━━━━━━━━━━━━━━\x1b[0m\x1b[37m\x1b[0m \x1b[1m3s\x1b[0m 40ms"
        "/step - accuracy: 0.5100 - loss: nan\n",
        {"loss": [(1, nan)], "accuracy": [(1, 0.51)]},
    ),
    "tqdm-postfix": (
        "\rEpoch 0:  50%|█████     | 50/100 [00:10<00:10,  4.9it/s, loss=1.25, lr=1e-3]\rEpoch 0: 100%|█████████"
        "█| 100/100 [00:20<00:00,  4.9it/s, "
        "loss=1.15, lr=1e-3]\n\rEpoch 1:  50%|█████     | 50/100 [00:10<00:10,  4.9it/s, loss=1.05, lr=5e-4]",
        {"loss": [(50, 1.25), (100, 1.15), (150, 1.05)], "lr": [(50, 1e-3), (100, 1e-3), (150, 5e-4)]},
    ),
    "lightning": (
        "\rEpoch 0:  10%|█         | 50/500 [00:10<01:35,  4.71it/s, v_num=3, train_loss_step=2.300, val_loss=2.10]\r"
        "Epoch 1:  10%|█         | 50/500 [00:10<01:35,  4.71it/s, v_num=3, train_loss_step=2.100, val_loss=2.00]",
        {"train_loss_step": [(50, 2.3), (550, 2.1)]},
    ),
    "hf-dicts": (
        "  0%|          | 0/300 [00:00<?, ?it/s]\r  3%|▎         | 10/300 [00:07<03:30,  1.38it/s]{'loss': 2.5, "
        "'grad_norm': 1.25, 'learning_rate': "
        "1e-05, 'epoch': 0.1}\n\r  7%|▋         | 20/300 [00:14<03:20,  1.38it/s]{'loss': '2.25', 'grad_norm': n"
        "p.float64(1.5), 'learning_rate': "
        "'9e-06', 'epoch': 0.2}\n\r100%|██████████| 8/8 [00:01<00:00,  7.00it/s]\x1b[A{'eval_loss': 2.2, 'eval_r"
        "untime': 1.1, 'epoch': 0.2}\n"
        "{'train_runtime': 22.0, 'train_samples_per_second': 10.0, 'train_loss': 2.3, 'epoch': 0.2}\n",
        {
            "loss": [(10, 2.5), (20, 2.25)],
            "grad_norm": [(10, 1.25), (20, 1.5)],
            "eval_loss": [(20, 2.2)],
            "final/train_loss": [(20, 2.3)],
        },
    ),
    "hf-dicts-without-bar": (
        "{'loss': 2.5, 'learning_rate': 1e-05, 'epoch': 0.1}\n{'loss': nan, 'learning_rate': 9e-06, 'epoch': 0.2}\n",
        {"loss": [(0.1, 2.5), (0.2, nan)]},
    ),
    "sb3": (
        "-----------------------------------------\n| rollout/                |             |\n|    ep_len_mean "
        "         | 22.1        |\n"
        "|    ep_rew_mean          | 21.5        |\n| time/                   |             |\n|    total_timest"
        "eps      | 2048        |\n"
        "| train/                  |             |\n|    approx_kl            | 0.0081      |\n|    explained_va"
        "riance   | nan         |\n"
        "-----------------------------------------\n-----------------------------------------\n| rollout/       "
        "         |             |\n"
        "|    ep_rew_mean          | 31.5        |\n| time/                   |             |\n|    total_timest"
        "eps      | 4096        |\n"
        "-----------------------------------------\n",
        {
            "rollout/ep_rew_mean": [(2048, 21.5), (4096, 31.5)],
            "train/approx_kl": [(2048, 0.0081)],
            "train/explained_variance": [(2048, nan)],
        },
    ),
    "verl": (
        "(TaskRunner pid=1234) step:1 - actor/pg_loss:0.010 - actor/entropy:np.float64(0.35) - critic/score/mean"
        ":0.600 - training/global_step:1\n"
        "\x1b[36m(TaskRunner pid=1234)\x1b[0m step:2 - actor/pg_loss:-0.020 - actor/entropy:0.30 - critic/score/"
        "mean:0.700 - training/global_step:2 "
        "[repeated 7x across cluster]\n",
        {
            "actor/pg_loss": [(1, 0.01), (2, -0.02)],
            "actor/entropy": [(1, 0.35), (2, 0.3)],
            "critic/score/mean": [(1, 0.6), (2, 0.7)],
        },
    ),
    "composer": (
        "[batch=10/1000]:\n\t Train loss/train/total: 2.3000\n\t Train lr-DecoupledAdamW/group0: 1.0e-04\n"
        "[batch=20/1000]:\n\t Train loss/train/total: 2.1000\n\t Train lr-DecoupledAdamW/group0: 2.0e-04\n",
        {"Train loss/train/total": [(10, 2.3), (20, 2.1)]},
    ),
    "mllog": (
        ':::MLLOG {"namespace": "", "time_ms": 1, "event_type": "POINT_IN_TIME", "key": "opt_base_learning_rate"'
        ', "value": 0.1, "metadata": {}}\n'
        ':::MLLOG {"namespace": "", "time_ms": 2, "event_type": "POINT_IN_TIME", "key": "eval_accuracy", "value"'
        ': 0.5, "metadata": {"epoch_num": 4}}\n'
        ':::MLLOG {"namespace": "", "time_ms": 3, "event_type": "POINT_IN_TIME", "key": "eval_accuracy", "value"'
        ': 0.7, "metadata": {"epoch_num": 8}}\n',
        {"eval_accuracy": [(4, 0.5), (8, 0.7)]},
    ),
    "mlperf-0.5": (
        ':::MLPv0.5.0 resnet 1540000000.123456 (train.py:70) opt_name: "sgd"\n'
        ':::MLPv0.5.0 resnet 1540000001.123456 (train.py:71) eval_accuracy: {"epoch": 1, "value": 0.25}\n'
        ':::MLPv0.5.0 resnet 1540000002.123456 (train.py:71) eval_accuracy: {"epoch": 2, "value": 0.45}\n',
        {"eval_accuracy": [(1, 0.25), (2, 0.45)]},
    ),
    "ultralytics": (
        "\n      Epoch    GPU_mem   box_loss   cls_loss   dfl_loss  Instances       Size\n"
        "        1/3      2.61G      1.050      3.200      1.100         50        640: 100%|██████████| 50/50 ["
        "00:10<00:00,  4.90it/s]\n"
        "                 Class     Images  Instances      Box(P          R      mAP50  mAP50-95): 100%|████████"
        "██| 4/4 [00:01<00:00,  3.9it/s]\n"
        "                   all        128        929      0.640      0.537      0.605      0.446\n"
        "\n      Epoch    GPU_mem   box_loss   cls_loss   dfl_loss  Instances       Size\n"
        "        2/3      2.61G      0.950      2.200      1.000         50        640: 100%|██████████| 50/50 ["
        "00:10<00:00,  4.90it/s]\n",
        {"box_loss": [(1, 1.05), (2, 0.95)], "cls_loss": [(1, 3.2), (2, 2.2)]},
    ),
    "fastai": (
        "epoch     train_loss  valid_loss  accuracy  time\n0         0.5200      0.3100      0.9000    00:12\n1 "
        "        0.4200      0.3000      0.9100    00:12\n",
        {"train_loss": [(0, 0.52), (1, 0.42)], "valid_loss": [(0, 0.31), (1, 0.3)], "accuracy": [(0, 0.9), (1, 0.91)]},
    ),
    "pipe-table": (
        "| epoch | train loss | val acc |\n|-------|------------|---------|\n|     1 |     0.9000 |  50.0%  |\n|"
        "     2 |     0.8000 |  60.0%  |\n",
        {"train loss": [(1, 0.9), (2, 0.8)], "val acc": [(1, 0.5), (2, 0.6)]},
    ),
    "xgboost": (
        "[0]\tvalidation_0-logloss:0.61234\tvalidation_1-logloss:0.62\n[10]\tvalidation_0-logloss:0.41234\tvalid"
        "ation_1-logloss:0.52\n",
        {"validation_0-logloss": [(0, 0.61234), (10, 0.41234)], "validation_1-logloss": [(0, 0.62), (10, 0.52)]},
    ),
    "lightgbm": (
        "[10]\ttraining's binary_logloss: 0.41\tvalid_1's binary_logloss: 0.52\n[20]\ttraining's binary_logloss:"
        " 0.31\tvalid_1's binary_logloss: 0.50\n",
        {"training's binary_logloss": [(10, 0.41), (20, 0.31)], "valid_1's binary_logloss": [(10, 0.52), (20, 0.5)]},
    ),
    "catboost": (
        "0:\tlearn: 0.6800000\ttest: 0.6810000\tbest: 0.6810000 (0)\ttotal: 58.1ms\tremaining: 58s\n"
        "1:\tlearn: 0.6600000\ttest: 0.6710000\tbest: 0.6710000 (1)\ttotal: 60.1ms\tremaining: 58s\n"
        "2:\tlearn: 0.6500000\ttest: 0.6700000\tbest: 0.6700000 (2)\ttotal: 62.1ms\tremaining: 58s\n",
        {"learn": [(0, 0.68), (1, 0.66), (2, 0.65)], "test": [(0, 0.681), (1, 0.671), (2, 0.67)]},
    ),
    "pytorch-mnist": (
        "Train Epoch: 1 [0/60000 (0%)]\tLoss: 2.300000\nTrain Epoch: 1 [640/60000 (1%)]\tLoss: 1.750000\n"
        "\nTest set: Average loss: 0.0500, Accuracy: 9830/10000 (98%)\n\nTrain Epoch: 2 [0/60000 (0%)]\tLoss: 0."
        "250000\n",
        {"Loss": [(0, 2.3), (640, 1.75), (60000, 0.25)]},
    ),
    "pytorch-imagenet": (
        "Epoch: [0][   1/5005]\tTime  0.300 ( 0.400)\tData  0.010 ( 0.020)\tLoss 6.9000e+00 (7.0000e+00)\tAcc@1 "
        "  0.39 (  0.20)\n"
        "Epoch: [1][   1/5005]\tTime  0.300 ( 0.400)\tData  0.010 ( 0.020)\tLoss 5.9000e+00 (6.0000e+00)\tAcc@1 "
        "  1.39 (  1.20)\n",
        {"Loss": [(1, 6.9), (5006, 5.9)], "Acc@1": [(1, 0.39), (5006, 1.39)]},
    ),
    "pytorch-transfer-tutorial": (
        "Epoch 0/24\n----------\ntrain Loss: 0.6000 Acc: 0.7000\nval Loss: 0.3000 Acc: 0.9000\n\nEpoch 1/24\n---"
        "-------\ntrain Loss: 0.5000 Acc: 0.7500\n"
        "val Loss: 0.2500 Acc: 0.9100\n",
        {"train Loss": [(0, 0.6), (1, 0.5)], "val Loss": [(0, 0.3), (1, 0.25)], "val/Acc": [(0, 0.9), (1, 0.91)]},
    ),
    "pytorch-cifar-tutorial": (
        "[1,  2000] loss: 2.230\n[1,  4000] loss: 1.900\n[2,  2000] loss: 1.500\n[2,  4000] loss: 1.400\nFinishe"
        "d Training\n",
        {"loss": [(2000, 2.23), (4000, 1.9), (6000, 1.5), (8000, 1.4)]},
    ),
    "gan-tutorial": (
        "[0/5][0/1583]\tLoss_D: 1.9847\tLoss_G: 2.6928\tD(x): 0.4240\n[0/5][50/1583]\tLoss_D: 0.8000\tLoss_G: 7."
        "1000\tD(x): 0.7000\n"
        "[1/5][0/1583]\tLoss_D: 0.5000\tLoss_G: 3.1000\tD(x): 0.8000\n",
        {"Loss_D": [(0, 1.9847), (50, 0.8), (1583, 0.5)], "Loss_G": [(0, 2.6928), (50, 7.1), (1583, 3.1)]},
    ),
    "gan-brackets": (
        "[Epoch 0/200] [Batch 100/938] [D loss: 0.512] [G loss: 1.2]\n[Epoch 1/200] [Batch 100/938] [D loss: 0.4"
        "12] [G loss: 1.3]\n",
        {"D loss": [(100, 0.512), (1038, 0.412)], "G loss": [(100, 1.2), (1038, 1.3)]},
    ),
    "words": (
        "epoch 3 train_loss 0.123 val_acc 0.91 lr 1e-3\nepoch 4 train_loss 0.103 val_acc 0.92 lr 1e-3\n",
        {"train_loss": [(3, 0.123), (4, 0.103)], "val_acc": [(3, 0.91), (4, 0.92)], "lr": [(3, 1e-3), (4, 1e-3)]},
    ),
    "average-in-brackets": (
        "step 1 loss 0.31 (avg 0.35)\nstep 2 loss 0.30 (avg 0.34)\n",
        {"loss": [(1, 0.31), (2, 0.3)]},
    ),
    "tensors": (
        "Epoch 5 | train_loss: tensor(2.3, device='cuda:0', grad_fn=<NllLossBackward0>) | val_loss: 1,234.5\nEpo"
        "ch 6 | train_loss: tensor(nan, "
        "device='cuda:0', grad_fn=<NllLossBackward0>) | val_loss: -inf\n",
        {"train_loss": [(5, 2.3), (6, nan)], "val_loss": [(5, 1234.5), (6, -math.inf)]},
    ),
    "phases-in-one-line": (
        "Epoch 1 Training: loss 0.30 acc 0.90 Validation: loss 0.40 acc 0.80\nEpoch 2 Training: loss 0.20 acc 0."
        "95 Validation: loss 0.45 acc 0.81\n",
        {"loss": [(1, 0.3), (2, 0.2)], "val/loss": [(1, 0.4), (2, 0.45)], "val/acc": [(1, 0.8), (2, 0.81)]},
    ),
    "magnitudes": ("step 1.2k | loss 2.1\nstep 1.4k | loss 2.0\n", {"loss": [(1200, 2.1), (1400, 2.0)]}),
    "ranks": (
        "[rank0]: step 1 loss 2.0\n[rank1]: step 1 loss 2.5\n[rank0]: step 2 loss 1.9\n[rank1]: step 2 loss nan\n",
        {"loss": [(1, 2.0), (2, 1.9)], "loss [rank1]": [(1, 2.5), (2, nan)]},
    ),
    "logging-prefixes": (
        "INFO:root:epoch 1 loss 0.5\nINFO:root:epoch 2 loss 0.4\n",
        {"loss": [(1, 0.5), (2, 0.4)]},
    ),
    "chinese": (
        "第1轮 epoch: 1, 训练损失: 0.52, 准确率: 91.0%\n第2轮 epoch: 2, 训练损失: 0.42, 准确率: 92.0%\n",
        {"训练损失": [(1, 0.52), (2, 0.42)], "准确率": [(1, 0.91), (2, 0.92)]},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_series_of_a_format_are_read_at_their_steps(name: str) -> None:
    text, expected = CASES[name]
    runs = read(text)
    assert len(runs) == 1, [dict(r.series) for r in runs]
    for metric, points in expected.items():
        assert metric in runs[0].series, sorted(runs[0].series)
        got = curve(runs[0], metric)
        assert [s for s, _ in got] == [s for s, _ in points], metric
        assert [v for _, v in got] == pytest.approx([v for _, v in points], nan_ok=True), metric


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("end", ["\r\n", "\n\n"])
def test_line_ends_do_not_change_the_series(name: str, end: str) -> None:
    text, _ = CASES[name]
    plain, other = read(text), read(text.replace("\n", end))
    assert [sorted(r.series) for r in plain] == [sorted(r.series) for r in other]
    for one, two in zip(plain, other, strict=True):
        for metric in one.series:
            assert str(curve(one, metric)) == str(curve(two, metric))


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig"])
def test_encodings(encoding: str) -> None:
    text = "epoch 1 loss 0.5\nepoch 2 loss 0.4\nepoch 3 loss 0.3\n"
    runs = console.read(from_bytes("run.log", text.encode(encoding)))
    assert curve(runs[0], "loss") == [(1, 0.5), (2, 0.4), (3, 0.3)]
