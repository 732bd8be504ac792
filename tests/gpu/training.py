"""One measured run in its own process: random weights, three training steps, one JSON line printed.

The job is read from standard input once everything is imported, so that a process can be started ahead.
"""

import gc
import importlib.metadata
import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import transformers
from accelerate.utils.operations import convert_outputs_to_fp32
from cases import LORA_TARGETS, Case, deepspeed_of, model_config
from meters import CpuMeter, CudaMeter, Meter
from peft import LoraConfig, get_peft_model, prepare_model_for_kbit_training
from transformers import AutoModelForCausalLM, LlamaConfig

STEPS = 3
LEARNING_RATE = 1e-5
VERSIONS = (
    "torch",
    "transformers",
    "peft",
    "accelerate",
    "bitsandbytes",
    "deepspeed",
    "flash_attn",
    "liger_kernel",
)
WIDE_PARTS = ("norm", "embed_tokens", "lm_head")


@dataclass
class Training:
    """A model that is ready to train, and how it goes backward and steps."""

    model: Any
    backward: Callable[[torch.Tensor], object]
    step: Callable[[], object]


def main() -> None:
    """Read a job, run it, print what was measured."""
    job = json.loads(sys.stdin.readline())
    print(json.dumps(measured(job)), flush=True)


def measured(job: dict[str, Any]) -> dict[str, Any]:
    """The outcome and figures of a job."""
    case, meter = Case(**job["case"]), meter_of(job)
    result: dict[str, Any] = {"outcome": "ok", "error": None, "failed_in": None, "step_seconds": None}
    try:
        with meter.running():
            result["step_seconds"] = run(case, job["device"], meter)
    except Exception as error:
        outcome = "oom" if is_out_of_memory(error) else "error"
        result |= {"outcome": outcome, "error": one_line(error), "failed_in": meter.current}
    return result | figures(meter) | {"versions": versions(job["device"])}


def meter_of(job: dict[str, Any]) -> Meter:
    """The meter of the job's device."""
    if job["device"] == "cpu":
        return CpuMeter()
    return CudaMeter(limit=job["limit"], snapshot=Path(job["snapshot"]) if job["snapshot"] else None)


def figures(meter: Meter) -> dict[str, Any]:
    """What was measured, as far as the run went."""
    reserved = [phase["reserved_peak"] for phase in meter.phases.values() if phase["reserved_peak"] is not None]
    try:
        facts = meter.facts()
    except RuntimeError:
        facts = {"gpu": None, "outside_torch": None}
    return {
        "phases": meter.phases,
        "allocated_peak": max((phase["allocated_peak"] or 0 for phase in meter.phases.values()), default=None),
        "reserved_peak": max(reserved, default=None),
        "first_step_peak": meter.first_step_peak,
        **facts,
    }


def run(case: Case, device: str, meter: Meter) -> float:
    """All steps; seconds of a step, the first not counted."""
    torch.manual_seed(0)
    with meter.phase("load"):
        model = loaded(case, device)
    with meter.phase("prepare"):
        training = under_deepspeed(model, case) if case.zero else under_autocast(model, case, device)
    split_at_head(training.model, meter)
    tokens = batch(case, device, case.micro_batch_size)
    seconds = 0.0
    for number in range(STEPS):
        meter.counting = number > 0
        before = meter.clock()
        step(training, tokens, case.gradient_accumulation_steps, meter)
        seconds += meter.clock() - before if meter.counting else 0.0
    if case.eval_batch_size:
        evaluate(training.model, batch(case, device, case.eval_batch_size), meter)
    return seconds / (STEPS - 1)


def step(training: Training, tokens: dict[str, torch.Tensor], accumulation: int, meter: Meter) -> None:
    """One optimizer step. Outputs other than the loss are let go before backward, as in the Trainer's compute_loss."""
    items = (tokens["labels"] != -100).sum() * accumulation
    for _ in range(accumulation):
        with meter.phase("forward and loss"):
            loss = training.model(**tokens, num_items_in_batch=items).loss
        with meter.phase("backward"):
            training.backward(loss)
        del loss
    with meter.phase("optimizer step"):
        training.step()


def split_at_head(model: torch.nn.Module, meter: Meter) -> None:
    """Backward is "loss backward" until the gradient has passed the head; a fused loss has no such moment."""

    def watch(_head: torch.nn.Module, inputs: tuple[torch.Tensor, ...]) -> None:
        hidden = inputs[0]
        if hidden.requires_grad and torch.is_grad_enabled():
            hidden.register_hook(lambda _gradient: meter.split("loss backward"))

    head = next(module for name, module in model.named_modules() if name.rpartition(".")[2] == "lm_head")
    head.register_forward_pre_hook(watch)


