"""The launchers that start axolotl, and which of their flags say how many processes there will be."""

import os
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Literal

from advisor.record import record, replace
from advisor.util import is_mapping, read_start

Count = Literal["nodes", "per_node", "total", "devices"]
"""Nodes; processes of each node; processes of all nodes; or a list of this node's GPUs."""


@record
class Scale:
    """How many processes a command starts, as far as it says so."""

    nodes: int | None = None
    per_node: int | None = None
    total: int | None = None
    devices: str | None = None

    def counts(self, gpus_per_node: int, nodes: int) -> tuple[int, int]:
        """(processes a node, nodes), where what is not said is as given."""
        nodes = self.nodes or nodes
        if self.per_node:
            return self.per_node, nodes
        if self.total:
            return max(1, self.total // nodes), nodes
        return gpus_per_node, nodes


# accelerate/commands/launch.py@1.13.0, torch/distributed/run.py@2.13.0, deepspeed/launcher/runner.py@0.18.9, srun(1).
# A dash in a flag counts as an underscore.
FLAGS: Mapping[str, Mapping[str, Count]] = {
    "accelerate": {"num_processes": "total", "num_machines": "nodes", "gpu_ids": "devices"},
    "torchrun": {"nproc_per_node": "per_node", "nnodes": "nodes"},
    "deepspeed": {"num_gpus": "per_node", "num_nodes": "nodes"},
    "srun": {
        "nodes": "nodes",
        "N": "nodes",
        "ntasks": "total",
        "n": "total",
        "ntasks_per_node": "per_node",
    },
    "axolotl": {"num_processes": "total"},
}
MODULES: Mapping[str, str] = {
    "torch.distributed.run": "torchrun",
    "torch.distributed.launch": "torchrun",
    "accelerate.commands.launch": "accelerate",
    "deepspeed.launcher.runner": "deepspeed",
}
# torch/distributed/argparse_util.py@2.13.0: torchrun's flags as variables; sbatch(1).
ENVIRONMENT: Mapping[str, Count] = {
    "SLURM_JOB_NUM_NODES": "nodes",
    "SLURM_NTASKS_PER_NODE": "per_node",
    "PET_NNODES": "nodes",
    "PET_NPROC_PER_NODE": "per_node",
}
MOST_BYTES = 1 << 16
"""Of accelerate's config file, which has some twenty lines."""
SINGLE_NODE = {"torchrun": "standalone"}
"""Flags without a value that say there is one node."""


def launcher_named(token: str) -> str | None:
    """The launcher that a word of the command starts, by its file name."""
    name = token.replace("\\", "/").rpartition("/")[2]
    return name if name in FLAGS and name != "axolotl" else None


def from_environment(environment: Mapping[str, str]) -> Scale:
    """What a batch system or torchrun's variables say."""
    scale = Scale()
    for name, count in ENVIRONMENT.items():
        scale = told(scale, count, environment.get(name, ""))
    return replace(scale, per_node=None) if scale.per_node == 1 else scale


def _from_accelerate_file(tokens: Sequence[str]) -> Scale:
    """What accelerate's own config file says: accelerate/commands/config/config_args.py@1.13.0."""
    import yaml

    said = [token.partition("=")[2] or following for token, following in pairwise([*tokens, ""]) if _named_file(token)]
    home = Path(os.environ.get("HF_HOME") or Path.home() / ".cache" / "huggingface")
    path = Path(said[0]) if said else home / "accelerate" / "default_config.yaml"
    try:
        # Not from a pipe, which the command itself has yet to read.
        values = yaml.safe_load(read_start(path, MOST_BYTES).decode())
    except (OSError, ValueError, RecursionError, yaml.YAMLError):
        return Scale()
    scale = Scale()
    for key, count in FLAGS["accelerate"].items():
        value = values.get(key) if is_mapping(values) else None
        scale = told(scale, count, str(value)) if isinstance(value, int | str) else scale
    return scale


def _named_file(token: str) -> bool:
    """Whether this flag names accelerate's config file."""
    return token.partition("=")[0].replace("-", "_") == "__config_file"


def scale_of(launcher: str, tokens: Sequence[str], scale: Scale) -> Scale:
    """``scale`` with what the flags among ``tokens`` say. One task a node of srun leaves the count to the inner one."""
    return with_flags(launcher, tokens, _from_accelerate_file(tokens) if launcher == "accelerate" else scale)


def with_flags(launcher: str, tokens: Sequence[str], scale: Scale) -> Scale:
    """``scale`` with what the flags alone say."""
    for index, token in enumerate(tokens):
        if not token.startswith("-"):
            continue
        key, given, value = token.lstrip("-").partition("=")
        count = FLAGS[launcher].get(key.replace("-", "_") if len(key) > 1 else key)
        if key == SINGLE_NODE.get(launcher):
            scale = replace(scale, nodes=1)
        if count is None:
            continue
        said = value if given else tokens[index + 1] if index + 1 < len(tokens) else ""
        scale = told(scale, count, said)
    return scale


def told(scale: Scale, count: Count, said: str) -> Scale:
    """``scale`` with one flag's value; ``auto`` and nonsense say nothing; of a range the fewest nodes count."""
    if count == "devices":
        return scale if said == "all" else replace(scale, devices=said)
    first = said.partition(":")[0] if count == "nodes" else said
    if not first.isdecimal() or int(first) < 1:
        return scale
    match count:
        case "nodes":
            return replace(scale, nodes=int(first))
        case "per_node":
            return replace(scale, per_node=int(first), total=None)
        case _:
            return replace(scale, total=int(first), per_node=None)
