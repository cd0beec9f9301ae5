"""Make the version tables: names, signatures and defaults of library releases, read by ``ast`` out of the wheels.

    python tools/versions.py DOWNLOADS [PACKAGE …]

downloads the last patch of every minor release (pip, no dependencies) into DOWNLOADS, reads each wheel without
installing it, and writes src/trainwreck/catalogue/versions/<package>.json:

    {"package", "releases": [...], "names": {public name: [[first, last], …]},
     "signatures": {name: {"bases": [...], "open": bool, "parameters": {parameter: [[first, last, default], …]}}}}

``first`` and ``last`` are indices into ``releases``, inclusive. ``default`` is the source text of the default, "" for a
required parameter. ``open``: some release takes ``**kwargs``, so an unknown keyword is not proven wrong.
"""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path

TARGET = Path(__file__).parent.parent / "src/trainwreck/catalogue/versions"


@dataclass(frozen=True)
class Plan:
    """What is read of one package: from which release on, and the files whose signatures are kept.

    ``every``: only every n-th release (large wheels). ``patches``: patch releases count as releases of their own.
    """

    package: str
    since: tuple[int, int]
    signatures: tuple[str, ...]
    every: int = 1
    root: str = ""
    patches: bool = False


PLANS = (
    Plan(
        "transformers",
        (4, 36),
        (
            "training_args.py", "training_args_seq2seq.py", "trainer.py", "trainer_seq2seq.py", "trainer_callback.py",
            "data/data_collator.py", "generation/configuration_utils.py", "generation/utils.py", "optimization.py",
            "utils/quantization_config.py", "pipelines/__init__.py", "pipelines/base.py", "modeling_utils.py",
            "tokenization_utils_base.py", "configuration_utils.py", "trainer_utils.py", "models/auto/auto_factory.py",
        ),
    ),
    Plan("trl", (0, 7), ("trainer/*.py", "models/*.py", "experimental/*/*.py", "trainer/utils.py", "extras/*.py", "core.py", "data_utils.py", "scripts/utils.py", "rewards/*.py")),  # noqa: E501
    Plan("peft", (0, 7), ("mapping*.py", "peft_model.py", "config.py", "mixed_model.py", "tuners/*/config.py", "utils/other.py", "utils/peft_types.py", "helpers.py")),  # noqa: E501
    Plan("accelerate", (0, 25), ("accelerator.py", "launchers.py", "big_modeling.py", "data_loader.py", "utils/dataclasses.py", "utils/random.py", "utils/memory.py", "utils/modeling.py", "utils/operations.py", "local_sgd.py", "state.py", "logging.py")),  # noqa: E501
    Plan("datasets", (2, 15), ("load.py", "arrow_dataset.py", "dataset_dict.py", "iterable_dataset.py", "combine.py", "features/features.py", "features/audio.py", "features/image.py", "download/download_config.py", "splits.py")),  # noqa: E501
    Plan("lightning", (2, 0), ("pytorch/trainer/trainer.py", "pytorch/callbacks/*.py", "pytorch/loggers/*.py", "pytorch/core/module.py", "pytorch/core/datamodule.py", "pytorch/strategies/*.py", "fabric/fabric.py", "pytorch/utilities/*.py")),  # noqa: E501
    Plan("sglang", (0, 3), ("srt/server_args.py", "srt/sampling/sampling_params.py", "srt/entrypoints/engine.py", "api.py"), every=3, patches=True),  # noqa: E501
    Plan("vllm", (0, 6), ("engine/arg_utils.py", "sampling_params.py", "entrypoints/llm.py", "pooling_params.py", "config/*.py", "config.py", "engine/async_llm_engine.py"), every=2),  # noqa: E501
)  # fmt: skip


