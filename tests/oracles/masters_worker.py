"""One process that trains a tiny Llama in half precision for two optimizer steps, and says what its optimizer updates.

``cases.json`` is a list of ``{"name", "deepspeed"}``, a whole DeepSpeed config or null for torch's AdamW on the weights
themselves, as plain axolotl has it. The answer is ``0.json``: by case, dtypes of weights, of what is updated and of
its moments, and which share of the numbers moved.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any, cast

os.environ.update(DS_ACCELERATOR="cpu", GLOO_SOCKET_IFNAME="lo", HF_HUB_OFFLINE="1")

import deepspeed
import deepspeed.comm.torch
import torch
import torch.distributed as dist
from transformers import AutoConfig, AutoModelForCausalLM

sys.modules["deepspeed.comm.torch"].build_shm_op = lambda: None
# torch computes fp16 on any CPU; DeepSpeed asks for one that does it quickly.
cast("Any", deepspeed.accelerator.get_accelerator()).is_fp16_supported = lambda: True

STEPS, TOKENS, LEARNING_RATE = 2, 16, 1e-5


def trained(folder: Path, config: dict[str, Any] | None) -> dict[str, Any]:
    """Two steps, and what they changed."""
    torch.manual_seed(0)
    half = torch.float16 if config is not None and "fp16" in config else torch.bfloat16
    model: Any = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(folder)).to(half)
    own = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE, weight_decay=0)
    engine: Any = None
    if config is not None:
        engine, *_ = deepspeed.initialize(model=model, optimizer=own, config=config)
    optimizer = engine.optimizer.optimizer if engine is not None else own
    before = numbers(updated(optimizer))
    for _ in range(STEPS):
        rows = torch.randint(128, (1, TOKENS))
        step(model, rows, optimizer, engine)
    after = numbers(updated(optimizer))
    moments = [state[name] for state in optimizer.state.values() for name in ("exp_avg", "exp_avg_sq")]
    return {
        "weights": dtypes(model.parameters()),
        "updated": dtypes(updated(optimizer)),
        "moments": dtypes(moments),
        "moved": float((after != before).double().mean()),
    }


def step(model: Any, rows: torch.Tensor, optimizer: Any, engine: Any) -> None:
    """One optimizer step of either kind."""
    if engine is not None:
        engine.backward(engine(input_ids=rows, labels=rows, use_cache=False).loss)
        with torch.no_grad():
            engine.step()
        return
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = model(input_ids=rows, labels=rows, use_cache=False).loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()


def updated(optimizer: Any) -> list[torch.Tensor]:
    """What the optimizer updates: the weights, or a copy of them."""
    return [tensor for group in optimizer.param_groups for tensor in group["params"]]


def numbers(tensors: list[torch.Tensor]) -> torch.Tensor:
    return torch.cat([tensor.detach().double().flatten() for tensor in tensors])


def dtypes(tensors: Any) -> list[str]:
    return sorted({str(tensor.dtype).removeprefix("torch.") for tensor in tensors})


def main(folder: Path, meeting: str) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=0, world_size=1)
    deepspeed.init_distributed("gloo")
    cases = json.loads((folder / "cases.json").read_text())
    found = {case["name"]: trained(folder, case["deepspeed"]) for case in cases}
    (folder / "0.json").write_text(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
