# pyright: basic
"""Loading under ZeRO-3: which checkpoints transformers stacks, and what of them is memory of the process."""

import gc
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
pytest.importorskip("deepspeed")

from transformers.conversion_mapping import get_checkpoint_conversion_mapping  # noqa: E402
from transformers.core_model_loading import MergeModulelist, WeightConverter  # noqa: E402
from transformers.integrations.deepspeed import _apply_weight_conversions_to_state_dict  # noqa: E402
from transformers.modeling_utils import load_state_dict  # noqa: E402

from advisor.memory.host import host_terms  # noqa: E402
from advisor.memory.host_loading import CAST, MERGED, MERGED_ONCE, ZEROS  # noqa: E402
from advisor.memory.weights import weights_of  # noqa: E402
from advisor.models.family import families  # noqa: E402
from advisor.opening import open_configs  # noqa: E402

pytestmark = pytest.mark.oracle

PUBLISHED_STACKED = {"qwen3_5_moe_text"}
"""Their mapping has the converter as well, for older checkpoints."""
MOE = {
    "hidden_size": 1024,
    "num_hidden_layers": 2,
    "num_experts": 16,
    "moe_intermediate_size": 1536,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "vocab_size": 64,
}
DENSE = {
    "hidden_size": 1024,
    "num_hidden_layers": 2,
    "intermediate_size": 16384,
    "num_attention_heads": 8,
    "vocab_size": 64,
}


def merges(model_type: str) -> bool:
    converters = [c for c in get_checkpoint_conversion_mapping(model_type) or [] if isinstance(c, WeightConverter)]
    return any(isinstance(one, MergeModulelist) for c in converters for one in c.operations)


def test_rows_say_which_checkpoints_are_stacked_while_they_load():
    counted = {name: row for name, row in families().items() if row.layout is not None}
    found = {name for name in counted if merges(name)} - PUBLISHED_STACKED
    assert {name for name, row in counted.items() if row.merges_experts} == found


def in_memory(tensors) -> int:
    """Bytes of tensors that no checkpoint's file backs: memory of this process."""
    maps = [line.split() for line in Path("/proc/self/maps").read_text().splitlines()]
    files = [[int(end, 16) for end in row[0].split("-")] for row in maps if row[-1].endswith(".safetensors")]
    return sum(each.nbytes for each in tensors if not any(low <= each.data_ptr() < high for low, high in files))


def stored(config, folder: Path):
    """The files of a checkpoint, and its model on meta."""
    transformers.AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16).save_pretrained(folder)
    gc.collect()
    with torch.device("meta"):
        return sorted(folder.glob("*.safetensors")), transformers.AutoModelForCausalLM.from_config(config)


def test_files_are_mapped_and_stacks_are_memory_of_each_process(tmp_path):
    files, model = stored(transformers.Qwen3MoeConfig(**MOE), tmp_path)
    read = {name: tensor for file in files for name, tensor in load_state_dict(file).items()}
    assert read and in_memory(read.values()) == 0
    made = _apply_weight_conversions_to_state_dict(model, dict(read), get_checkpoint_conversion_mapping("qwen3_moe"))
    stacked = sum(tensor.nbytes for name, tensor in made.items() if "experts" in name)
    assert in_memory(made.values()) == stacked
    zero = {"zero_optimization": {"stage": 3}, "bf16": {"enabled": True}}
    run = open_configs({"base_model": str(tmp_path), "bf16": True, "deepspeed": zero}, gpus="2x h100-80gb").run
    (term,) = host_terms(run, run.model, weights_of(run, run.model))
    assert (term.name, term.bytes) == (MERGED, 2 * stacked)


def test_a_dense_checkpoint_stays_in_its_files(tmp_path):
    files, _ = stored(transformers.LlamaConfig(**DENSE), tmp_path)
    read = {name: tensor for file in files for name, tensor in load_state_dict(file).items()}
    assert read and in_memory(read.values()) == 0
    assert get_checkpoint_conversion_mapping("llama") is None


@pytest.fixture
def processes():
    """A group of one process, which transformers takes for a rank of several."""
    torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
    yield
    torch.distributed.destroy_process_group()


def loaded_by(rank: int, folder: Path, monkeypatch) -> int:
    """Bytes that FSDP2's efficient loading leaves in the memory of a rank: axolotl/loaders/model.py:995-1004@0.19.0."""
    monkeypatch.setenv("ACCELERATE_USE_FSDP", "true")
    monkeypatch.setenv("FSDP_CPU_RAM_EFFICIENT_LOADING", "true")
    monkeypatch.setenv("LOCAL_RANK", str(rank))
    place = "cpu" if rank == 0 else "meta"
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, device_map=place, dtype=torch.bfloat16)
    return in_memory(each for each in model.parameters() if not each.is_meta)


def host_under_fsdp(folder: Path, **keys: object) -> dict[str, int]:
    """What the advisor counts of three processes."""
    fsdp = {"cpu_ram_efficient_loading": True, "auto_wrap_policy": "TRANSFORMER_BASED_WRAP"}
    config = {"base_model": str(folder), "bf16": True, "fsdp_version": 2, "fsdp_config": fsdp, **keys}
    run = open_configs(config, gpus="3x h100-80gb").run
    return {term.name: term.bytes for term in host_terms(run, run.model, weights_of(run, run.model))}


LORA = {"adapter": "lora", "lora_r": 8, "lora_alpha": 16, "lora_target_modules": ["q_proj"]}


@pytest.mark.parametrize("config", [transformers.Qwen3MoeConfig(**MOE), transformers.LlamaConfig(**DENSE)])
def test_fsdp_loads_in_one_process_and_fills_zeros_in_the_others(tmp_path, monkeypatch, processes, config):
    stored(config, tmp_path)
    first, other = (loaded_by(rank, tmp_path, monkeypatch) for rank in (0, 1))
    expected = {MERGED_ONCE: first, ZEROS: 2 * other}
    assert host_under_fsdp(tmp_path) == {name: size for name, size in expected.items() if size}


def test_with_an_adapter_axolotl_leaves_the_others_on_meta(tmp_path, monkeypatch, processes):
    modules = pytest.importorskip("axolotl.monkeypatch.accelerate.fsdp2")
    kept = transformers.PreTrainedModel._move_missing_keys_from_meta_to_device
    monkeypatch.setattr(transformers.PreTrainedModel, "_move_missing_keys_from_meta_to_device", kept)
    modules.patch_move_missing_keys_meta_for_fsdp()
    stored(transformers.Qwen3MoeConfig(**MOE), tmp_path)
    assert loaded_by(1, tmp_path, monkeypatch) == 0
    assert host_under_fsdp(tmp_path, **LORA) == {MERGED_ONCE: loaded_by(0, tmp_path, monkeypatch)}


def test_another_dtype_than_the_files_is_memory_of_the_process(tmp_path, monkeypatch, processes):
    stored(transformers.LlamaConfig(**DENSE), tmp_path)
    model = transformers.AutoModelForCausalLM.from_pretrained(tmp_path, device_map="cpu", dtype=torch.float32)
    made = in_memory(model.parameters())
    assert made == sum(each.nbytes for each in model.parameters())
    fsdp = {"fsdp_version": 2, "fsdp_config": {"cpu_ram_efficient_loading": False}}
    config = {"base_model": str(tmp_path), "bf16": False, "fp16": False, **fsdp}
    run = open_configs(config, gpus="2x h100-80gb").run
    assert {term.name: term.bytes for term in host_terms(run, run.model, weights_of(run, run.model))} == {
        CAST: 2 * made
    }