def releases(plan: Plan) -> list[str]:
    """The last patch of every minor release from ``since`` on, oldest first."""
    command = [sys.executable, "-m", "pip", "index", "versions", plan.package]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = re.search(r"Available versions: (.*)", text)
    assert found
    latest: dict[tuple[int, ...], tuple[int, str]] = {}
    for version in found[1].split(", "):
        match = re.fullmatch(r"(\d+)\.(\d+)(?:\.(\d+))?(?:\.post\d+)?", version.strip())
        if match and (int(match[1]), int(match[2])) >= plan.since:
            patch = int(match[3] or 0)
            minor = (int(match[1]), int(match[2]), *([patch] if plan.patches else []))
            latest[minor] = max(latest.get(minor, (-1, "")), (patch, version.strip()))
    ordered = [version for _, (_, version) in sorted(latest.items())]
    return [v for i, v in enumerate(ordered) if (len(ordered) - 1 - i) % plan.every == 0]


def wheel(plan: Plan, version: str, folder: Path) -> Path | None:
    """The wheel of one release, downloaded if it is not there; None if the release has none for this machine."""
    stem = plan.package.replace("-", "_")
    have = sorted(folder.glob(f"{stem}-{version}-*.whl"))
    if not have:
        command = [
            sys.executable,
            "-m",
            "pip",
            "download",
            "-q",
            "--no-deps",
            "--only-binary",
            ":all:",
            "-d",
            str(folder),
        ]
        done = subprocess.run([*command, f"{plan.package}=={version}"], capture_output=True, text=True, check=False)
        have = sorted(folder.glob(f"{stem}-{version}-*.whl"))
        if done.returncode or not have:
            print(f"  {plan.package} {version}: no wheel", file=sys.stderr)
            return None
    return have[0]


@dataclass
class Signature:
    bases: list[str] = field(default_factory=list)
    open: bool = False
    parameters: dict[str, str] = field(default_factory=dict)


def read_wheel(plan: Plan, path: Path) -> tuple[set[str], dict[str, Signature]]:
    """Public names and the signatures of one release."""
    root = plan.root or plan.package.replace("-", "_")
    names: set[str] = set()
    signatures: dict[str, Signature] = {}
    with zipfile.ZipFile(path) as archive:
        members = [n for n in archive.namelist() if n.startswith(f"{root}/") and n.endswith(".py")]
        tops = {
            f"{root}/__init__.py",
            f"{root}/pytorch/__init__.py",
            f"{root}/lang/api.py",
            f"{root}/trainer/__init__.py",
        }
        for name in members:
            inner = name[len(root) + 1 :]
            source = archive.read(name).decode("utf-8", "replace")
            if name in tops:
                names |= exports(source)
            elif plan.package == "transformers" and "__all__" in source:
                names |= listed(source)
            if any(fnmatch(inner, pattern) for pattern in plan.signatures):
                for symbol, signature in symbols(source):
                    signatures.setdefault(symbol, signature)
    return names, signatures


def exports(source: str) -> set[str]:
    """Names that an ``__init__`` offers: imports, ``__all__`` and lazy import tables, whatever branch they stand in."""
    found: set[str] = set()
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return found
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            found |= {a.asname or a.name for a in node.names if a.name != "*"}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.isidentifier():
            found.add(node.value)
    return {n for n in found if not n.startswith("_")}


def listed(source: str) -> set[str]:
    """The strings of ``__all__``."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return set()
    return {
        item.value
        for node in tree.body
        if isinstance(node, ast.Assign | ast.AugAssign)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name) and target.id == "__all__"
        for item in ast.walk(node.value)
        if isinstance(item, ast.Constant) and isinstance(item.value, str)
    }


def symbols(source: str) -> Iterator[tuple[str, Signature]]:
    """Public functions, classes (constructor or dataclass fields) and public methods with their signatures."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            yield node.name, of_function(node, method=False)
        elif isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield node.name, of_class(node)
            for item in node.body:
                if isinstance(item, ast.FunctionDef) and not item.name.startswith("_"):
                    static = any(isinstance(d, ast.Name) and d.id == "staticmethod" for d in item.decorator_list)
                    yield f"{node.name}.{item.name}", of_function(item, method=not static)


