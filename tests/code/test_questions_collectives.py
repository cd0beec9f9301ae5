"""Collectives called by hand. ``# here`` marks the line; without one all is well."""

from __future__ import annotations

import pytest

from marked import answered, marked
from trainwreck.code.rehearsal.questions import Question
from trainwreck.code.rehearsal.questions.collectives import clipped_before, on_one_rank, summed_only

PROGRAM = """
import torch, torch.nn as nn, torch.nn.functional as F
import torch.distributed as dist
import torch.multiprocessing as mp
def reduce_all(net, world):
    for p in net.parameters():
        REDUCE
def judge(net, x, y):
    hits = (net(x).argmax(1) == y).sum()
    dist.all_reduce(hits)
    return hits.item() / len(x)
def keep(net, path):
    torch.save(net.state_dict(), path)
def work(rank, world):
    dist.init_process_group("gloo", rank=rank, world_size=world)
    torch.manual_seed(0)
    net = nn.Linear(8, 3)
    opt = torch.optim.SGD(net.parameters(), lr=RATE)
    x, y = torch.randn(640, 8), torch.randint(3, (640,))
    for epoch in range(5):
        for pick in torch.arange(rank, 640, world).split(32):
            loss = LOSS
            opt.zero_grad()
            loss.backward()
            STEPS
            opt.step()
        END
if __name__ == "__main__":
    mp.spawn(work, args=(2,), nprocs=2)
"""
MEAN = "dist.all_reduce(p.grad); p.grad /= world"


def program(
    reduce: str = MEAN,
    steps: str = "reduce_all(net, world)",
    end: str = "pass",
    loss: str = "F.cross_entropy(net(x[pick]), y[pick])",
    rate: str = "0.1",
) -> str:
    text = PROGRAM.replace("REDUCE", reduce.replace("\n", "\n        ")).replace("LOSS", loss).replace("RATE", rate)
    return text.replace("STEPS", steps.replace("\n", "\n            ")).replace("END", end.replace("\n", "\n        "))


CLIP = "nn.utils.clip_grad_norm_(net.parameters(), 1.0)"
CASES: list[tuple[Question, str]] = [
    (summed_only, program("dist.all_reduce(p.grad)  # here")),
    (summed_only, program("dist.all_reduce(p.grad, op=dist.ReduceOp.SUM)  # here")),
    (summed_only, program("if p.grad is not None:\n    dist.all_reduce(p.grad.data)  # here")),
    (summed_only, program()),
    (summed_only, program("dist.all_reduce(p.grad); p.grad.div_(world)")),
    (summed_only, program("p.grad.mul_(0.5); dist.all_reduce(p.grad)")),
    (summed_only, program("dist.all_reduce(p.grad, op=dist.ReduceOp.AVG)")),
    (summed_only, program("dist.all_reduce(p.grad)", loss="F.cross_entropy(net(x[pick]), y[pick]) / world")),
    (summed_only, program("dist.all_reduce(p.grad)", rate="0.1 / world")),
    (summed_only, program("dist.all_reduce(p.grad)", loss="F.cross_entropy(net(x[pick]), y[pick], reduction='sum')")),
    (clipped_before, program(steps=CLIP + "  # here\nreduce_all(net, world)")),
    (clipped_before, program(steps="reduce_all(net, world)\n" + CLIP)),
    (on_one_rank, program(end="if rank == 0:\n    print(judge(net, x, y))  # here")),
    (on_one_rank, program(end="if dist.get_rank() == 0:\n    keep(net, 'a.pt')\n    dist.barrier()  # here")),
    (on_one_rank, program(end="if not rank:\n    dist.barrier()  # here")),
    (on_one_rank, program(end="score = judge(net, x, y)\nif rank == 0:\n    print(score)")),
    (on_one_rank, program(end="if world > 1:\n    dist.barrier()\nif rank == 0:\n    keep(net, 'a.pt')")),
    (on_one_rank, program(end="if rank == 0:\n    keep(net, 'a.pt')\n    dist.barrier()\nelse:\n    dist.barrier()")),
]


@pytest.mark.parametrize(("question", "text"), CASES)
def test_collective(question: Question, text: str) -> None:
    assert answered(question, text) == marked(text)
