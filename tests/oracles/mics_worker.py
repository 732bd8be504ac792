"""One rank that loads a model under transformers' ``zero.Init`` on the CPU and hands it to DeepSpeed, with MiCS or not.

``RANK`` and ``WORLD_SIZE`` say which rank; the arguments are a folder with the model's ``config.json`` and
``cases.json`` (a list of ``{"name", "deepspeed"}``), and the file that the ranks meet through. The answer is
``<rank>.json`` in that folder: by case, what it stopped at, or nothing.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

os.environ.update(DS_ACCELERATOR="cpu", GLOO_SOCKET_IFNAME="lo", HF_HUB_OFFLINE="1")

import deepspeed
import deepspeed.comm.torch
import torch
import torch.distributed as dist
from transformers import AutoConfig, AutoModelForCausalLM
from transformers.integrations import HfDeepSpeedConfig

sys.modules["deepspeed.comm.torch"].build_shm_op = lambda: None


def stop(folder: Path, config: dict[str, Any]) -> str:
    """The first line of what the engine raises, of the model that transformers loads."""
    alive = HfDeepSpeedConfig(config)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.bfloat16)
    try:
        deepspeed.initialize(model=model, optimizer=torch.optim.AdamW(model.parameters()), config=alive.config)
    except Exception as error:
        return f"{type(error).__name__}: {error}".splitlines()[0]
    return ""


def main(folder: Path, meeting: str) -> None:
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=world)
    deepspeed.init_distributed("gloo")
    if rank == 0:
        AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(folder)).save_pretrained(folder / "model")
    dist.barrier()
    cases = json.loads((folder / "cases.json").read_text())
    answers = {case["name"]: stop(folder / "model", case["deepspeed"]) for case in cases}
    (folder / f"{rank}.json").write_text(json.dumps(answers))
    dist.barrier()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
