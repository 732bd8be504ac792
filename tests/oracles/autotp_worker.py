"""One rank of transformers' Trainer under DeepSpeed's AutoTP on the CPU: what it holds, what it learns, where it stops.

``RANK`` and ``WORLD_SIZE`` say which rank; the arguments are a folder with the model's ``config.json`` and
``cases.json`` (a list of ``{"name", "deepspeed", "targets", "model", "both"}``: LoRA's targets, other keys of the
model's config, whether transformers cuts it as well), and the file that the ranks meet through. The answer is
``<rank>.json`` in that folder: by case, this rank's bytes and losses, or what it stopped at.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

os.environ.update(
    DS_ACCELERATOR="cpu", GLOO_SOCKET_IFNAME="lo", HF_HUB_OFFLINE="1", MASTER_ADDR="localhost", MASTER_PORT="0"
)
os.environ["LOCAL_WORLD_SIZE"] = os.environ["WORLD_SIZE"]

import deepspeed
import torch
import torch.distributed as dist
from accelerate.state import AcceleratorState
from transformers import AutoConfig, AutoModelForCausalLM, Trainer, TrainerCallback, TrainingArguments

from .deepspeed_worker import Watch, bytes_of, masters

STEPS, TOKENS = 3, 16


class Rows(torch.utils.data.Dataset[Any]):
    """The same rows for every rank: what each reads of them is accelerate's."""

    def __len__(self) -> int:
        return 64

    def __getitem__(self, at: int) -> dict[str, torch.Tensor]:
        made = torch.randint(500, (TOKENS,), generator=torch.Generator().manual_seed(at))
        return {"input_ids": made, "labels": made}


class Look(TrainerCallback):
    """Counts what the engine holds, before each of its steps and after the last."""

    trainer: Any
    watch: Watch

    def on_step_begin(self, *_: Any, **__: Any) -> None:
        if not hasattr(self, "watch"):
            self.watch = Watch(self.trainer.model_wrapped)
        self.watch.micro_steps.append({})
        self.watch.engine.step = self.looking(type(self.watch.engine).step)

    def looking(self, step: Any) -> Any:
        def looked() -> None:
            self.watch.look("end")
            with torch.no_grad():  # gloo gathers in place, into views
                step(self.watch.engine)

        return looked


class Watched(Trainer):
    """Keeps the first batch and each loss."""

    rows: torch.Tensor | None = None

    def compute_loss(self, model: Any, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        self.rows = inputs["input_ids"] if self.rows is None else self.rows
        return super().compute_loss(model, inputs, *args, **kwargs)


def model_of(folder: Path, case: dict[str, Any]) -> Any:
    """The same weights in every case, in bf16, maybe with adapters."""
    torch.manual_seed(0)
    given = json.loads((folder / "config.json").read_text()) | case.get("model", {})
    config = AutoConfig.for_model(given.pop("model_type"), **given)
    model: Any = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
    if case.get("both"):
        if dist.get_rank() == 0:
            model.save_pretrained(folder / "both")
        dist.barrier()
        model = AutoModelForCausalLM.from_pretrained(folder / "both", tp_plan="auto", tp_size=2, dtype=torch.bfloat16)
    if case.get("targets"):
        from peft import LoraConfig, get_peft_model

        model = get_peft_model(model, LoraConfig(r=4, target_modules=case["targets"], task_type="CAUSAL_LM"))
    return model


def trained(folder: Path, case: dict[str, Any]) -> dict[str, Any]:
    """What one run says of itself."""
    AcceleratorState._reset_state()
    out = folder / f"out {case['name']}"
    arguments = TrainingArguments(
        output_dir=str(out),
        max_steps=STEPS,
        per_device_train_batch_size=1,
        gradient_accumulation_steps=1,
        learning_rate=1e-2,
        lr_scheduler_type="constant",
        optim="adamw_torch",
        use_cpu=True,
        bf16=True,
        logging_steps=1,
        save_strategy="no",
        report_to=[],
        disable_tqdm=True,
        dataloader_num_workers=0,
        deepspeed=case["deepspeed"],
        seed=1,
    )
    model = model_of(folder, case)
    look = Look()
    trainer = Watched(model=model, args=arguments, train_dataset=Rows(), callbacks=[look])
    look.trainer = trainer
    trainer.train()
    zero: Any = look.watch.engine.optimizer
    adam = getattr(zero, "optimizer", zero)
    return {
        "weights": bytes_of([weight.data for weight in look.watch.engine.module.parameters()]),
        "micro_steps": look.watch.micro_steps,
        "master": bytes_of(masters(zero, adam)),
        "moments": bytes_of([[v for v in state.values() if v.dim()] for state in adam.state.values()]),
        "losses": [line["loss"] for line in trainer.state.log_history if "loss" in line],
        "norms": [line["grad_norm"] for line in trainer.state.log_history if "grad_norm" in line],
        "rows": trainer.rows.flatten().tolist()[:4] if trainer.rows is not None else [],
        "data_parallel": look.watch.engine.dp_world_size,
    }


def told(folder: Path, case: dict[str, Any]) -> dict[str, Any]:
    """What it says, or what it stops at."""
    try:
        return trained(folder, case)
    except Exception as error:
        return {"stop": f"{type(error).__name__}: {error}".splitlines()[0]}


def main(folder: Path, meeting: str) -> None:
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=world)
    deepspeed.init_distributed("gloo")
    cases = json.loads((folder / "cases.json").read_text())
    answers = {case["name"]: told(folder, case) for case in cases}
    (folder / f"{rank}.json").write_text(json.dumps(answers))
    dist.barrier()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