def of_class(node: ast.ClassDef) -> Signature:
    bases = [ast.unparse(b).rsplit(".", 1)[-1] for b in node.bases]
    init = next((i for i in node.body if isinstance(i, ast.FunctionDef) and i.name == "__init__"), None)
    decorated = any("dataclass" in ast.unparse(d) or d == "config" for d in node.decorator_list)
    if init is not None and not decorated:
        return Signature(bases, *of_parts(init, method=True))
    fields = {}
    for item in node.body:
        if not isinstance(item, ast.AnnAssign) or not isinstance(item.target, ast.Name):
            continue
        if not item.target.id.startswith("_") and "ClassVar" not in ast.unparse(item.annotation):
            fields[item.target.id] = default_of(item.value)
    return Signature(bases, False, fields)


def default_of(value: ast.expr | None) -> str:
    """The default of a dataclass field as source text; ``field(default=x)`` gives x, a factory its name and ``()``."""
    if value is None:
        return ""
    if isinstance(value, ast.Call) and ast.unparse(value.func).rsplit(".", 1)[-1].lower() in ("field", "pydanticfield"):
        for keyword in value.keywords:
            if keyword.arg == "default":
                return short(keyword.value)
            if keyword.arg == "default_factory":
                return f"{short(keyword.value)}()"
        return short(value.args[0]) if value.args else ""
    return short(value)


def short(value: ast.expr) -> str:
    text = ast.unparse(value)
    return text if len(text) <= 60 else text[:57] + "..."


def of_function(node: ast.FunctionDef, *, method: bool) -> Signature:
    return Signature([], *of_parts(node, method=method))


def of_parts(node: ast.FunctionDef, *, method: bool) -> tuple[bool, dict[str, str]]:
    arguments = node.args
    plain = [*arguments.posonlyargs, *arguments.args]
    defaults: list[ast.expr | None] = [*([None] * (len(plain) - len(arguments.defaults))), *arguments.defaults]
    pairs = list(zip(plain, defaults, strict=True))[1 if method and plain else 0 :]
    pairs += list(zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True))
    return arguments.kwarg is not None, {a.arg: short(d) if d is not None else "" for a, d in pairs}


def extend(ranges: list[list[object]], index: int, *more: object) -> None:
    """Lengthen the last range by one release, or begin a new one."""
    if ranges and ranges[-1][1] == index - 1 and ranges[-1][2:] == list(more):
        ranges[-1][1] = index
    else:
        ranges.append([index, index, *more])


def build(plan: Plan, folder: Path) -> None:
    names: dict[str, list[list[object]]] = {}
    table: dict[str, dict[str, object]] = {}
    kept: list[str] = []
    for version in releases(plan):
        path = wheel(plan, version, folder)
        if path is None:
            continue
        index = len(kept)
        kept.append(version)
        public, signatures = read_wheel(plan, path)
        for name in public:
            extend(names.setdefault(name, []), index)
        for name, signature in signatures.items():
            row = table.setdefault(name, {"bases": [], "open": False, "ranges": [], "parameters": {}})
            row["bases"] = signature.bases or row["bases"]
            row["open"] = bool(row["open"]) or signature.open
            extend(row["ranges"], index)  # type: ignore[arg-type]
            for parameter, default in signature.parameters.items():
                extend(row["parameters"].setdefault(parameter, []), index, default)  # type: ignore[attr-defined]
        if path.stat().st_size > 60 << 20:
            path.unlink()
        print(f"  {plan.package} {version}: {len(public)} names, {len(signatures)} signatures")
    data = {"package": plan.package, "releases": kept, "names": names, "signatures": table}
    TARGET.mkdir(parents=True, exist_ok=True)
    text = json.dumps(data, sort_keys=True, separators=(",", ":"))
    (TARGET / f"{plan.package}.json").write_text(text + "\n", encoding="utf-8")
    print(f"{plan.package}: {len(kept)} releases, {len(text) / 1e3:.0f} kB")


if __name__ == "__main__":
    downloads = Path(sys.argv[1])
    downloads.mkdir(parents=True, exist_ok=True)
    for plan in PLANS:
        if len(sys.argv) == 2 or plan.package in sys.argv[2:]:
            build(plan, downloads)
