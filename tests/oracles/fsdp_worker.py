"""One rank of a real FSDP run on the CPU: trains each case for a few optimizer steps and writes down its bytes.

FSDP2 is prepared by axolotl with accelerate's settings, FSDP1 as accelerate prepares it. ``RANK`` and ``WORLD_SIZE``
say which rank; the arguments are a folder with the model's ``config.json`` and ``cases.json``, and the file that the
ranks meet through. The answer is ``<rank>.json`` in that folder.
"""

import contextlib
import functools
import gc
import json
import os
import sys
import weakref
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

os.environ.update(GLOO_SOCKET_IFNAME="lo", HF_HUB_OFFLINE="1", FSDP_TRANSFORMER_CLS_TO_WRAP="LlamaDecoderLayer")

import torch
import torch.distributed as dist
import torch.distributed.fsdp as fsdp
from accelerate.utils import FullyShardedDataParallelPlugin
from axolotl.monkeypatch.accelerate.fsdp2 import fsdp2_prepare_model
from peft import LoraConfig, get_peft_model
from peft.utils.other import fsdp_auto_wrap_policy
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp.wrap import transformer_auto_wrap_policy
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_iter
from torch.utils.checkpoint import checkpoint
from transformers import AutoConfig, AutoModelForCausalLM
from transformers.models.llama.modeling_llama import LlamaDecoderLayer

TOKENS, STEPS = 3, 4
PHASES = ("forward", "backward", "step")
HALF = torch.bfloat16


def storages(values: Any) -> dict[int, torch.UntypedStorage]:
    """By address: tensors that share a storage count once; of a distributed tensor, what is here."""
    tensors = [getattr(x, "_local_tensor", x) for x in tree_iter(values) if isinstance(x, torch.Tensor)]
    return {tensor.untyped_storage()._cdata: tensor.untyped_storage() for tensor in tensors}


def bytes_of(*values: Any) -> int:
    return sum(storage.nbytes() for storage in storages(values).values())


