import torch
import torch.multiprocessing as mp


def generate(rank, prompts):
    torch.cuda.set_device(0)
    print(rank, torch.randn(len(prompts), device="cuda").mean().item())


print("using", torch.zeros(1).cuda().device)
workers = [mp.get_context("fork").Process(target=generate, args=(r, ["a", "b"])) for r in range(2)]
for w in workers:
    w.start()
for w in workers:
    w.join()
    print("exit code", w.exitcode)
