"""One rank of a real DeepSpeed run on the CPU: trains each case for two optimizer steps and writes down its bytes.

``RANK`` and ``WORLD_SIZE`` say which rank; the arguments are a folder with the model's ``config.json`` and
``cases.json`` (a list of ``{"name", "deepspeed", "unfrozen", "rank"}``, the rank LoRA's), and the file that the ranks
meet through. The answer is ``<rank>.json`` in that folder: this rank's bytes by case.
"""

import gc
import json
import os
import re
import sys
import weakref
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

os.environ.update(DS_ACCELERATOR="cpu", GLOO_SOCKET_IFNAME="lo", HF_HUB_OFFLINE="1")

import deepspeed
import deepspeed.comm.torch
import torch
import torch.distributed as dist
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import AutoConfig, AutoModelForCausalLM

# Shared-memory collectives would be compiled first; gloo gives the same results. (As an attribute of deepspeed.comm,
# ``torch`` is torch itself.)
sys.modules["deepspeed.comm.torch"].build_shm_op = lambda: None

STEPS = 2
TOKENS = 16


def tensors_in(value: Any) -> Iterator[torch.Tensor]:
    """The tensors in nested lists and dictionaries."""
    if torch.is_tensor(value):
        yield value
    elif isinstance(value, dict):
        yield from tensors_in(list(value.values()))
    elif isinstance(value, list | tuple):
        for item in value:
            yield from tensors_in(item)


def storages(*values: Any) -> dict[int, int]:
    """Bytes by address: tensors that share a storage count once."""
    found = (tensor.untyped_storage() for tensor in tensors_in(list(values)))
    return {storage.data_ptr(): storage.nbytes() for storage in found if storage.nbytes()}


def bytes_of(*values: Any) -> int:
    return sum(storages(*values).values())


class Peak(TorchDispatchMode):
    """The most bytes that are alive at once: of ``held``, and of all tensors made inside."""

    def __init__(self, held: Any) -> None:
        super().__init__()
        self.live: dict[int, int] = {}
        self.now = self.most = 0
        self.count(held)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = storages(list(args), kwargs or {})
        out = func(*args, **(kwargs or {}))
        self.count([tensor for tensor in tensors_in([out]) if tensor.untyped_storage().data_ptr() not in given])
        return out

    def count(self, made: Any) -> None:
        for tensor in tensors_in(made):
            storage = tensor.untyped_storage()
            address, size = storage.data_ptr(), storage.nbytes()
            if size and address not in self.live:
                self.live[address] = size
                self.now += size
                weakref.finalize(storage, self.freed, address)
        self.most = max(self.most, self.now)

    def freed(self, address: int) -> None:
        self.now -= self.live.pop(address, 0)


class Gathered(TorchDispatchMode):
    """The most elements that are whole at once of what stage 3 cuts, those on their way included."""

    def __init__(self, engine: Any) -> None:
        super().__init__()
        self.cut = [parameter for parameter in engine.module.parameters() if hasattr(parameter, "ds_status")]
        self.most = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        whole = [parameter.ds_numel for parameter in self.cut if parameter.ds_status.name != "NOT_AVAILABLE"]
        self.most = max(self.most, sum(whole))
        return func(*args, **(kwargs or {}))


class Sent:
    """Bytes that go around in collectives: those of an all-reduce twice."""

    bytes = 0

    @classmethod
    def watch(cls, backend: Any) -> None:
        """Count all collectives of DeepSpeed's backend from now on."""
        whole = {"all_reduce": ("tensor", 2), "reduce": ("tensor", 1), "broadcast": ("tensor", 1)}
        cut = {"all_gather_into_tensor": ("output_tensor", 1), "reduce_scatter_tensor": ("input_tensor", 1)}
        for name, (argument, times) in {**whole, **cut}.items():
            setattr(backend, name, cls.counting(getattr(backend, name), argument, times))

    @classmethod
    def counting(cls, method: Callable[..., Any], argument: str, times: int) -> Callable[..., Any]:
        def counted(backend: Any, *args: Any, **kwargs: Any) -> Any:
            tensor = kwargs[argument] if argument in kwargs else args[0]
            cls.bytes += times * tensor.numel() * tensor.element_size()
            return method(backend, *args, **kwargs)

        return counted


