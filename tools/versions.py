"""Make the version tables: names, signatures and defaults of library releases, read by ``ast`` out of the wheels.

    python tools/versions.py DOWNLOADS [PACKAGE …]

downloads the last patch of every minor release (pip, no dependencies) into DOWNLOADS, reads each wheel without
installing it, and writes src/trainwreck/catalogue/versions/<package>.json:

    {"package", "releases": [...], "names": {public name: [[first, last], …]},
     "modules": {module: [[first, last], …]}, "requires": {package: [[first, last, specifier], …]},
     "signatures": {name: {"bases": [[first, last, [base, …]], …], "open": [[first, last], …],
                           "init": [[first, last], …], "ranges": [[first, last], …],
                           "parameters": {parameter: [[first, last, default], …]}}}}

``first`` and ``last`` are indices into ``releases``, inclusive. ``default`` is the source text of the default, "" for a
required parameter, "(deprecated)" for one that only a decorator still accepts. ``open``: takes ``**kwargs`` or has no
constructor that can be read, so an unknown keyword is not proven wrong (a bool in older tables: in some release).
Private classes are kept where a public one derives from them. ``init``: a constructor of its own takes all there is;
otherwise fields of a dataclass add to those of the bases.

    python tools/versions.py --requires PACKAGE …

adds only ``requires`` to a table, out of the metadata that the index serves without the wheel (large wheels).
"""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterable, Iterator
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


WATCHED = frozenset(
    ["torch", "numpy", "transformers", "trl", "peft", "accelerate", "datasets", "vllm", "sglang", "tokenizers",
     "huggingface-hub", "safetensors", "torchvision", "torchaudio", "pytorch-lightning", "lightning",
     "flashinfer-python", "bitsandbytes", "deepspeed", "xformers", "torchmetrics", "pyarrow", "fsspec"]
)  # fmt: skip
"""Packages whose constraints are kept: those of the tables, and what they most often quarrel about."""


def requirements(lines: Iterable[str]) -> dict[str, str]:
    """Constraints without extras and without markers that a Linux machine does not meet, by package name."""
    found: dict[str, str] = {}
    for line in lines:
        demand, _, marker = line.partition(";")
        match = re.match(r"([\w.-]+)(?:\[[^\]]*\])?\s*\(?([^)]*)\)?\s*$", demand.strip())
        unmet = re.search(r"extra\s*==|python_version\s*[<=]|sys_platform\s*==\s*.(win|darwin)|aarch64|== .ppc", marker)
        if match and not unmet and (name := match[1].lower().replace("_", "-")) in WATCHED and match[2].strip():
            found[name] = match[2].replace(" ", "")
    return found


