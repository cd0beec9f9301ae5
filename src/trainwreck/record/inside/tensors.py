"""Tensors as facts (ranges, shapes) and as bytes (the safetensors format), without pickling.

The format: eight bytes with the length of the header, a JSON header with dtype, shape and place of every tensor, then
the values (https://github.com/huggingface/safetensors#format).
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Mapping
from typing import Any

import torch

DTYPES = {
    torch.float64: "F64",
    torch.float32: "F32",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.int64: "I64",
    torch.int32: "I32",
    torch.int16: "I16",
    torch.int8: "I8",
    torch.uint8: "U8",
    torch.bool: "BOOL",
}
MAX_HEADER = 64 << 20
"""Longest header that is read, in bytes; a damaged file can't make us allocate more."""


def inside(value: Any) -> Iterator[Any]:
    """The tensors that ``value`` is or holds: in lists, tuples, dictionaries and dataclasses of any depth."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from inside(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from inside(item)
    elif hasattr(value, "__dataclass_fields__"):
        for name in value.__dataclass_fields__:
            yield from inside(getattr(value, name, None))


def ranges(tensor: Any) -> dict[str, Any]:
    """Shape, dtype and what the values are like; of non-finite values only how many. Never raises.

    ``zeros``, ``nan``, ``inf`` are counts; ``min``, ``max``, ``absmax`` and ``mean`` are over the finite values.
    """
    facts: dict[str, Any] = {"shape": list(tensor.shape), "dtype": str(tensor.dtype).removeprefix("torch.")}
    try:
        with torch.no_grad():
            _fill(facts, tensor.detach())
    except Exception as problem:
        facts["unread"] = type(problem).__name__
    return facts


def _fill(facts: dict[str, Any], tensor: Any) -> None:
    if tensor.layout != torch.strided:
        facts["layout"] = str(tensor.layout).removeprefix("torch.")
        tensor = tensor.coalesce().values() if tensor.layout == torch.sparse_coo else tensor.values()
    if tensor.numel() == 0 or tensor.is_meta:
        return
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor)
    values = tensor.double() if tensor.is_floating_point() else tensor.long()
    facts["zeros"] = int((values == 0).sum())
    if tensor.is_floating_point():
        nan, finite = torch.isnan(values), torch.isfinite(values)
        facts["nan"], count = int(nan.sum()), int(finite.sum())
        facts["inf"] = values.numel() - count - facts["nan"]
        if not count:
            return
        values = values[finite] if count < values.numel() else values
        facts["mean"] = float(values.mean())
    facts["min"], facts["max"] = float(values.min()), float(values.max())
    facts["absmax"] = max(abs(facts["min"]), abs(facts["max"]))


def nonfinite(tensor: Any) -> bool:
    """Whether a floating tensor holds a NaN or an infinity. Never raises: what can't be read counts as finite."""
    try:
        if not (tensor.is_floating_point() or tensor.is_complex()) or tensor.is_meta or not tensor.numel():
            return False
        if tensor.layout != torch.strided:
            tensor = tensor.coalesce().values() if tensor.layout == torch.sparse_coo else tensor.values()
        return not bool(torch.isfinite(tensor.detach()).all())
    except Exception:
        return False


def plain(value: Any) -> Any:
    """``value`` as strict JSON: non-finite numbers become the strings "nan", "inf", "-inf"."""
    if isinstance(value, bool) or value is None or isinstance(value, (int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else ("nan" if math.isnan(value) else ("inf" if value > 0 else "-inf"))
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    return str(value)[:400]


def write_json(path: str, value: Any) -> None:
    """Write ``value`` so that a reader sees the whole file or none. Raises OSError."""
    part = f"{path}.part{os.getpid()}"
    with open(part, "w", encoding="utf-8") as file:
        json.dump(plain(value), file)
    os.replace(part, path)


def size(tensor: Any) -> int:
    """Bytes that the values take."""
    return int(tensor.numel() * tensor.element_size())


def save(path: str, tensors: Mapping[str, Any]) -> list[str]:
    """Write tensors by name; the names of those that the format can't hold. One tensor is on the host at a time.

    Raises OSError.
    """
    header: dict[str, Any] = {}
    kept, left, offset = [], [], 0
    for name, tensor in tensors.items():
        kind = DTYPES.get(tensor.dtype)
        if kind is None or tensor.layout != torch.strided or tensor.is_meta:
            left.append(name)
            continue
        header[name] = {"dtype": kind, "shape": list(tensor.shape), "data_offsets": [offset, offset + size(tensor)]}
        offset += size(tensor)
        kept.append(tensor)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    part = f"{path}.part{os.getpid()}"
    with open(part, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for tensor in kept:
            file.write(_bytes(tensor))
    os.replace(part, path)
    return left


def _bytes(tensor: Any) -> bytes:
    flat = tensor.detach().to("cpu").contiguous().reshape(-1)
    if not flat.numel():
        return b""
    try:
        return flat.view(torch.uint8).numpy().tobytes()  # type: ignore[no-any-return]
    except RuntimeError:  # PyTorch without NumPy
        return bytes(flat.view(torch.uint8).tolist())


def load(path: str) -> dict[str, Any]:
    """Read what ``save`` wrote, or any other file of the format. Raises OSError, ValueError if it is damaged."""
    types = {name: dtype for dtype, name in DTYPES.items()}
    with open(path, "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if not 2 <= length <= MAX_HEADER:
            raise ValueError(f"{path}: not a safetensors file")
        header = json.loads(file.read(length))
        body = bytearray(file.read())
    found = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        start, end = entry["data_offsets"]
        dtype, shape = types.get(entry["dtype"]), entry["shape"]
        if dtype is None:
            continue
        count = math.prod(shape)
        if not 0 <= start <= end <= len(body) or end - start != count * torch.empty((), dtype=dtype).element_size():
            raise ValueError(f"{path}: the place of {name} is damaged")
        flat = torch.frombuffer(body, dtype=dtype, count=count, offset=start) if count else torch.empty(0, dtype=dtype)
        found[name] = flat.reshape(shape).clone()
    return found
