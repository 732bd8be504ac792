# pyright: basic
"""Tiled MLPs: what axolotl's function keeps and holds in a trace, and where it trains what the MLP alone does."""

import importlib
from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("peft")
pytest.importorskip("axolotl")

from torch import nn  # noqa: E402
from torch.nn.parallel import DistributedDataParallel  # noqa: E402
from transformers import AutoModelForCausalLM  # noqa: E402

from advisor.memory import activations  # noqa: E402
from advisor.memory.activations.tiled import last_gradient, trained_bytes  # noqa: E402
from advisor.models.family import family_of  # noqa: E402
from advisor.record import replace as changed  # noqa: E402
from advisor.tracing.allocations import Trace, layer_forward_working, layer_saved, layer_working  # noqa: E402

from .axolotl_kernels import loaded_alone  # noqa: E402
from .families import FAMILIES, described, run_of  # noqa: E402
from .tiled_mlp import TiledMLP, tiled  # noqa: E402
from .trace import Setting, trace  # noqa: E402

pytestmark = pytest.mark.oracle

LENGTH, RANK = 2048, 16
ATTENTION = ("q_proj", "v_proj")
SETTINGS = {
    "full": Setting(),
    "full, no autocast": Setting(autocast=False),
    "LoRA, bf16 adapters": Setting(adapter="all-linear", autocast=False, adapter_fp32=False),
    "LoRA on queries and values": Setting(adapter=ATTENTION),
}
NAMES = ("llama", "qwen2", "qwen3", "mistral")