def wheel_requirements(path: Path) -> dict[str, str]:
    with zipfile.ZipFile(path) as archive:
        name = next(n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
        lines = archive.read(name).decode("utf-8", "replace").split("\n\n", 1)[0].split("\n")
    return requirements(line.split(":", 1)[1] for line in lines if line.startswith("Requires-Dist:"))


@dataclass
class Signature:
    bases: list[str] = field(default_factory=list)
    open: bool = False
    parameters: dict[str, str] = field(default_factory=dict)
    init: bool = False


def modules_of(plan: Plan, members: Iterable[str], root: str, top: str) -> set[str]:
    """Modules of a release relative to its root; of transformers' models only the packages."""
    found: set[str] = set()
    for name in members:
        dotted = name.removeprefix(f"{root}/").removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        if "__init__" in dotted or any(part.startswith("_") or part in ("tests", "cli") for part in dotted.split(".")):
            continue
        if plan.package == "vllm" or (plan.package == "sglang" and dotted.count(".") > 1):
            continue
        if not re.match(r"models\.\w+\.", dotted) or plan.package != "transformers":
            found.add(dotted)
    table = re.search(r"_LEGACY_MODULE_ALIASES\b[^{]*\{(.*?)\n\s*\}", top, re.DOTALL)
    return found | (set(re.findall(r"[\"']([\w.]+)[\"']\s*:", table[1])) if table else set())


def read_wheel(plan: Plan, path: Path) -> tuple[set[str], dict[str, Signature], set[str]]:
    """Public names, the signatures and the modules of one release."""
    root = plan.root or plan.package.replace("-", "_")
    names: set[str] = set()
    signatures: dict[str, Signature] = {}
    with zipfile.ZipFile(path) as archive:
        members = [n for n in archive.namelist() if n.startswith(f"{root}/") and n.endswith(".py")]
        members.sort(key=lambda n: "/experimental/" in n)  # of two classes of one name the established one counts
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
        top = archive.read(f"{root}/__init__.py").decode("utf-8", "replace")
    return names, signatures, modules_of(plan, members, root, top)


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
    """The strings of ``__all__``, found without parsing: a release of transformers has 3000 files."""
    lists = re.findall(r"^__all__\s*\+?=\s*[\[(]([^\])]*)[\])]", source, re.MULTILINE)
    return {name for text in lists for name in re.findall(r"[\"'](\w+)[\"']", text)}


def symbols(source: str) -> Iterator[tuple[str, Signature]]:
    """Public functions, classes (constructor or dataclass fields) and public methods with their signatures."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            yield node.name, of_function(node, method=False)
        elif isinstance(node, ast.ClassDef):
            yield node.name, of_class(node)
            for item in node.body if not node.name.startswith("_") else ():
                if isinstance(item, ast.FunctionDef) and not item.name.startswith("_"):
                    static = any(isinstance(d, ast.Name) and d.id == "staticmethod" for d in item.decorator_list)
                    yield f"{node.name}.{item.name}", of_function(item, method=not static)


def of_class(node: ast.ClassDef) -> Signature:
    bases = [ast.unparse(b).rsplit(".", 1)[-1] for b in node.bases]
    init = next((i for i in node.body if isinstance(i, ast.FunctionDef) and i.name == "__init__"), None)
    decorated = any("dataclass" in ast.unparse(d) or d == "config" for d in node.decorator_list)
    if init is not None:  # dataclass leaves a constructor that is there
        found = Signature(bases, *of_parts(init, method=True), init=True)
        found.parameters |= dict.fromkeys(accepted(init) - found.parameters.keys(), "(deprecated)")
        return found
    fields = {}
    for item in node.body:
        if not isinstance(item, ast.AnnAssign) or not isinstance(item.target, ast.Name):
            continue
        if not item.target.id.startswith("_") and "ClassVar" not in ast.unparse(item.annotation):
            fields[item.target.id] = default_of(item.value)
    return Signature(bases, not decorated and not fields and not bases, fields)


def accepted(node: ast.FunctionDef) -> set[str]:
    """Old keywords that a decorator still takes and passes on under their new name."""
    return {
        call.args[0].value
        for call in node.decorator_list
        if isinstance(call, ast.Call) and ast.unparse(call.func).endswith("deprecate_kwarg") and call.args
        if isinstance(call.args[0], ast.Constant) and isinstance(call.args[0].value, str)
        if any(k.arg == "new_name" for k in call.keywords)
    }


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
    modules: dict[str, list[list[object]]] = {}
    demands: dict[str, list[list[object]]] = {}
    kept: list[str] = []
    for version in releases(plan):
        path = wheel(plan, version, folder)
        if path is None:
            continue
        index = len(kept)
        kept.append(version)
        public, signatures, inside = read_wheel(plan, path)
        for name in inside:
            extend(modules.setdefault(name, []), index)
        for name, demand in wheel_requirements(path).items():
            extend(demands.setdefault(name, []), index, demand)
        for name in public:
            extend(names.setdefault(name, []), index)
        for name, signature in signatures.items():
            row = table.setdefault(name, {"bases": [], "open": [], "init": [], "ranges": [], "parameters": {}})
            if signature.bases:
                extend(row["bases"], index, signature.bases)  # type: ignore[arg-type]
            if signature.init:
                extend(row["init"], index)  # type: ignore[arg-type]
            if signature.open:
                extend(row["open"], index)  # type: ignore[arg-type]
            extend(row["ranges"], index)  # type: ignore[arg-type]
            for parameter, default in signature.parameters.items():
                extend(row["parameters"].setdefault(parameter, []), index, default)  # type: ignore[attr-defined]
        if path.stat().st_size > 60 << 20:
            path.unlink()
        print(f"  {plan.package} {version}: {len(public)} names, {len(signatures)} signatures")
    bases = {base for row in table.values() for _, _, above in row["bases"] for base in above}  # type: ignore[attr-defined]
    table = {name: row for name, row in table.items() if not name.startswith("_") or name in bases}
    data = {"package": plan.package, "releases": kept, "names": names, "signatures": table, "modules": modules}
    write(plan.package, {**data, "requires": demands})


def write(package: str, data: dict[str, object]) -> None:
    TARGET.mkdir(parents=True, exist_ok=True)
    text = json.dumps(data, sort_keys=True, separators=(",", ":"))
    (TARGET / f"{package}.json").write_text(text + "\n", encoding="utf-8")
    print(f"{package}: {len(text) / 1e3:.0f} kB")


def add_requirements(package: str) -> None:
    """``requires`` of a table from the index's metadata."""
    data = json.loads((TARGET / f"{package}.json").read_text(encoding="utf-8"))
    demands: dict[str, list[list[object]]] = {}
    for index, version in enumerate(data["releases"]):
        command = [sys.executable, "-m", "pip", "install", "--dry-run", "--no-deps", "-q", "--report", "-"]
        command += ["--only-binary", ":all:", "--target", "/nonexistent", f"{package}=={version}"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        try:
            metadata = json.loads(done.stdout)["install"][0]["metadata"]
        except (ValueError, LookupError):
            print(f"  {package} {version}: no metadata", file=sys.stderr)
            continue
        for name, demand in requirements(metadata.get("requires_dist", [])).items():
            extend(demands.setdefault(name, []), index, demand)
    write(package, {**data, "requires": demands})


if __name__ == "__main__" and sys.argv[1] == "--requires":
    for wanted in sys.argv[2:]:
        add_requirements(wanted)
elif __name__ == "__main__":
    downloads = Path(sys.argv[1])
    downloads.mkdir(parents=True, exist_ok=True)
    for plan in PLANS:
        if len(sys.argv) == 2 or plan.package in sys.argv[2:]:
            build(plan, downloads)