class Watch:
    """One engine's gradients, buckets left out, at the moments of each micro-step's backward."""

    def __init__(self, engine: Any) -> None:
        self.engine, self.zero = engine, engine.optimizer
        self.micro_steps: list[dict[str, int]] = []
        self.buckets = self.flattened = 0
        self.before("reduce_gradients", "ready")
        self.before("_release_ipg_buffers", "reduced")
        if hasattr(self.zero, "copy_grads_in_partition"):
            self.zero.copy_grads_in_partition = self.copying(self.zero.copy_grads_in_partition)
            self.zero.allreduce_bucket = self.allreducing(self.zero.allreduce_bucket)

    def before(self, name: str, moment: str) -> None:
        """Look each time before the method runs."""
        method = getattr(self.zero, name, None)
        if method is not None:

            def watched(*args: Any, **kwargs: Any) -> Any:
                self.look(moment)
                return method(*args, **kwargs)

            setattr(self.zero, name, watched)

    def flattening(self, method: Callable[..., Any]) -> Callable[..., Any]:
        """What a reduction copies out of its bucket."""

        def watched(tensors: Any) -> Any:
            flat = method(tensors)
            self.flattened = max(self.flattened, bytes_of(flat) if not storages(tensors).keys() & storages(flat) else 0)
            return flat

        return watched

    def allreducing(self, method: Callable[..., Any]) -> Callable[..., Any]:
        """Only what is flattened for a reduction counts; the step flattens too."""

        def watched(*args: Any, **kwargs: Any) -> Any:
            plain = self.zero.flatten
            self.zero.flatten = self.flattening(plain)
            try:
                return method(*args, **kwargs)
            finally:
                self.zero.flatten = plain

        return watched

    def copying(self, method: Callable[..., Any]) -> Callable[..., Any]:
        """The first copy makes room for the whole shard while the gradient to be copied is still there."""

        def watched(parameter: Any) -> None:
            first = self.zero.grads_in_partition is None
            held = self.look("copied")
            method(parameter)
            made = bytes_of(self.zero.grads_in_partition)
            if first:
                self.micro_steps[-1]["shard made"] = held + made

        return watched

    def look(self, moment: str) -> int:
        buckets = self.in_buckets()
        gradients = storages(self.gradients())
        total = sum(size for at, size in gradients.items() if at not in buckets)
        self.buckets = max(self.buckets, sum(buckets.values()))
        if self.micro_steps:
            seen = self.micro_steps[-1]
            seen[moment] = max(seen.get(moment, 0), total)
        return total

    def in_buckets(self) -> dict[int, int]:
        return storages([bucket.buffer for bucket in getattr(self.zero, "ipg_buckets", {}).values()])

    def gradients(self) -> list[Any]:
        parameters = list(self.engine.module.parameters())
        held = ("grads_in_partition", "all_grad_tensors", "averaged_gradients", "previous_reduced_grads")
        buffers = ("grad_partitions_flat_buffer", "temp_grad_buffer_for_gpu_offload")
        return [
            [parameter.grad for parameter in parameters],
            [getattr(parameter, "grad_accum", None) for parameter in parameters],
            [getattr(self.zero, name, None) for name in (*held, *buffers)],
        ]


def trainable(model: Any, case: dict[str, Any]) -> Any:
    """The model with an adapter, or with all but the unfrozen parameters frozen."""
    if case["rank"]:
        from peft import LoraConfig, get_peft_model

        return get_peft_model(model, LoraConfig(r=case["rank"], target_modules="all-linear", task_type="CAUSAL_LM"))
    for name, parameter in model.named_parameters():
        parameter.requires_grad = not case["unfrozen"] or any(re.match(p, name) for p in case["unfrozen"])
    return model