def traced(name: str, setting: Setting) -> Trace:
    """A trace without what is as large as weights: sums of gradients over tiles, and gradients of one tile."""
    result = trace(FAMILIES[name](3), setting, length=LENGTH)
    for storage in result.storages:
        if LENGTH not in storage.shape and not storage.saved and len(storage.shape) == 2:
            storage.gradient |= storage.shape[0] not in {LENGTH // 2, LENGTH // 4, LENGTH // 8}
    return result


def run_in_tiles(model: Any, setting: Setting, shards: int) -> Any:
    return changed(run_of(model, setting, length=LENGTH), tiled_mlp_shards=shards)


def without_sums(run: Any, block: Any) -> set[int]:
    """The peak without what is summed: next to the last tile, or at the norm before the MLP."""
    peak, sums = activations.backward_peak_bytes(run, block), trained_bytes(run, block)
    return {peak - sums, peak - sums + last_gradient(run, block)}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("case", SETTINGS)
@pytest.mark.parametrize("shards", [1, 2, 8])
def test_a_layer_keeps_the_input_of_its_mlp_and_holds_one_tile(name, case, shards):
    setting = replace(SETTINGS[case], prepare=tiled(shards))
    model = described(FAMILIES[name])
    run, block = run_in_tiles(model, setting, shards), model.blocks[0]
    result = traced(name, setting)
    assert activations.saved_bytes(run, block) == layer_saved(result, 1)
    assert layer_working(result, 1) in without_sums(run, block)


@pytest.mark.parametrize("shards", [1, 4])
def test_fp32_adapters_are_computed_again_without_autocast(shards):
    setting = Setting(adapter="all-linear", prepare=tiled(shards))
    model = described(FAMILIES["llama"])
    run, block = run_in_tiles(model, setting, shards), model.blocks[0]
    result = traced("llama", setting)
    assert activations.saved_bytes(run, block) == layer_saved(result, 1)
    assert layer_working(result, 1) in without_sums(run, block)


@pytest.mark.parametrize("checkpointing", ["reentrant", "non-reentrant"])
@pytest.mark.parametrize("shards", [1, 2, 8])
def test_a_layer_that_is_recomputed_holds_one_tile_as_well(checkpointing, shards):
    setting = Setting(checkpointing=checkpointing, prepare=tiled(shards))
    model = described(FAMILIES["llama"])
    run, block = run_in_tiles(model, setting, shards), model.blocks[0]
    held = layer_working(traced("llama", setting), 1) - activations.saved_bytes(run, block)
    rotary = LENGTH * (4 * 32 * 2 + 8)
    assert any(0 <= held - formula <= rotary + 64 for formula in without_sums(run, block))


@pytest.mark.parametrize("shards", [1, 2])
def test_a_forward_without_gradients_holds_one_tile_and_all_outputs(shards):
    setting = Setting(evaluation=True, prepare=tiled(shards))
    model = described(FAMILIES["llama"])
    held = layer_forward_working(trace(FAMILIES["llama"](3), setting, length=LENGTH), 1)
    assert activations.no_grad_peak_bytes(run_in_tiles(model, setting, shards), model.blocks[0]) == held


class Mlp(nn.Module):
    """Two linears."""

    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(8, 16, bias=False), nn.Linear(16, 8, bias=False)

    def forward(self, x: Any) -> Any:
        return self.down(nn.functional.silu(self.up(x)))


def gradients(mlp: nn.Module, rows: int) -> list[Any]:
    """Those of the input and of the weights."""
    torch.manual_seed(0)
    x = torch.randn(rows, 12, 8, requires_grad=True)
    mlp(x).backward(torch.randn(rows, 12, 8))
    return [x.grad, *(one.grad for one in mlp.parameters())]


def in_tiles(function: Any) -> tuple[nn.Module, nn.Module]:
    """An MLP, and the same in tiles."""
    whole = Mlp()
    pieces = deepcopy(whole)
    tiled(3, function)(nn.ModuleDict({"mlp": named(pieces)}))
    return whole, pieces


def named(mlp: nn.Module) -> nn.Module:
    type(mlp).__name__ = "TinyMLP"
    return mlp


@pytest.mark.parametrize("rows", [1, 2])
def test_axolotls_function_trains_the_same_with_one_row_alone(rows):
    whole, pieces = in_tiles(TiledMLP)
    same = [
        torch.allclose(a, b, atol=1e-5) for a, b in zip(gradients(whole, rows), gradients(pieces, rows), strict=False)
    ]
    assert all(same) == (rows == 1)


@pytest.mark.parametrize("rows", [1, 2])
def test_deepspeeds_function_trains_the_same_with_any_rows(rows):
    function = pytest.importorskip("deepspeed.runtime.sequence_parallel.ulysses_sp").TiledMLP
    whole, pieces = in_tiles(function)
    for a, b in zip(gradients(whole, rows), gradients(pieces, rows), strict=False):
        assert torch.allclose(a, b, atol=1e-5)


def test_ddp_stops_at_the_gradients_of_the_second_tile(tmp_path):
    torch.distributed.init_process_group("gloo", init_method=f"file://{tmp_path}/store", rank=0, world_size=1)
    try:
        wrapped = DistributedDataParallel(nn.Sequential(nn.Linear(8, 8), in_tiles(TiledMLP)[1]))
        with pytest.raises(RuntimeError, match="ready only once"):
            wrapped(torch.randn(1, 12, 8)).sum().backward()
    finally:
        torch.distributed.destroy_process_group()


def tiled_families() -> list[str]:
    """The families to which the step may be offered."""
    from rules.fit.tiled_mlp import all_llamas

    found = {name: described(make) for name, make in FAMILIES.items()}
    return [name for name, model in found.items() if all_llamas(run_of(model, Setting()))]


@pytest.mark.parametrize("name", tiled_families())
def test_axolotl_finds_the_class_of_the_mlps_of_every_family_that_is_offered_tiles(name):
    """By the name that it makes of the model type: axolotl/monkeypatch/tiled_mlp/patch.py:185-193@0.19.0."""
    config = FAMILIES[name](1)
    prefix, _ = loaded_alone("axolotl.utils.callbacks", "models").get_causal_lm_model_cls_prefix(config.model_type)
    module = importlib.import_module(f"transformers.models.{config.model_type}.modeling_{config.model_type}")
    patched = getattr(module, f"{prefix}MLP", None) or getattr(module, f"{prefix}TextMLP")
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config)
    mlps = [one for path, one in model.named_modules() if path.endswith(("mlp", "feed_forward"))]
    assert mlps
    assert all(type(one) is patched for one in mlps)
    assert family_of(config.model_type) is not None
