# pyright: basic
"""One rank of a real DeepSpeed run that offloads to the CPU: what lies on the host after two steps, by case.

``RANK`` and ``WORLD_SIZE`` say which rank; the arguments are a folder with the model's ``config.json`` and
``cases.json`` (a list of ``{"name", "deepspeed", "unfrozen"}``), and the file that the ranks meet through. The answer
is ``<rank>.json`` in that folder. On a CPU the card's tensors lie in the same memory, so the offloaded ones are
found by the names that DeepSpeed keeps them under, and the process's own figures hold both.
"""

import gc
import json
import os
import sys
from pathlib import Path
from typing import Any

from .deepspeed_worker import bytes_of, deepspeed, dist, grouped, masters, shard_of, torch, trainable

from transformers import AutoConfig, AutoModelForCausalLM  # isort: skip  (once DeepSpeed's environment is set)

STEPS, TOKENS = 2, 16


def resident() -> dict[str, int]:
    """What the kernel counts as this process's memory: proc(5), smaps_rollup and the peak in status."""
    lines = "".join(Path("/proc/self", name).read_text() for name in ("smaps_rollup", "status")).splitlines()
    fields = dict(line.split(":", 1) for line in lines if line.split(":", 1)[0] in {"Rss", "Pss", "Anonymous", "VmHWM"})
    return {name: 1024 * int(value.split()[0]) for name, value in fields.items()}


def flat(zero: Any, adam: Any) -> list[Any]:
    """The master weights on the host: stage_1_and_2.py:490, stage3.py:1024@0.18.9."""
    found = getattr(zero, "single_partition_of_fp32_groups", None)
    return list(masters(zero, adam)) if found is None else found


def offloaded(engine: Any, adam: Any) -> dict[str, int]:
    """Bytes on the host, by what they are for: stage_1_and_2.py:482-487,563,803,1381, stage3.py:633,778,1206@0.18.9."""
    zero = engine.optimizer
    own, parameters = flat(zero, adam), list(engine.module.parameters())
    on_host = hasattr(zero, "param_groups_fp16_flat_cpu_memory") and zero.offload_param
    return {
        "masters": bytes_of(own),
        "gradients": bytes_of([one.grad for one in own]),
        "staging": bytes_of(
            getattr(zero, "param_buffer_of_bit16_for_cpu_offload_groups", None),
            getattr(zero, "grad_partitions_flat_buffer", None),
        ),
        "accumulated": bytes_of(getattr(zero, "accumulated_grads_in_cpu", None)),
        "one gradient": bytes_of(getattr(zero, "temp_grad_buffer_for_cpu_offload", None)),
        "states": bytes_of([[value for value in state.values() if value.dim()] for state in adam.state.values()]),
        "trained shards": bytes_of(zero.param_groups_fp16_flat_cpu_memory) if on_host else 0,
        "frozen shards": bytes_of([shard_of(one) for one in parameters if not one.requires_grad]) if on_host else 0,
    }


def on_card(engine: Any) -> int:
    """Bytes that a card would hold once a step is done: the parameters or their shards, and the reduce buckets."""
    zero = engine.optimizer
    if getattr(zero, "offload_param", False):
        return bytes_of([bucket.buffer for bucket in getattr(zero, "ipg_buckets", {}).values()])
    parameters = list(engine.module.parameters())
    buckets = [bucket.buffer for bucket in getattr(zero, "ipg_buckets", {}).values()]
    return bytes_of(
        [shard_of(one) for one in parameters], buckets, getattr(zero, "temp_grad_buffer_for_gpu_offload", None)
    )


def measured(case: dict[str, Any], folder: Path) -> dict[str, Any]:
    """One run: the process before it, and after its steps what DeepSpeed holds and what the process does."""
    torch.manual_seed(0)
    gc.collect()
    before = resident()
    model = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(folder), dtype=torch.bfloat16)
    model = trainable(model, {"rank": 0, "unfrozen": case["unfrozen"]})
    adam = torch.optim.AdamW([{"params": group} for group in grouped(model)], lr=1e-3)
    engine, *_ = deepspeed.initialize(model=model, optimizer=adam, config=case["deepspeed"])
    for _ in range(STEPS * case["deepspeed"]["gradient_accumulation_steps"]):
        tokens = torch.randint(0, 500, (1, TOKENS))
        engine.backward(engine(input_ids=tokens, labels=tokens).loss)
        with torch.no_grad():  # gloo gathers into views
            engine.step()
    gc.collect()
    answer = {"host": offloaded(engine, adam), "card": on_card(engine), "before": before, "after": resident()}
    engine.destroy()
    return answer


def main(folder: Path, meeting: Path) -> None:
    """Every case, one after the other."""
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=world)
    deepspeed.init_distributed("gloo")
    answers = {case["name"]: measured(case, folder) for case in json.loads((folder / "cases.json").read_text())}
    (folder / f"{rank}.json").write_text(json.dumps(answers))
    dist.barrier()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
