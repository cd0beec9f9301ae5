# ruff: noqa: E501  the edits stand on lines of their own
"""Healthy scripts (``spellings/*.py.txt``) and edits of them that make one fault each."""

from __future__ import annotations

from pathlib import Path

HERE = Path(__file__).parent / "spellings"
Edits = tuple[tuple[str, str], ...]


def e(*pairs: str) -> Edits:
    """Edits from old and new texts in turn."""
    return tuple(zip(pairs[::2], pairs[1::2], strict=True))


def edited(script: str, edits: Edits) -> tuple[str, list[int]]:
    """The script after the edits, and the lines (from 1) at which it was changed."""
    text = (HERE / f"{script}.py.txt").read_text(encoding="utf-8")
    lines: list[int] = []
    for old, new in edits:
        assert text.count(old) >= 1, f"{old!r} does not stand in {script}"
        at = text.index(old)
        lines.append(text[: at + len(old) - len(old.lstrip("\n"))].count("\n") + 1)
        text = text[:at] + new + text[at + len(old) :]
    compile(text, script, "exec")
    return text, lines


FAULTS: tuple[tuple[str, str, Edits], ...] = (
    # optimizer-missing-parameters
    (
        "trainer",
        "optimizer-missing-parameters",
        e("[*self.model.mean.parameters(), self.model.log_scale]", "list(self.model.mean.parameters())"),
    ),
    (
        "trainer",
        "optimizer-missing-parameters",
        e("self.model.trunk.parameters()", "self.model.trunk.layers[-1].parameters()"),
    ),
    (
        "closures",
        "optimizer-missing-parameters",
        e(
            "(some if p.ndim > 1 else none).append(p)",
            "if 'bias' not in name:\n            some.append(p)",
            '[{"params": some, "weight_decay": decay}, {"params": none, "weight_decay": 0.0}]',
            '[{"params": some, "weight_decay": decay}]',
        ),
    ),
    (
        "adapt",
        "optimizer-missing-parameters",
        e(
            "    model.head = nn.Linear(model.head.in_features, classes)\n    return [p for p in model.parameters() if p.requires_grad]",
            "    chosen = [p for p in model.parameters() if p.requires_grad]\n    model.head = nn.Linear(model.head.in_features, classes)\n    return chosen",
        ),
    ),
    (
        "adapt",
        "optimizer-missing-parameters",
        e(
            "return [p for p in model.parameters() if p.requires_grad]",
            "return [p for n, p in model.named_parameters() if n.endswith(('down.weight', 'up.weight'))]",
        ),
    ),
    (
        "adversarial",
        "optimizer-missing-parameters",
        e("torch.optim.Adam(self.critic.parameters()", "torch.optim.Adam(self.critic[:2].parameters()"),
    ),
    (
        "resume",
        "optimizer-missing-parameters",
        e(
            "        self.scaler = torch",
            "        self.net = nn.Sequential(*self.net[:-1], nn.Linear(32, 1))\n        self.scaler = torch",
        ),
    ),
    # zero-grad-missing, zero-grad-before-step, zero-grad-every-micro-batch, optimizer-step-missing
    ("adversarial", "zero-grad-missing", e("        self.critic_opt.zero_grad()\n", "")),
    ("adversarial", "zero-grad-missing", e("self.critic_opt.zero_grad()", "self.maker_opt.zero_grad()")),
    (
        "recurrent",
        "zero-grad-missing",
        e(
            "            optimizer.zero_grad()\n",
            "",
            "        state, total = None, 0.0\n",
            "        state, total = None, 0.0\n        optimizer.zero_grad()\n",
        ),
    ),
    ("closures", "zero-grad-missing", e("        opt.zero_grad()\n", "")),
    (
        "plain",
        "zero-grad-missing",
        e(
            "                opt.zero_grad()\n                schedule",
            "                schedule",
            "        opt.zero_grad()\n        for i,",
            "        opt.zero_grad()\n        for i,",
        ),
    ),
    (
        "trainer",
        "zero-grad-before-step",
        e(
            "        for optimizer in self.optimizers.values():\n            optimizer.step()",
            "        for optimizer in self.optimizers.values():\n            optimizer.zero_grad()\n            optimizer.step()",
        ),
    ),
    (
        "adversarial",
        "zero-grad-before-step",
        e(
            "        self.maker_opt.zero_grad()\n        loss.backward()\n",
            "        loss.backward()\n        self.maker_opt.zero_grad()\n",
        ),
    ),
    (
        "resume",
        "zero-grad-before-step",
        e(
            "                self.opt.zero_grad()\n",
            "",
            "                self.scaler.step(self.opt)\n",
            "                self.net.zero_grad()\n                self.scaler.step(self.opt)\n",
        ),
    ),
    (
        "plain",
        "zero-grad-every-micro-batch",
        e("            with torch.autocast", "            opt.zero_grad()\n            with torch.autocast"),
    ),
    (
        "plain",
        "zero-grad-every-micro-batch",
        e(
            "            scaler.scale(loss)",
            "            for p in net.parameters():\n                p.grad = None\n            scaler.scale(loss)",
        ),
    ),
    ("adversarial", "optimizer-step-missing", e("        self.critic_opt.step()\n", "")),
    (
        "trainer",
        "optimizer-step-missing",
        e(
            "        for optimizer in self.optimizers.values():\n            optimizer.step()",
            "        self.optimizers['head'].step()",
        ),
    ),
    (
        "recurrent",
        "optimizer-step-missing",
        e(
            "            optimizer.step()\n",
            "",
            "        curve.append(total)",
            "        optimizer.step()\n        curve.append(total)",
        ),
    ),
    (
        "closures",
        "optimizer-step-missing",
        e("        loss.backward()\n", "", "        opt.step()\n", "        opt.step()\n        loss.backward()\n"),
    ),
    # accumulation
    (
        "plain",
        "grad-accum-normalisation",
        e("F.cross_entropy(net(x), y) / args.accumulate", "F.cross_entropy(net(x), y)"),
    ),
    # clipping
    (
        "closures",
        "gradient-clipping-misplaced",
        e(
            "        nn.utils.clip_grad_norm_(net.parameters(), max_norm=1.0)\n        opt.step()\n",
            "        opt.step()\n        nn.utils.clip_grad_norm_(net.parameters(), max_norm=1.0)\n",
        ),
    ),
    (
        "recurrent",
        "gradient-clipping-misplaced",
        e(
            "            loss.backward()\n            nn.utils.clip_grad_value_(model.parameters(), 1.0)\n",
            "            nn.utils.clip_grad_value_(model.parameters(), 1.0)\n            loss.backward()\n",
        ),
    ),
    (
        "trainer",
        "gradient-clipping-misplaced",
        e(
            "        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 5.0)\n",
            "        torch.nn.utils.clip_grad_norm_(self.average.model.parameters(), 5.0)\n",
        ),
    ),
    (
        "plain",
        "clip-before-unscale",
        e(
            "                scaler.unscale_(opt)\n                nn.utils.clip_grad_norm_(net.parameters(), 1.0)\n",
            "                nn.utils.clip_grad_norm_(net.parameters(), 1.0)\n                scaler.unscale_(opt)\n",
        ),
    ),
    ("plain", "clip-before-unscale", e("                scaler.unscale_(opt)\n", "")),
    (
        "resume",
        "clip-before-unscale",
        e(
            "                self.scaler.step(self.opt)\n",
            "                nn.utils.clip_grad_norm_(self.net.parameters(), 1.0)\n                self.scaler.step(self.opt)\n",
        ),
    ),
    ("plain", "scaler-update-missing", e("                scaler.update()\n", "")),
    ("resume", "scaler-update-missing", e("                self.scaler.update()\n", "")),
    # schedules
    (
        "plain",
        "scheduler-wrong-granularity",
        e(
            "                schedule.step()\n",
            "",
            "        accuracy = evaluate",
            "        schedule.step()\n        accuracy = evaluate",
        ),
    ),
    (
        "plain",
        "scheduler-wrong-granularity",
        e("T_max=updates", "T_max=args.epochs", "                schedule.step()", "                schedule.step()"),
    ),
    (
        "closures",
        "scheduler-wrong-granularity",
        e(
            "        schedule.step()\n",
            "",
            "            print(n, sum",
            "            schedule.step()\n            print(n, sum",
        ),
    ),
    (
        "resume",
        "scheduler-wrong-granularity",
        e(
            "                self.schedule.step()\n",
            "",
            "            self.epoch += 1",
            "            self.schedule.step()\n            self.epoch += 1",
        ),
    ),
    (
        "trainer",
        "scheduler-never-stepped",
        e("            self.plateau.step(error)\n", "", "self.plateau = torch", "self.plateau = torch"),
    ),
    (
        "closures",
        "scheduler-never-stepped",
        e("        schedule.step()\n", "", "schedule = torch.optim", "schedule = torch.optim"),
    ),
    (
        "resume",
        "scheduler-before-optimizer",
        e(
            "                self.schedule.step()\n",
            "",
            "                self.scaler.scale(loss)",
            "                self.schedule.step()\n                self.scaler.scale(loss)",
        ),
    ),
    (
        "closures",
        "scheduler-before-optimizer",
        e("        opt.step()\n        schedule.step()\n", "        schedule.step()\n        opt.step()\n"),
    ),
    (
        "resume",
        "scheduler-stale-optimizer",
        e(
            "        self.scaler = torch",
            "        self.opt = torch.optim.SGD(self.net.parameters(), lr=0.01, momentum=0.9)\n        self.scaler = torch",
        ),
    ),
    (
        "trainer",
        "plateau-mode-mismatch",
        e('mode="min"', 'mode="max"', "self.plateau.step(error)", "self.plateau.step(error)"),
    ),
    ("trainer", "plateau-step-without-metric", e("self.plateau.step(error)", "self.plateau.step()")),
    ("trainer", "plateau-step-without-metric", e("self.plateau.step(error)", "self.plateau.step(epoch)")),
    ("closures", "warmup-lr-zero", e("return (k + 1) / warmup", "return k // warmup")),
    ("closures", "warmup-lr-zero", e("return (k + 1) / warmup", "return 0.0 * (k + 1) / warmup")),
    # rates
    ("plain", "lr-too-high", e('"--lr", type=float, default=3e-3', '"--lr", type=float, default=3.0')),
    ("closures", "lr-too-high", e('"lr": 2e-3', '"lr": 0.5')),
    ("trainer", "lr-too-high", e("head_lr: float = 1e-2", "head_lr: float = 25.0")),
    ("plain", "lr-too-low", e('"--lr", type=float, default=3e-3', '"--lr", type=float, default=3e-9')),
    ("closures", "lr-too-low", e('"lr": 2e-3', '"lr": 2e-8')),
    ("adapt", "lr-too-low", e("lr=5e-3", "lr=5e-9")),
    (
        "plain",
        "weight-decay-too-large",
        e(
            '"--decay", type=float, default=0.01',
            '"--decay", type=float, default=8.0',
            "opt = torch.optim.AdamW",
            "opt = torch.optim.AdamW",
        ),
    ),
    ("closures", "weight-decay-too-large", e('"weight_decay": 0.05', '"weight_decay": 5.0')),
    ("trainer", "weight-decay-too-large", e("weight_decay=1e-4", "weight_decay=0.3")),
    ("plain", "adam-epsilon-wrong", e("eps=1e-8", "eps=0.1")),
    (
        "closures",
        "adam-epsilon-wrong",
        e('"eps": 1e-8', '"eps": 1.0', "opt = torch.optim.AdamW(split", "opt = torch.optim.AdamW(split"),
    ),
    ("plain", "adam-beta2-too-large", e("betas=(0.9, 0.999)", "betas=(0.9, 0.99999)")),
    # modes
    (
        "plain",
        "eval-mode-in-training",
        e("        net.train()\n        opt", "        opt", "    net.train()\n    return", "    return"),
    ),
    (
        "trainer",
        "eval-mode-in-training",
        e(
            "            self.model.train()\n",
            "",
            "        self.average.model.eval()",
            "        self.model.eval()",
            "self.average.model(x) - y",
            "self.model(x) - y",
        ),
    ),
    (
        "closures",
        "eval-mode-in-training",
        e("        net.train(was)", "        net.train(False)", "    net.eval()\n    try", "    net.eval()\n    try"),
    ),
    ("plain", "train-mode-in-eval", e("    net.eval()\n", "")),
    (
        "closures",
        "train-mode-in-eval",
        e("    net.eval()\n", "", "    hits = []\n    with frozen", "    hits = []\n    with frozen"),
    ),
    (
        "trainer",
        "train-mode-in-eval",
        e("        self.average.model.eval()\n", "", "self.average.model(x) - y", "self.model(x) - y"),
    ),
    (
        "plain",
        "eval-without-no-grad",
        e(
            "    with torch.no_grad():\n        for x, y in loader:\n            hits += (net(x).argmax(1) == y).sum().item()\n            count += len(y)\n",
            "    for x, y in loader:\n        hits += (net(x).argmax(1) == y).sum().item()\n        count += len(y)\n",
        ),
    ),
    (
        "trainer",
        "functional-dropout-always-on",
        e("self.drop(torch.tanh(layer(x)))", "nn.functional.dropout(torch.tanh(layer(x)), 0.1)"),
    ),
    # freezing and adapters
    (
        "adapt",
        "frozen-parameters",
        e(
            "    for p in model.parameters():\n        p.requires_grad = False\n",
            "",
            "    return [p for",
            "    for n, p in model.named_parameters():\n        if 'down' not in n and 'up' not in n:\n            p.requires_grad = False\n    return [p for",
        ),
    ),
    (
        "adapt",
        "adapter-not-trainable",
        e(
            "    for p in model.parameters():\n        p.requires_grad = False\n",
            "",
            "    model.head = nn",
            "    for p in model.parameters():\n        p.requires_grad = False\n    model.head = nn",
        ),
    ),
    (
        "adapt",
        "adapter-not-trainable",
        e("    model.head = nn", "    model.requires_grad_(False)\n    model.head = nn"),
    ),
    (
        "adapt",
        "adapter-not-applied",
        e(
            "setattr(model, name, Adapter(getattr(model, name)))",
            "adapters.append(Adapter(getattr(model, name)))",
            "    for name in names:",
            "    adapters = nn.ModuleList()\n    for name in names:",
            "return [p for p in model.parameters() if p.requires_grad]",
            "return [p for p in [*adapters.parameters(), *model.parameters()] if p.requires_grad]",
        ),
    ),
    (
        "adapt",
        "lora-init-both-zero",
        e("nn.init.kaiming_uniform_(self.down.weight, a=math.sqrt(5))", "nn.init.constant_(self.down.weight, 0.0)"),
    ),
    (
        "adapt",
        "all-params-frozen",
        e(
            "    model.head = nn.Linear(model.head.in_features, classes)\n",
            "",
            "    for name in names:\n        setattr(model, name, Adapter(getattr(model, name)))\n",
            "",
            "return [p for p in model.parameters() if p.requires_grad]",
            "return model.parameters()",
        ),
    ),
    # averages
    ("trainer", "ema-decay-wrong", e("average: float = 0.99\n", "average: float = 0.0001\n")),
    (
        "trainer",
        "ema-decay-wrong",
        e(
            "kept.mul_(self.decay).add_(new, alpha=1 - self.decay)",
            "kept.mul_(1 - self.decay).add_(new, alpha=self.decay)",
        ),
    ),
    (
        "trainer",
        "ema-decay-wrong",
        e("kept.mul_(self.decay).add_(new, alpha=1 - self.decay)", "kept.lerp_(new, self.decay)"),
    ),
    ("trainer", "ema-decay-wrong", e("        self.average.update(self.model)\n", "")),
    (
        "trainer",
        "ema-decay-wrong",
        e(
            "            kept.mul_(self.decay).add_(new, alpha=1 - self.decay)",
            "            new.mul_(self.decay).add_(kept, alpha=1 - self.decay)",
        ),
    ),
    # checkpoints
    ("plain", "state-dict-by-reference", e("copy.deepcopy(net.state_dict())", "net.state_dict()")),
    (
        "trainer",
        "state-dict-by-reference",
        e(
            "{k: v.detach().clone() for k, v in self.model.state_dict().items()}",
            "{k: v for k, v in self.model.state_dict().items()}",
        ),
    ),
    (
        "trainer",
        "state-dict-by-reference",
        e("{k: v.detach().clone() for k, v in self.model.state_dict().items()}", "dict(self.model.state_dict())"),
    ),
    ("resume", "scheduler-state-not-restored", e('        self.schedule.load_state_dict(state["schedule"])\n', "")),
    ("resume", "optimizer-state-not-restored", e('        self.opt.load_state_dict(state["opt"])\n', "")),
    ("plain", "best-checkpoint-wrong-mode", e("if accuracy > best:", "if accuracy < best:")),
    ("trainer", "best-checkpoint-wrong-mode", e("if error < self.best:", "if error > self.best:")),
    ("trainer", "best-checkpoint-wrong-mode", e('float("inf"), 0', "0.0, 0")),
    # ranks
    ("ranks", "gradient-desync", e("cross_entropy(model(a), b)", "cross_entropy(net(a), b)")),
    ("ranks", "gradient-desync", e("DistributedDataParallel(net)", "net")),
    (
        "ranks",
        "distributed-sampler-missing",
        e(
            "    sampler = DistributedSampler(data, num_replicas=world, rank=rank, shuffle=True)\n",
            "",
            "batch_size=32, sampler=sampler",
            "batch_size=32, shuffle=True",
            "        sampler.set_epoch(epoch)\n",
            "",
        ),
    ),
    (
        "ranks",
        "sampler-set-epoch-missing",
        e("        sampler.set_epoch(epoch)\n", "", "    sampler = Dist", "    sampler = Dist"),
    ),
    # recurrent state, kept graphs
    ("recurrent", "hidden-state-not-detached", e("            state = state.detach()\n", "")),
    ("recurrent", "loss-graph-retained", e("total += loss.item()", "total += loss")),
    (
        "adversarial",
        "backward-twice",
        e("        self.critic_opt.step()\n", "        loss.backward()\n        self.critic_opt.step()\n"),
    ),
)
"""(script, id, edits): after the edits the id is found within two lines of a changed line."""
HEALTHY: tuple[tuple[str, Edits], ...] = (
    # other ways of doing the same
    (
        "trainer",
        e(
            "[*self.model.mean.parameters(), self.model.log_scale]",
            "[p for n, p in self.model.named_parameters() if not n.startswith('trunk.')]",
        ),
    ),
    ("trainer", e("self.optimizers = self.build()", "self.optimizers = dict(self.build().items())")),
    ("adversarial", e("self.critic_opt.zero_grad()", "self.critic.zero_grad()")),
    (
        "adversarial",
        e(
            "        self.critic_opt.zero_grad()\n        loss.backward()\n",
            "        for p in self.critic.parameters():\n            p.grad = None\n        loss.backward()\n",
        ),
    ),
    (
        "closures",
        e(
            "        opt.zero_grad()\n        loss.backward()\n",
            "        loss.backward()\n",
            "        opt.step()\n",
            "        opt.step()\n        opt.zero_grad()\n",
        ),
    ),
    (
        "closures",
        e(
            "        opt.zero_grad()\n",
            "        for group in opt.param_groups:\n            for p in group['params']:\n                if p.grad is not None:\n                    p.grad.zero_()\n",
        ),
    ),
    (
        "recurrent",
        e(
            "            optimizer.zero_grad()\n",
            "",
            "            optimizer.step()\n",
            "            optimizer.step()\n            model.zero_grad(set_to_none=True)\n",
        ),
    ),
    (
        "plain",
        e(
            "F.cross_entropy(net(x), y) / args.accumulate",
            "F.cross_entropy(net(x), y)",
            "            scaler.scale(loss).backward()",
            "            scaler.scale(loss * (1 / args.accumulate)).backward()",
        ),
    ),
    (
        "plain",
        e(
            "                scaler.unscale_(opt)\n                nn.utils.clip_grad_norm_(net.parameters(), 1.0)\n",
            "",
        ),
    ),
    (
        "plain",
        e(
            "T_max=updates",
            "T_max=args.epochs",
            "                schedule.step()\n",
            "",
            "        accuracy = evaluate",
            "        schedule.step()\n        accuracy = evaluate",
        ),
    ),
    (
        "plain",
        e(
            "    net.eval()\n",
            "    was = net.training\n    net.train(False)\n",
            "    net.train()\n    return",
            "    net.train(was)\n    return",
        ),
    ),
    ("plain", e("    net.train()\n    return", "    return")),
    ("plain", e("copy.deepcopy(net.state_dict())", "{k: v.clone() for k, v in net.state_dict().items()}")),
    ("plain", e("if accuracy > best:", "if not accuracy <= best:")),
    ("plain", e("best, kept = 0.0, None", "best, kept = -math.inf, None")),
    ("closures", e("return (k + 1) / warmup", "return k / warmup")),
    ("closures", e('"lr": 2e-3', '"lr": 3e-4', '"weight_decay": 0.05', '"weight_decay": 0.3')),
    (
        "closures",
        e(
            "        with torch.no_grad():\n            yield net\n",
            "        with torch.inference_mode():\n            yield net\n",
        ),
    ),
    (
        "closures",
        e(
            'functools.partial(rate, **config["schedule"], total=config["rounds"])',
            "lambda k: rate(k, total=config['rounds'], **config['schedule'])",
        ),
    ),
    ("trainer", e("kept.mul_(self.decay).add_(new, alpha=1 - self.decay)", "kept.lerp_(new, 1 - self.decay)")),
    (
        "trainer",
        e(
            "kept.mul_(self.decay).add_(new, alpha=1 - self.decay)",
            "kept.copy_(self.decay * kept + (1 - self.decay) * new)",
        ),
    ),
    ("trainer", e('mode="min", ', "")),
    ("trainer", e("            if error < self.best:", "            if self.best > error:")),
    (
        "trainer",
        e(
            "{k: v.detach().clone() for k, v in self.model.state_dict().items()}",
            "copy.deepcopy(self.model.state_dict())",
        ),
    ),
    (
        "adapt",
        e("    for p in model.parameters():\n        p.requires_grad = False\n", "    model.requires_grad_(False)\n"),
    ),
    (
        "adapt",
        e(
            "return [p for p in model.parameters() if p.requires_grad]",
            "return filter(lambda p: p.requires_grad, model.parameters())",
        ),
    ),
    (
        "adapt",
        e(
            "    model.head = nn.Linear(model.head.in_features, classes)\n",
            "",
            "    for p in model.parameters():\n",
            "    model.head = nn.Linear(model.head.in_features, classes)\n    for p in [*model.first.parameters(), *model.second.parameters()]:\n",
        ),
    ),
    ("adapt", e("lr=5e-3", "lr=1e-4")),
    ("resume", e("total_steps=epochs * len(loader)", "epochs=epochs, steps_per_epoch=len(loader)")),
    (
        "resume",
        e(
            '        self.net.load_state_dict(state["net"])\n',
            "        for name in ('net',):\n            getattr(self, name).load_state_dict(state[name])\n",
        ),
    ),
    (
        "ranks",
        e(
            "    net = build(2)\n    model = DistributedDataParallel(net)\n",
            "    model = DistributedDataParallel(build(2))\n",
        ),
    ),
    ("ranks", e("        if rank == 0:\n", "        net.eval()\n        net.train()\n        if rank == 0:\n")),
    (
        "recurrent",
        e(
            "            state = state.detach()\n",
            "",
            "            optimizer.zero_grad()\n",
            "            optimizer.zero_grad()\n            state = state.detach() if state is not None else None\n",
        ),
    ),
    (
        "adversarial",
        e("self.draw(len(real)).detach()", "self.draw(len(real))", "self.critic(fake)", "self.critic(fake.detach())"),
    ),
)
"""(script, edits): still healthy."""
