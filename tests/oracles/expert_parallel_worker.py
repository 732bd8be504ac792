"""One rank of axolotl's expert parallelism on the CPU, which slices the experts and saves the model as a run does.

``RANK`` and ``WORLD_SIZE`` say which rank; the arguments are a folder with the model's ``config.json``, and the file
that the ranks meet through. The answer is ``<rank>.json`` in that folder: the rows of the rank's experts, and the
names of what the first rank has saved.
"""

import json
import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

os.environ.update(GLOO_SOCKET_IFNAME="lo", HF_HUB_OFFLINE="1")

import torch
import torch.distributed as dist
from axolotl.integrations.expert_parallel import shard
from safetensors import safe_open
from transformers import AutoConfig, AutoModelForCausalLM


class OnCpu:
    """torch, for a module that scatters over GPUs alone."""

    cuda = SimpleNamespace(current_device=lambda: 0, is_available=lambda: False)

    def device(self, *_: object) -> torch.device:
        return torch.device("cpu")

    def __getattr__(self, name: str) -> Any:
        return getattr(torch, name)


shard.torch = OnCpu()


def main(folder: Path, meeting: str) -> None:
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=world)
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(folder))
    shard.shard_expert_weights(model, dist.group.WORLD)
    experts = {name: len(weight) for name, weight in model.named_parameters() if name.endswith("experts.down_proj")}
    saved: list[str] = []
    if rank == 0:
        model.save_pretrained(folder / "saved")
        for file in (folder / "saved").glob("*.safetensors"):
            with safe_open(file, "pt") as opened:
                saved += [f"{name} {opened.get_slice(name).get_shape()[0]}" for name in opened.keys()]  # noqa: SIM118
    (folder / f"{rank}.json").write_text(json.dumps({"experts": experts, "saved": sorted(saved)}))
    dist.barrier()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