def evaluate(model: Any, tokens: dict[str, torch.Tensor], meter: Meter) -> None:
    """Two batches; the outputs live until the loss is read, as in the Trainer's prediction_step."""
    model.eval()
    for _ in range(2):
        with meter.phase("evaluation"), torch.no_grad():
            outputs = model(**tokens, num_items_in_batch=(tokens["labels"] != -100).sum())
            outputs.loss.mean().item()
            del outputs


def batch(case: Case, device: str, rows: int) -> dict[str, torch.Tensor]:
    """Random tokens in full rows; ``padded`` leaves the last quarter of the last row empty, under a mask."""
    vocabulary = model_config(case)["vocab_size"]
    tokens = torch.randint(0, vocabulary, (rows, case.sequence_len), device=device)
    made = {"input_ids": tokens, "labels": tokens.clone()}
    if case.padded:
        mask = torch.ones_like(tokens)
        mask[-1, -(case.sequence_len // 4) :] = 0
        made["attention_mask"] = mask
        made["labels"][mask == 0] = -100
    return made


def loaded(case: Case, device: str) -> Any:
    """The model on its device, with adapter and checkpointing."""
    if case.liger != "off":
        patch_liger(everything=case.liger == "all")
    if case.zero:
        join_alone()
    # transformers looks this up to build under ZeRO-3; it must stay alive until the model is built.
    _zero3 = hf_deepspeed(case) if case.zero == 3 else None
    model = sharded(case) if case.zero == 3 else built(case, device)
    model.config.use_cache = False
    if case.prepare_kbit:
        model = prepare_model_for_kbit_training(model, use_gradient_checkpointing=False)
    if case.trainer == "axolotl" and case.method == "full":
        widen(model)
    if case.checkpointing != "off":
        reentrant = case.checkpointing == "reentrant"
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": reentrant})
    if case.method != "full":
        model = adapted(model, case)
    gc.collect()
    return model.train()


def built(case: Case, device: str) -> Any:
    """The model in bf16, its weights made on the device one by one, so that loading has no peak of its own."""
    config = LlamaConfig(**model_config(case))
    with torch.device("meta"):
        model: Any = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16, attn_implementation=case.attention)
    if case.method == "qlora":
        quantize(model, device)
    materialise(model, device)
    model.model.rotary_emb = type(model.model.rotary_emb)(config=config, device=torch.device(device))
    return model


def materialise(model: torch.nn.Module, device: str) -> None:
    """Random weights in place of those on ``meta``; tied weights stay tied."""
    made: dict[int, torch.nn.Parameter] = {}
    for module in model.modules():
        for name, weight in list(module._parameters.items()):
            if weight is None or weight.device.type != "meta":
                continue
            if id(weight) not in made:
                fresh = torch.empty(weight.shape, dtype=weight.dtype, device=device)
                fresh = fresh.fill_(1.0) if weight.dim() == 1 else fresh.normal_(0.0, 0.02)
                made[id(weight)] = torch.nn.Parameter(fresh, requires_grad=weight.requires_grad)
            module._parameters[name] = made[id(weight)]


def quantize(model: Any, device: str) -> None:
    """bitsandbytes' 4-bit linears, with double quantization, in place of all but the head."""
    import bitsandbytes as bnb

    linears = [(name, module) for name, module in model.named_modules() if isinstance(module, torch.nn.Linear)]
    for name, module in linears:
        if name == "lm_head":
            continue
        shape = module.weight.shape
        options = {"compress_statistics": True, "quant_type": "nf4"}
        linear = bnb.nn.Linear4bit(
            shape[1], shape[0], bias=False, compute_dtype=torch.bfloat16, device="meta", **options
        )
        weight = torch.empty(shape, dtype=torch.bfloat16, device=device).normal_(0.0, 0.02)
        linear.weight = bnb.nn.Params4bit(weight, requires_grad=False, **options).to(device)
        parent, _, child = name.rpartition(".")
        setattr(model.get_submodule(parent), child, linear)
    model.is_loaded_in_4bit = True
    for parameter in model.parameters():
        parameter.requires_grad_(False)


def widen(model: torch.nn.Module) -> None:
    """Embeddings, head and norms in fp32, as axolotl keeps them where every weight is trained."""
    for name, weight in model.named_parameters():
        if any(part in name for part in WIDE_PARTS):
            weight.data = weight.data.float()


def adapted(model: Any, case: Case) -> Any:
    """The model under PEFT's LoRA, its adapters in fp32."""
    if case.checkpointing != "off":
        model.enable_input_require_grads()
    targets = LORA_TARGETS[case.lora_targets] or "all-linear"
    lora = LoraConfig(
        r=case.lora_r,
        lora_alpha=2 * case.lora_r,
        lora_dropout=0.0,
        target_modules=targets,
        task_type="CAUSAL_LM",
    )
    return get_peft_model(model, lora, autocast_adapter_dtype=True)


def under_autocast(model: Any, case: Case, device: str) -> Training:
    """bf16 autocast around the forward, outputs in fp32, gradients clipped: what ``bf16=True`` means."""
    inside = torch.autocast(device.split(":")[0], torch.bfloat16)(model.forward)
    model.forward = convert_outputs_to_fp32(inside)
    optimizer = optimizer_of(model, case)

    def take_step() -> None:
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        model.zero_grad(set_to_none=True)

    return Training(model, lambda loss: loss.backward(), take_step)


def optimizer_of(model: torch.nn.Module, case: Case) -> torch.optim.Optimizer:
    """The optimizer that the Trainer makes of this name, with weight decay for matrices alone."""
    trained = [weight for weight in model.parameters() if weight.requires_grad]
    groups = [
        {"params": [weight for weight in trained if weight.dim() > 1], "weight_decay": 0.01},
        {"params": [weight for weight in trained if weight.dim() <= 1], "weight_decay": 0.0},
    ]
    groups = [group for group in groups if group["params"]]
    match case.optimizer:
        case "adamw_torch":
            return torch.optim.AdamW(groups, lr=LEARNING_RATE, foreach=True)
        case "adamw_torch_fused":
            return torch.optim.AdamW(groups, lr=LEARNING_RATE, fused=True)
        case "adamw_bnb_8bit":
            return eight_bit(model, groups)
        case name:
            raise ValueError(f"no optimizer {name}")


def eight_bit(model: torch.nn.Module, groups: list[dict[str, Any]]) -> torch.optim.Optimizer:
    """bitsandbytes' AdamW; the Trainer keeps the states of embeddings in 32 bits."""
    import bitsandbytes as bnb

    manager = bnb.optim.GlobalOptimManager.get_instance()
    for module in model.modules():
        if isinstance(module, torch.nn.Embedding):
            manager.register_module_override(module, "weight", {"optim_bits": 32})
    return bnb.optim.AdamW8bit(groups, lr=LEARNING_RATE)


def under_deepspeed(model: Any, case: Case) -> Training:
    """DeepSpeed's engine, alone; accelerate takes DeepSpeedCPUAdam where the optimizer is offloaded."""
    import deepspeed
    from deepspeed.ops.adam import DeepSpeedCPUAdam

    trained = [weight for weight in model.parameters() if weight.requires_grad]
    optimizer = DeepSpeedCPUAdam(trained, lr=LEARNING_RATE) if case.offload_optimizer else optimizer_of(model, case)
    engine, *_ = deepspeed.initialize(model=model, optimizer=optimizer, config=deepspeed_of(case))
    return Training(engine, engine.backward, engine.step)


def join_alone() -> None:
    """A process group of one, which needs none of the collectives that are compiled first where there is no GPU."""
    import deepspeed
    import deepspeed.comm.torch

    sys.modules["deepspeed.comm.torch"].build_shm_op = lambda: None
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    os.environ |= {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1"}
    deepspeed.init_distributed()


def hf_deepspeed(case: Case) -> object:
    """transformers' notion of the DeepSpeed config, by which it builds models in shards."""
    from transformers.integrations import HfDeepSpeedConfig

    return HfDeepSpeedConfig(deepspeed_of(case))


def sharded(case: Case) -> Any:
    """The model as transformers builds it under ``zero.Init``."""
    return AutoModelForCausalLM.from_config(
        LlamaConfig(**model_config(case)), dtype=torch.bfloat16, attn_implementation=case.attention
    )


def patch_liger(everything: bool) -> None:
    """Liger's fused loss, or all of its kernels."""
    from liger_kernel.transformers import apply_liger_kernel_to_llama

    apply_liger_kernel_to_llama(
        rope=everything,
        swiglu=everything,
        rms_norm=everything,
        cross_entropy=False,
        fused_linear_cross_entropy=True,
    )


def is_out_of_memory(error: BaseException) -> bool:
    """torch's own error, or one that a library made of it."""
    return isinstance(error, torch.OutOfMemoryError) or "out of memory" in str(error).lower()


def one_line(error: BaseException) -> str:
    """Kind and first line of an error."""
    first = next(iter(str(error).strip().splitlines()), "")
    return f"{type(error).__name__}: {first}"[:300]


def versions(device: str) -> dict[str, str | None]:
    """Versions of what took part; None is not installed."""
    found: dict[str, str | None] = {name: version_of(name) for name in VERSIONS}
    found["torch"] = torch.__version__
    found["transformers"] = transformers.__version__
    return found | {"cuda": torch.version.cuda, "driver": driver() if device != "cpu" else None}


def version_of(package: str) -> str | None:
    """A package's version, or None."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def driver() -> str | None:
    """The NVIDIA driver's version, from nvidia-smi."""
    command = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        lines = subprocess.run(command, capture_output=True, text=True, timeout=20).stdout.splitlines()
    except (OSError, subprocess.TimeoutExpired):
        return None
    return next((line.strip() for line in lines), None)


if __name__ == "__main__":
    main()