def grouped(model: Any) -> list[list[Any]]:
    """What decays and what does not, as the Trainer groups them."""
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    groups = [[p for p in trained if p.dim() > 1], [p for p in trained if p.dim() == 1]]
    return [group for group in groups if group]


def micro_step(engine: Any, watch: Watch) -> int:
    """Forward, backward and step; the most bytes of gradients and of what the step made."""
    tokens = torch.randint(0, 500, (1, TOKENS))
    before = Sent.bytes
    with Gathered(engine) as gathered:
        loss = engine(input_ids=tokens, labels=tokens).loss
        watch.micro_steps.append({})
        engine.backward(loss)
    watch.micro_steps[-1]["gathered"] = gathered.most
    watch.micro_steps[-1]["sent"] = Sent.bytes - before
    watch.look("end")
    watch.micro_steps[-1]["buckets left"] = sum(watch.in_buckets().values())
    before = Sent.bytes
    with Peak(watch.gradients()) as peak:
        engine.step()
    watch.micro_steps[-1]["sent in step"] = Sent.bytes - before
    return peak.most


def shard_of(parameter: Any) -> Any:
    return getattr(parameter, "ds_tensor", parameter.data)


def measured(case: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The bytes of one run."""
    torch.manual_seed(0)
    dtype = torch.bfloat16 if case["deepspeed"].get("bf16") else torch.float32
    model = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(folder), dtype=dtype)
    model = trainable(model, case)
    groups = grouped(model)
    numels = [[parameter.numel() for parameter in group] for group in groups]
    frozen = [parameter.numel() for parameter in model.parameters() if not parameter.requires_grad]
    adam = torch.optim.AdamW([{"params": group} for group in groups], lr=1e-3, foreach=True)
    engine, *_ = deepspeed.initialize(model=model, optimizer=adam, config=case["deepspeed"])
    watch = Watch(engine)
    stepping = 0
    for _ in range(STEPS * case["deepspeed"]["gradient_accumulation_steps"]):
        stepping = micro_step(engine, watch)
    zero = engine.optimizer
    parameters = list(engine.module.parameters())
    whole = [p for p in parameters if hasattr(p, "ds_tensor") and p.data.numel() == p.ds_numel]
    shards = [shard_of(parameter) for parameter in parameters]
    answer = {
        "groups": numels,
        "frozen": frozen,
        "weights": bytes_of(shards),
        "master": bytes_of(masters(zero, adam)),
        "moments": bytes_of([[v for v in state.values() if v.dim()] for state in adam.state.values()]),
        "micro_steps": watch.micro_steps,
        "buckets": watch.buckets,
        "flattened": watch.flattened,
        "step": stepping,
        "persistent": bytes_of(shards, [parameter.data for parameter in whole]) - bytes_of(shards),
        "persistent_numels": [parameter.ds_numel for parameter in whole],
    }
    engine.destroy()
    gc.collect()
    return answer


def masters(zero: Any, adam: Any) -> Iterable[Any]:
    """The flat fp32 tensors that the optimizer works on."""
    flat = getattr(zero, "fp32_partitioned_groups_flat", None)
    return flat if flat is not None else [group["params"] for group in adam.param_groups]


def main(folder: Path, meeting: Path) -> None:
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=world)
    deepspeed.init_distributed("gloo")
    Sent.watch(sys.modules["deepspeed.comm.torch"].TorchBackend)
    answers: dict[str, Any] = defaultdict(dict)
    for case in json.loads((folder / "cases.json").read_text()):
        answers[case["name"]] = measured(case, folder)
    (folder / f"{rank}.json").write_text(json.dumps(answers))
    dist.barrier()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
