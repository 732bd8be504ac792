"""One rank that really trains a tiny model for 20 steps on the CPU, as each case says, and keeps the weights.

``cases.json`` is a list of ``{"name", "engine", "micro_batch_size", "accumulation", "checkpoints", "rank"}``; the engine
is ``none`` (DDP), ``fsdp2`` or ``zero1`` to ``zero3``. The answer is ``<rank>.json``: by case, each weight as a number.
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
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel
from transformers import AutoConfig, AutoModelForCausalLM

sys.modules["deepspeed.comm.torch"].build_shm_op = lambda: None

STEPS, ROWS, TOKENS = 20, 4, 16
LEARNING_RATE = 1e-5


def batches(rank: int, vocabulary: int) -> torch.Tensor:
    """The rows of each step on this rank, the same in every case."""
    made = torch.Generator().manual_seed(1000 + rank)
    return torch.randint(vocabulary, (STEPS, ROWS, TOKENS), generator=made)


def model_of(folder: Path, case: dict[str, Any]) -> Any:
    """The same weights in every case, in bf16; adapters in fp32, as PEFT makes them."""
    torch.manual_seed(0)
    config = AutoConfig.from_pretrained(folder)
    model: Any = AutoModelForCausalLM.from_config(config).to(torch.bfloat16)
    if case["checkpoints"]:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    if case["rank"]:
        from peft import LoraConfig, get_peft_model

        model = get_peft_model(model, LoraConfig(r=case["rank"], target_modules="all-linear", task_type="CAUSAL_LM"))
        for parameter in model.parameters():
            parameter.data = parameter.data.float() if parameter.requires_grad else parameter.data
    return model


def trained(folder: Path, case: dict[str, Any], rank: int) -> list[float]:
    """The trained weights after all steps, as far as they are followed."""
    model = model_of(folder, case)
    data = batches(rank, 128)
    train = by_deepspeed if case["engine"].startswith("zero") else by_torch
    return train(model, data, case)


def micro_batches(rows: torch.Tensor, case: dict[str, Any]) -> list[torch.Tensor]:
    return list(rows.split(case["micro_batch_size"]))


def by_torch(model: Any, data: torch.Tensor, case: dict[str, Any]) -> list[float]:
    """Plain axolotl: AdamW on the weights as they are."""
    if case["engine"] == "fsdp2":
        mesh = init_device_mesh("cpu", (dist.get_world_size(),))
        for layer in model.model.layers:
            fully_shard(layer, mesh=mesh)
        fully_shard(model, mesh=mesh)
        wrapped = model
    else:
        wrapped = DistributedDataParallel(model)
    optimizer = torch.optim.AdamW(trained_of(model), lr=LEARNING_RATE, weight_decay=0)
    for rows in data:
        parts = micro_batches(rows, case)
        for part in parts:
            with torch.autocast("cpu", dtype=torch.bfloat16):
                loss = wrapped(input_ids=part, labels=part, use_cache=False).loss / len(parts)
            loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    return followed(p.full_tensor() if hasattr(p, "full_tensor") else p for p in watched(model))


def by_deepspeed(model: Any, data: torch.Tensor, case: dict[str, Any]) -> list[float]:
    """DeepSpeed's engine around torch's AdamW."""
    config = {
        "train_micro_batch_size_per_gpu": case["micro_batch_size"],
        "gradient_accumulation_steps": ROWS // case["micro_batch_size"],
        "zero_optimization": {"stage": int(case["engine"][-1]), "stage3_param_persistence_threshold": 0},
        "bf16": {"enabled": True},
        "zero_allow_untested_optimizer": True,
    }
    optimizer = torch.optim.AdamW(trained_of(model), lr=LEARNING_RATE, weight_decay=0)
    engine, *_ = deepspeed.initialize(model=model, optimizer=optimizer, config=config)
    for rows in data:
        for part in micro_batches(rows, case):
            engine.backward(engine(input_ids=part, labels=part, use_cache=False).loss)
            with torch.no_grad():  # gloo gathers in place, into views
                engine.step()
    kept = watched(engine.module)
    if case["engine"] != "zero3":
        return followed(kept)
    with deepspeed.zero.GatheredParameters(kept):
        return followed([p.detach().clone() for p in kept])


def trained_of(model: Any) -> list[torch.Tensor]:
    return [parameter for parameter in model.parameters() if parameter.requires_grad]


def watched(model: Any) -> list[torch.Tensor]:
    """What is compared. Of adapters the matrices that start at zero: bf16 rounds the others by more than they move."""
    named = [(name, parameter) for name, parameter in model.named_parameters() if parameter.requires_grad]
    second = [parameter for name, parameter in named if "lora_B" in name]
    return second or [parameter for _, parameter in named]


def followed(weights: Any) -> list[float]:
    """Every 17th number."""
    return torch.cat([weight.detach().float().flatten()[::17] for weight in weights]).tolist()


def main(folder: Path, meeting: str) -> None:
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=world)
    deepspeed.init_distributed("gloo")
    cases = json.loads((folder / "cases.json").read_text())
    found = {case["name"]: trained(folder, case, rank) for case in cases}
    start = {case["name"]: followed(watched(model_of(folder, case))) for case in cases}
    (folder / f"{rank}.json").write_text(json.dumps({"trained": found, "start": start}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
