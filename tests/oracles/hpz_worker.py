"""One rank of DeepSpeed's ZeRO-3 on the CPU that counts what it gathers, and among how many, with hpZ or without.

``RANK`` and ``WORLD_SIZE`` say which rank; the arguments are a folder with the model's ``config.json`` and
``cases.json`` (a list of one ``{"deepspeed", "trained", "checkpoints", "models", "micro_steps"}``), and the file that the
ranks meet through. The answer is ``<rank>.json`` in that folder: for each micro-step the bytes that were gathered, by the
number of ranks; or what it stopped at.
"""

import json
import os
import sys
from collections import Counter
from pathlib import Path
from typing import Any

os.environ.update(DS_ACCELERATOR="cpu", GLOO_SOCKET_IFNAME="lo", HF_HUB_OFFLINE="1")

import deepspeed
import deepspeed.comm as comm
import deepspeed.comm.torch
import torch
import torch.distributed as dist
from deepspeed.runtime.zero import partition_parameters
from transformers import AutoConfig, AutoModelForCausalLM
from transformers.integrations import HfDeepSpeedConfig

sys.modules["deepspeed.comm.torch"].build_shm_op = lambda: None

TOKENS = 16
gathered: Counter[int] = Counter()
gather = partition_parameters._dist_allgather_fn


def counting(shard: torch.Tensor, whole: torch.Tensor, group: Any = None) -> Any:
    gathered[comm.get_world_size(group=group)] += whole.nbytes
    return gather(shard, whole, group)


partition_parameters._dist_allgather_fn = counting


def counts(folder: Path, case: dict[str, Any]) -> list[dict[int, int]]:
    """What is gathered in each micro-step, by ranks."""
    alive = HfDeepSpeedConfig(case["deepspeed"])
    for _ in range(case["models"]):
        model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.bfloat16)
    for name, parameter in model.named_parameters():
        parameter.requires_grad = name.startswith(case["trained"])
    if case["checkpoints"]:
        model.gradient_checkpointing_enable({"use_reentrant": False})
    model.train()
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    engine, *_ = deepspeed.initialize(model=model, optimizer=torch.optim.AdamW(trained, lr=0.1), config=alive.config)
    found = []
    for _ in range(case["micro_steps"]):
        gathered.clear()
        tokens = torch.randint(0, 64, (1, TOKENS))
        engine.backward(engine(input_ids=tokens, labels=tokens).loss)
        engine.step()
        found.append(dict(gathered))
    return found


def main(folder: Path, meeting: str) -> None:
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=world)
    deepspeed.init_distributed("gloo")
    if rank == 0:
        AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(folder)).save_pretrained(folder / "model")
    dist.barrier()
    (case,) = json.loads((folder / "cases.json").read_text())
    try:
        answer: Any = counts(folder / "model", case)
    except Exception as error:
        answer = f"{type(error).__name__}: {error}".splitlines()[0]
    (folder / f"{rank}.json").write_text(json.dumps(answer))
    dist.barrier()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