class Live(TorchDispatchMode):
    """All storages that operations made, which FSDP resizes under way; the most bytes of them that were there at once."""

    def __init__(self) -> None:
        super().__init__()
        self.made: dict[int, Any] = {}
        self.peak = self.layers_peak = 0
        self.sizes: list[int] = []
        self.groups: list[Any] = []
        self.follows_layers = False
        """Whether what is gathered of layers is looked at, too, which takes most of the time."""

    def __torch_dispatch__(self, operation: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = operation(*args, **(kwargs or {}))
        for address, storage in storages(result).items():
            self.made[address] = weakref.ref(storage)
        self.look()
        return result

    def look(self) -> None:
        self.sizes = [storage.nbytes() for made in self.made.values() if (storage := made()) is not None]
        if len(self.made) > 2 * len(self.sizes):
            self.made = {address: made for address, made in self.made.items() if made() is not None}
        self.peak = max(self.peak, sum(self.sizes))
        if self.follows_layers:
            self.layers_peak = max(self.layers_peak, self.gathered(self.groups[1:]))

    def gathered(self, groups: list[Any]) -> int:
        """Whole parameters of FSDP2's groups, of which the root's is the first, and what they are copied from."""
        whole = [one for group in groups for parameter in group.fsdp_params for one in parameter.all_gather_outputs]
        results = [group._all_gather_result for group in groups]
        kept = [getattr(group.comm_ctx, "all_gather_state", None) for group in groups]
        results += [state and state.all_gather_result for state in kept]
        whole += [result.all_gather_output for result in results if result]
        found = [tensor.untyped_storage() for tensor in whole if tensor is not None]
        return sum({storage._cdata: storage.nbytes() for storage in found}.values())

    def restart(self) -> None:
        self.peak = self.layers_peak = 0
        self.look()


def built(case: dict[str, Any], folder: Path) -> Any:
    """The model as it is before it is sharded."""
    config = AutoConfig.from_pretrained(folder, tie_word_embeddings=case["tied"], vocab_size=case["vocabulary"])
    model = AutoModelForCausalLM.from_config(config, dtype=HALF)
    model.config.use_cache = False
    if case["checkpoints"] in {"reentrant", "not reentrant"}:
        reentrant = case["checkpoints"] == "reentrant"
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": reentrant})
    if case["rank"]:
        model.enable_input_require_grads()
        model = get_peft_model(model, LoraConfig(r=case["rank"], target_modules="all-linear", task_type="CAUSAL_LM"))
    if case["kernels"]:
        with_kernels(model)
    return model


def with_kernels(model: Any) -> None:
    """axolotl's fused LoRA kernels, in plain operations where they are Triton's."""
    from tests.oracles import axolotl_kernels

    axolotl_kernels.lora.swiglu_forward = lambda gate, up: torch.nn.functional.silu(gate) * up
    axolotl_kernels.lora.swiglu_backward = lambda gradient, gate, up: (gradient, gate, up)
    axolotl_kernels.fused(model)


def prepared(model: Any, case: dict[str, Any], mesh: Any) -> Any:
    """The model, sharded."""
    if case["version"] == 1:
        model.float() if not case["rank"] else None
        layers = functools.partial(transformer_auto_wrap_policy, transformer_layer_cls={LlamaDecoderLayer})
        sharded = fsdp.FullyShardedDataParallel(
            model,
            auto_wrap_policy=fsdp_auto_wrap_policy(model) if case["rank"] else layers,
            mixed_precision=fsdp.MixedPrecision(param_dtype=HALF, reduce_dtype=HALF, buffer_dtype=HALF),
            device_id=torch.device("cpu"),
            use_orig_params=True,
            backward_prefetch=None,
        )
        if case["checkpoints"] == "around":
            checkpoint_around(unit for unit in sharded.modules() if isinstance(unit, fsdp.FullyShardedDataParallel))
        return sharded
    plugin = FullyShardedDataParallelPlugin(
        fsdp_version=2,
        auto_wrap_policy="TRANSFORMER_BASED_WRAP",
        reshard_after_forward=case["reshards"],
        state_dict_type="SHARDED_STATE_DICT",
        activation_checkpointing=case["checkpoints"] == "fsdp",
    )
    plugin.set_mixed_precision("bf16")
    state = SimpleNamespace(fsdp_plugin=plugin, device_mesh=None)
    whole = fsdp.fully_shard
    # Without a mesh, FSDP2 would look for a GPU.
    fsdp.fully_shard = lambda module, **given: whole(module, **{**given, "mesh": mesh})
    try:
        return fsdp2_prepare_model(SimpleNamespace(state=state, is_main_process=True), model)
    finally:
        fsdp.fully_shard = whole


class Checkpointed(fsdp.FullyShardedDataParallel):
    """A unit inside a reentrant checkpoint, as transformers had it before 4.53."""

    def __call__(self, hidden: Any, **given: Any) -> Any:
        return checkpoint(functools.partial(super().__call__, **given), hidden, use_reentrant=True)


def checkpoint_around(units: Iterable[Any]) -> None:
    for unit in units:
        if isinstance(unit.module, LlamaDecoderLayer):
            unit.__class__ = Checkpointed


def without_reduction(model: Any, version: int) -> contextlib.AbstractContextManager[None]:
    """As accelerate's ``no_sync`` (accelerator.py:1164@1.13.0)."""

    @contextlib.contextmanager
    def unset() -> Iterator[None]:
        model.set_requires_gradient_sync(False)
        yield
        model.set_requires_gradient_sync(True)

    return model.no_sync() if version == 1 else unset()


def measured(case: dict[str, Any], folder: Path, mesh: Any) -> dict[str, Any]:
    """The bytes of one run."""
    torch.manual_seed(0)
    answer: dict[str, Any] = {}
    live = Live()
    with live:
        model = built(case, folder)
        gc.collect()
        live.restart()
        model = prepared(model, case, mesh).train()
        answer["load"] = live.peak
        gc.collect()
        if case["version"] == 2:
            states = [module._get_fsdp_state() for module in model.modules() if isinstance(module, fsdp.FSDPModule)]
            live.groups = [group for state in states for group in state._fsdp_param_groups]
        head = next(module for name, module in model.named_modules() if name.rpartition(".")[2] == "lm_head")
        head.register_forward_hook(lambda *_: answer.update({"gathered at head": live.gathered(live.groups)}))
        trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
        adam = torch.optim.AdamW(trained, lr=1e-3, foreach=True)
        step(model, adam, case, live)  # makes the moments
        steps = [step(model, adam, case, live, follows_layers=left == 1) for left in reversed(range(1, STEPS))]
        # A thread of gloo's may hold a tensor for a moment after it was sent: the least of the steps is without.
        answer |= steps[-1] | {phase: min(step[phase] for step in steps) for phase in PHASES}
        answer["weights"] = bytes_of([parameter.data for parameter in model.parameters()])
        answer["moments"] = bytes_of([[v for v in state.values() if v.dim()] for state in adam.state.values()])
    return answer


def step(model: Any, adam: Any, case: dict[str, Any], live: Live, follows_layers: bool = False) -> dict[str, Any]:
    """One optimizer step: peaks by phase, gradients after each micro-step, what was gathered of layers in backward."""
    answer: dict[str, Any] = {"gradients": [], "forward": 0, "backward": 0}
    for left in reversed(range(case["accumulation"])):
        tokens = torch.randint(0, 500, (1, TOKENS))
        with without_reduction(model, case["version"]) if left else contextlib.nullcontext():
            live.restart()
            with torch.autocast("cpu", HALF):
                loss = model(input_ids=tokens, labels=tokens).loss
            answer["forward"] = max(answer["forward"], live.peak)
            live.follows_layers = follows_layers
            live.restart()
            loss.backward()
            live.follows_layers = False
            answer["like layer inputs"] = live.sizes.count(TOKENS * model.config.hidden_size * HALF.itemsize)
            answer["backward"] = max(answer["backward"], live.peak)
            answer["gathered layers"] = live.layers_peak
        del loss
        answer["gradients"].append(bytes_of(list(gradients(model, live))))
    live.restart()
    adam.step()
    answer["step"] = live.peak
    adam.zero_grad()
    return answer


def gradients(model: Any, live: Live) -> Iterator[Any]:
    """Shards, and what is still whole."""
    yield [parameter.grad for parameter in model.parameters()]
    for group in live.groups:
        for parameter in group.fsdp_params:
            yield [parameter._unsharded_param.grad, parameter.unsharded_accumulated_grad]


def main(folder: Path, meeting: Path) -> None:
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=world)
    mesh = init_device_mesh("cpu", (world,))
    cases = json.loads((folder / "cases.json").read_text())
    answers = {case["name"]: measured(case, folder, mesh) for case in cases}
    (folder / f"{rank}.json").write_text(json.dumps(answers))
    dist.barrier()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
