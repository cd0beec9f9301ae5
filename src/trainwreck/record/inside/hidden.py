"""Modules that others hold in plain lists and dictionaries, where neither ``parameters()`` nor ``to()`` finds them."""

from __future__ import annotations

import dis
from collections.abc import Container, Iterable, Iterator
from typing import Any

import torch

from . import callers

MAX_ITEMS = 256


def hidden(modules: Iterable[tuple[str, Any]], held: Container[int]) -> list[tuple[tuple[str, Any], str, Any]]:
    """((name, module), attribute, hidden module) of those that get gradients and that no optimizer holds.

    ``held``: identities of the parameters of all optimizers. A teacher or a frozen network that is kept out of
    ``parameters()`` on purpose gets no gradient; blocks that are given to the optimizer in another way are held.
    """
    known = list(modules)
    inner = {id(child) for _, module in known for child in module._modules.values()}
    found = []
    for name, module in known:
        for attribute, value in list(vars(module).items()):
            if attribute.startswith("_") or isinstance(value, (torch.Tensor, torch.nn.Module)):
                continue
            for item in _items(value):
                if id(item) in inner:
                    continue  # a list beside the registered ones
                own = [p for p in item.parameters() if p.requires_grad]
                if own and not any(id(p) in held for p in own) and all(p.grad is not None for p in own):
                    found.append(((name, module), attribute, item))
                    break
    return found


def _items(value: Any) -> Iterator[torch.nn.Module]:
    members: Iterable[Any] = ()
    if isinstance(value, (list, tuple)):
        members = value[:MAX_ITEMS]
    elif isinstance(value, dict):
        members = list(value.values())[:MAX_ITEMS]
    for item in members:
        if isinstance(item, torch.nn.Module):
            yield item
        elif isinstance(item, (list, tuple)):
            yield from (m for m in item[:MAX_ITEMS] if isinstance(m, torch.nn.Module))


def stored(kind: type, attribute: str) -> dict[str, Any]:
    """Path and line at which the class gives ``attribute`` its value; empty where that isn't in the user's code."""
    for base in kind.__mro__:
        code = getattr(base.__dict__.get("__init__"), "__code__", None)
        if code is None or not callers.is_users(code.co_filename):
            continue
        line = None
        for instruction in dis.get_instructions(code):
            line = instruction.starts_line or line
            if instruction.opname == "STORE_ATTR" and instruction.argval == attribute and line is not None:
                positions = instruction.positions
                return {"path": callers.relative(code.co_filename), "line": (positions and positions.lineno) or line}
    return {}
