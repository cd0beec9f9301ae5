"""Starts of training: the settings of a bag together with how many processes there are and what they also read."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from trainwreck.code.project import Project
from trainwreck.code.settings.bags import Bag, bags, reader_of
from trainwreck.code.settings.index import Settings, of
from trainwreck.code.settings.launch import Launch
from trainwreck.code.settings.python_dict import dict_document
from trainwreck.code.settings.shell import Variable
from trainwreck.code.settings.tree import Document, Place

DEEPSPEED_NAMES = ("deepspeed", "deepspeed_config", "deepspeed_config_file", "ds_config")


@dataclass(frozen=True, eq=False)
class World:
    """How many processes there are in all, and the places that say so."""

    size: int
    per_node: int
    nodes: int
    proof: Sequence[Place]


@dataclass(frozen=True, eq=False)
class Start:
    """A bag of training settings with the DeepSpeed and the accelerate file that go with it, where they are known."""

    bag: Bag
    deepspeed: Document | None
    accelerate: Document | None
    world: World | None

    @property
    def launch(self) -> Launch | None:
        return self.bag.launch


def starts(project: Project) -> Sequence[Start]:
    """All bags with what belongs to them, made once."""
    if "starts" not in project.memo:
        settings = of(project)
        project.memo["starts"] = [_start(settings, bag) for bag in bags(project)]
    found: Sequence[Start] = project.memo["starts"]
    return found


def _start(settings: Settings, bag: Bag) -> Start:
    accelerate = accelerate_file(settings, bag.launch) if bag.launch is not None else None
    named = bag.get(*DEEPSPEED_NAMES)
    deepspeed = None
    if named is not None and isinstance(named.value, str):
        deepspeed = _document(settings, named.value, bag.path, "deepspeed")
    given = bag.call.argument("deepspeed") if bag.call is not None else None
    if given is not None and bag.call is not None and deepspeed is None:
        deepspeed = dict_document(settings.project, given, bag.call.scope)
    if deepspeed is None and accelerate is not None:
        inner = accelerate.get("deepspeed_config", "deepspeed_config_file")
        if inner is not None and isinstance(inner.value, str):
            deepspeed = _document(settings, inner.value, accelerate.path, "deepspeed")
    if deepspeed is None and bag.launch is not None:
        option = bag.launch.option("deepspeed_config_file")
        if option is not None and option.text:
            deepspeed = _document(settings, option.text, bag.path, "deepspeed")
    world = world_of(settings, bag.launch) if bag.launch is not None else None
    return Start(bag, deepspeed, accelerate, world)


def _document(settings: Settings, written: str, near: str, reader: str) -> Document | None:
    path = settings.find(written, near)
    found = settings.document(path) if path is not None else None
    return found if found is not None and reader_of(found) == reader else None


def accelerate_file(settings: Settings, launch: Launch) -> Document | None:
    """The configuration that ``accelerate launch`` is given."""
    option = launch.option("config_file") if launch.launcher == "accelerate" else None
    return _document(settings, option.text, launch.path, "accelerate") if option is not None and option.text else None


def world_of(settings: Settings, launch: Launch) -> World | None:
    """The number of processes, None where the script and its files do not say it."""
    return None if launch.wrappers & {"srun", "mpirun"} else started_here(settings, launch)


def started_here(settings: Settings, launch: Launch) -> World | None:
    """The processes of one such command, however often srun or mpirun run it."""
    match launch.launcher:
        case "torchrun":
            return _torchrun(launch)
        case "accelerate":
            return _accelerate(settings, launch)
        case "deepspeed":
            return _deepspeed(launch)
    return None


def _torchrun(launch: Launch) -> World | None:
    each, nodes = launch.option("nproc_per_node"), launch.option("nnodes")
    proof = [f.place for f in (each, nodes) if f is not None]
    count = 1 if each is None else each.integer
    if each is not None and each.text in ("gpu", "auto"):
        listed = visible_devices(launch)
        count, proof = (len(listed[0]), [*proof, listed[1].place]) if listed is not None else (None, proof)
    machines = 1 if nodes is None else nodes.integer
    if not count or not machines:
        return None
    return World(count * machines, count, machines, proof or [launch.place])


def _accelerate(settings: Settings, launch: Launch) -> World | None:
    total, machines = launch.option("num_processes"), launch.option("num_machines")
    document = accelerate_file(settings, launch)
    proof: list[Place] = []
    if total is not None:
        size = total.integer
        proof.append(total.place)
    else:
        setting = document.get("num_processes") if document is not None else None
        size = setting.value if setting is not None and isinstance(setting.value, int) else None
        proof += [setting.place] if setting is not None else []
    nodes = machines.integer if machines is not None else 1
    if machines is None and document is not None and (inner := document.get("num_machines")) is not None:
        nodes = inner.value if isinstance(inner.value, int) else None
    if not size or not nodes or size % nodes:
        return None
    return World(size, size // nodes, nodes, proof)


def _deepspeed(launch: Launch) -> World | None:
    each, nodes, include = launch.option("num_gpus"), launch.option("num_nodes"), launch.option("include", "i")
    if launch.option("hostfile", "H") is not None and (each is None or nodes is None):
        return None
    if include is not None and include.text:
        listed = re.fullmatch(r"localhost:(\d+(?:,\d+)*)", include.text)
        if listed is None:
            return None
        count = len(set(listed[1].split(",")))
        return World(count, count, 1, [include.place])
    count_each = each.integer if each is not None else None
    machines = 1 if nodes is None else nodes.integer
    if not count_each or not machines:
        return None
    return World(count_each * machines, count_each, machines, [f.place for f in (each, nodes) if f is not None])


def visible_devices(launch: Launch) -> tuple[list[str], Variable] | None:
    """The devices that CUDA_VISIBLE_DEVICES leaves, and the variable; None where it is not set or not known."""
    found = launch.variable("CUDA_VISIBLE_DEVICES")
    if found is None or not re.fullmatch(r"\s*\d+(\s*,\s*\d+)*\s*,?\s*", found.text):
        return None
    return [d.strip() for d in found.text.split(",") if d.strip()], found


def training_starts(project: Project) -> Iterator[Start]:
    yield from (s for s in starts(project) if s.bag.reader in ("trainer", "llamafactory", "axolotl"))
