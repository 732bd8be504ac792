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

from advisor.memory.host import MERGED, host_terms  # noqa: E402
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
