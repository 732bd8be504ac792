# pyright: basic
"""One layer of each family with experts, gates or a mixer of its own: the formulas against the real modules."""

from contextlib import nullcontext
from dataclasses import replace
from functools import cache
from typing import Any
from unittest import mock

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from advisor.memory import activations, loss  # noqa: E402
from advisor.memory.activations.from_trace import LABELS, facts_of  # noqa: E402
from advisor.models import describe  # noqa: E402
from advisor.models.compared import compared  # noqa: E402
from advisor.tracing import measure  # noqa: E402
from advisor.tracing.measure import measured  # noqa: E402

from .families import FAMILIES, run_of  # noqa: E402
from .test_activations import APPROXIMATE  # noqa: E402
from .trace import Setting, trace  # noqa: E402

pytestmark = pytest.mark.oracle

LENGTH = 4096
HEADS: dict[str, Any] = {
    "hidden_size": 768,
    "num_attention_heads": 12,
    "num_key_value_heads": 4,
    "head_dim": 64,
    "intermediate_size": 2560,
    "num_hidden_layers": 2,
    "vocab_size": 64,
    "pad_token_id": 0,
    "tie_word_embeddings": False,
}
EXPERTS: dict[str, Any] = {"num_experts_per_tok": 2, "moe_intermediate_size": 448}
ROUTED: dict[str, Any] = EXPERTS | {"n_routed_experts": 8, "n_shared_experts": 1, "n_group": 1, "topk_group": 1}
LATENT: dict[str, Any] = {
    "num_key_value_heads": 12,
    "q_lora_rank": 320,
    "kv_lora_rank": 256,
    "qk_nope_head_dim": 64,
    "qk_rope_head_dim": 32,
    "v_head_dim": 80,
    "head_dim": 32,
}
DELTA: dict[str, Any] = {
    "layer_types": ["linear_attention", "full_attention"],
    "linear_num_key_heads": 4,
    "linear_num_value_heads": 8,
    "linear_key_head_dim": 64,
    "linear_value_head_dim": 80,
}
SHARED: dict[str, Any] = EXPERTS | {"num_experts": 8, "shared_expert_intermediate_size": 320}
SECTIONS: dict[str, Any] = {
    "rope_parameters": {
        "rope_type": "default",
        "rope_theta": 1e6,
        "mrope_section": [8, 12, 12],
        "partial_rotary_factor": 1.0,
    }
}
HYBRID: dict[str, Any] = {"layer_types": ["linear_attention", "full_attention"]}
SCAN: dict[str, Any] = {
    "mamba_n_heads": 24,
    "mamba_d_head": 64,
    "mamba_n_groups": 1,
    "mamba_d_state": 64,
    "mamba_d_conv": 4,
    "mamba_expand": 2,
    "mamba_chunk_size": 256,
}
SCANNED: dict[str, Any] = {
    "num_heads": 24,
    "n_groups": 1,
    "state_size": 64,
    "conv_kernel": 4,
    "expand": 2,
    "chunk_size": 128,
}
GEMMA: dict[str, Any] = {
    "sliding_window": 8192,
    "layer_types": ["sliding_attention", "full_attention"],
    "global_head_dim": 128,
    "num_global_key_value_heads": 2,
    "attention_k_eq_v": True,
    "hidden_size_per_layer_input": 0,
    "num_kv_shared_layers": 0,
}
GEMMA_3N: dict[str, Any] = {
    "sliding_window": 8192,
    "layer_types": ["sliding_attention", "full_attention"],
    "hidden_size_per_layer_input": 96,
    "vocab_size_per_layer_input": 64,
    "num_kv_shared_layers": 0,
    "intermediate_size": [2560, 2560],
    "activation_sparsity_pattern": [0.0, 0.0],
}
CONFIGS: dict[str, dict[str, Any]] = {
    "afmoe": EXPERTS | {"num_experts": 8, "num_shared_experts": 1, "num_dense_layers": 1, "sliding_window": 8192},
    "apertus": {},
    "arcee": {},
    "deepseek_v2": ROUTED | LATENT | {"q_lora_rank": None, "first_k_dense_replace": 1, "topk_method": "greedy"},
    "ernie4_5": {},
    "falcon_h1": SCAN | {"mamba_d_ssm": 1536, "mamba_rms_norm": False},
    "falcon_h1 with a norm": SCAN | {"mamba_d_ssm": 1536, "mamba_rms_norm": True},
    "falcon_h1 with a narrow MLP": SCAN
    | {"mamba_d_ssm": 1536, "mamba_rms_norm": False, "intermediate_size": 512, "mamba_d_state": 128},
    "gemma4_text": GEMMA,
    "gemma4_text with experts": GEMMA | EXPERTS | {"enable_moe_block": True, "num_experts": 8, "top_k_experts": 2},
    "gemma4_text with inputs of layers": GEMMA
    | {
        "num_hidden_layers": 8,
        "layer_types": ["sliding_attention", "full_attention"] * 4,
        "hidden_size_per_layer_input": 96,
        "vocab_size_per_layer_input": 64,
        "num_key_value_heads": 2,
        "num_kv_shared_layers": 4,
        "use_double_wide_mlp": True,
        "attention_k_eq_v": False,
    },
    "gemma3n_text": GEMMA_3N,
    "gemma3n_text with thresholds": GEMMA_3N | {"activation_sparsity_pattern": [0.95, 0.0]},
    "gemma4_unified_text": GEMMA,
    "glm4v_text": SECTIONS,
    "glm4_moe": ROUTED | {"first_k_dense_replace": 1},
    "glm4_moe_lite": ROUTED | LATENT | {"v_head_dim": 96, "mlp_layer_types": ["dense", "sparse"]},
    "granitemoehybrid": SCAN
    | HYBRID
    | {
        "num_local_experts": 8,
        "num_experts_per_tok": 2,
        "intermediate_size": 448,
        "shared_intermediate_size": 320,
    },
    "granitemoehybrid without experts": SCAN
    | HYBRID
    | {"num_local_experts": 0, "num_experts_per_tok": 0, "shared_intermediate_size": 1280, "mamba_d_state": 128},
    "helium": {},
    "jamba": {
        "num_hidden_layers": 4,
        "num_experts": 8,
        "num_experts_per_tok": 2,
        "mamba_d_state": 16,
        "mamba_d_conv": 4,
        "mamba_expand": 2,
        "mamba_dt_rank": 48,
        "attn_layer_period": 2,
        "attn_layer_offset": 1,
        "expert_layer_period": 2,
        "expert_layer_offset": 1,
    },
    "lfm2": {"layer_types": ["conv", "full_attention"], "block_auto_adjust_ff_dim": False},
    "lfm2_moe": EXPERTS | {"layer_types": ["conv", "full_attention"], "num_experts": 8, "num_dense_layers": 1},
    "llama4_text": {
        "num_local_experts": 4,
        "num_experts_per_tok": 1,
        "intermediate_size": 1280,
        "intermediate_size_mlp": 2560,
        "moe_layers": [1],
        "attention_chunk_size": 8192,
    },
    "mamba2": SCANNED | {"head_dim": 64, "residual_in_fp32": False},
    "mamba2 with an fp32 stream": SCANNED | {"head_dim": 64, "n_groups": 4},
    "minimax_m2": {"num_local_experts": 8, "num_experts_per_tok": 2, "intermediate_size": 448},
    "ministral3": {},
    "mistral4": ROUTED
    | LATENT
    | {
        "first_k_dense_replace": 1,
        "rope_parameters": {
            "rope_theta": 1e6,
            "rope_type": "default",
            "partial_rotary_factor": 1.0,
            "llama_4_scaling_beta": 0.1,
            "original_max_position_embeddings": 8192,
        },
    },
    "mpt": {
        "d_model": 768,
        "n_heads": 12,
        "n_layers": 2,
        "max_seq_len": 8192,
        "num_key_value_heads": 12,
        "intermediate_size": 3072,
    },
    "nemotron_h": ROUTED
    | SCANNED
    | {
        "layer_types": ["linear_attention", "full_attention", "moe", "mlp"],
        "num_hidden_layers": 4,
        "mamba_num_heads": 24,
        "mamba_head_dim": 64,
        "ssm_state_size": 64,
        "n_groups": 4,
        "moe_shared_expert_intermediate_size": 320,
    },
    "olmoe": {"num_experts": 8, "num_experts_per_tok": 2, "intermediate_size": 448},
    "paddleocr_vl_text": SECTIONS,
    "qwen2_vl_text": SECTIONS,
    "qwen2_5_vl_text": SECTIONS,
    "qwen3_5_moe_text": SHARED | DELTA,
    "qwen3_5_text": DELTA,
    "qwen3_next": SHARED | DELTA | {"decoder_sparse_step": 1},
}
FULL = Setting(attention="flash")
ADAPTED = (
    *("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"),
    *("in_proj", "x_proj", "input_linear", "output_linear"),
)
LORA = Setting(attention="flash", adapter=ADAPTED)
SETTINGS = {
    "full": FULL,
    "LoRA": LORA,
    "LoRA, dropout": replace(LORA, dropout=0.1),
    "QLoRA": replace(LORA, casts_inputs=False),
}
WIDER: dict[tuple[str, str], float] = {
    ("nemotron_h", "LoRA, dropout"): 0.025,
    ("gemma4_text with experts", "LoRA"): 0.025,
    ("gemma4_text with experts", "LoRA, dropout"): 0.025,
    ("gemma4_text with experts", "QLoRA"): 0.025,
    ("gemma4_text with inputs of layers", "QLoRA"): 0.025,
}
"""Where a formula is further off than two hundredths: gradients of shared keys wait for the two layers that made them."""
WHOLE = {"gemma4_text with inputs of layers"}
"""All layers are traced, since gradients of what they share wait from one to the other."""
ELSEWHERE = {"gptj"}
"""What a module of its own compares."""
UNCOMPARED = {
    "dbrx": "its loop over experts reads which of them are chosen, which tensors without values do not say",
    "deepseek_v4": "hyper-connections and compressed keys have no formula: `--trace` measures them",
    "glm_moe_dsa": "its sparse mask has no formula: `--trace` measures it",
    "mllama_text_model": "its cross attention does not run without an image",
}
"""Families whose layers no test compares, and why."""


@cache
def traced(name: str, setting: str, whole: bool = False) -> tuple[Any, Any, Any]:
    """A run of the family, its model by the table, and as it was traced."""
    model_type, values = name.split()[0], {**HEADS, **CONFIGS[name]}
    # Of Gemma 4's layers transformers writes each one's own widths down, which no published config does.
    if model_type in BEHIND_TOWERS:
        made = transformers.CONFIG_MAPPING[model_type.removesuffix("_text")](text_config=values, vision_config=TOWER)
        config = made.to_dict()
    else:
        written = values if "gemma4" in name else transformers.AutoConfig.for_model(model_type, **values).to_dict()
        config = written | {"model_type": model_type}
    table = describe(config, name, "test")
    flash = table.family.flash_attention or model_type in TRACED_WITH_FLASH
    chosen = SETTINGS[setting] if flash else replace(SETTINGS[setting], attention="eager")
    run = run_of(table, chosen, length=LENGTH)
    with mock.patch.object(measure, "outputs", side_effect=ValueError) if whole else nullcontext():
        found = measured(config, facts_of(run, ()), ())
    return run, table, found


TOWER = {
    **dict.fromkeys(("depth", "num_hidden_layers"), 1),
    **dict.fromkeys(("num_heads", "num_attention_heads"), 2),
    **dict.fromkeys(("hidden_size", "embed_dim", "out_hidden_size", "intermediate_size"), 64),
}
BEHIND_TOWERS = {"glm4v_text", "paddleocr_vl_text", "qwen2_5_vl_text", "qwen2_vl_text"}
"""Decoders that are a part of a model with a tower, and have no class of their own for a causal language model."""
TRACED_WITH_FLASH = {"llama4_text"}
"""Not for training, but their layers run with it; their eager masks are chunked, which the formulas do not follow."""


WIDENED = "mamba2 with an fp32 stream"
"""Each layer returns fp32, but the first, which is traced, gets what the embedding gave."""
HANDED_ON = {"apertus", "arcee", "gemma3n_text", "gemma3n_text with thresholds", "mpt", "nemotron_h"}
"""4-bit layers hand on the fp32 of norms, squares, exponentials or streams; the plain layers of a trace do not.

See test_four_bit, and the recordings of Apertus in tests/allocations.
"""


def pairs(blocks: Any, found: Any) -> list[tuple[Any, Any]]:
    """Each traced kind of layer with the table's; a trace has those apart whose keys and values later layers share."""
    by_size = {one.parameters: one for one in blocks}
    known = list(blocks) if len(blocks) == len(found) else [by_size[one.parameters] for one in found]
    assert [one.parameters for one in known] == [one.parameters for one in found]
    for block in blocks:
        assert block.count == sum(b.count for a, b in zip(known, found, strict=True) if a is block)
    return list(zip(known, found, strict=True))


@pytest.mark.parametrize(
    ("name", "setting"),
    [(name, setting) for name in CONFIGS for setting in SETTINGS if setting != "QLoRA" or name not in HANDED_ON],
)
def test_a_layer_keeps_and_holds_what_its_trace_does(name: str, setting: str):
    run, model, found = traced(name, setting, name in WHOLE)
    for block, other in pairs(model.blocks, found.blocks):
        (trace,) = other.traces
        saved, working = trace.saved.at(LENGTH, LENGTH), trace.working.most(LENGTH, LENGTH)
        kept, held = activations.saved_bytes(run, block), activations.backward_peak_bytes(run, block)
        if name != WIDENED:
            assert activations.checkpoint_bytes(run, block) == trace.entered.at(LENGTH, LENGTH)
        within = WIDER.get((name, setting), 0.02)
        assert kept == pytest.approx(saved, rel=min(within, 0.025)), activations.saved_formula(run, block)
        # Every peak has both: with checkpointing those of one layer, without it all layers' and this.
        assert kept + held == pytest.approx(saved + working, rel=within)


OUTSIDE = {"gemma4_text": 0.002, "gemma4_text with inputs of layers": 0.002, "gemma3n_text": 0.02}
"""Within which share; of Gemma 3n the trace has no tables of positions."""


@pytest.mark.parametrize("setting", ["full", "LoRA"])
@pytest.mark.parametrize("name", OUTSIDE)
def test_what_is_kept_outside_of_layers_has_embeddings_of_layers(name: str, setting: str):
    run, model, found = traced(name, setting)
    ((_, outside),) = found.trace.outside
    kept = activations.head_saved_bytes(run, model) - LABELS * LENGTH
    assert kept == pytest.approx(outside.at(LENGTH, LENGTH), rel=OUTSIDE[name])


@pytest.mark.parametrize("adapter", [None, ADAPTED], ids=["full", "LoRA"])
def test_checkpoints_hold_embeddings_of_layers_and_shared_keys(adapter: Any):
    name = "gemma4_text with inputs of layers"
    values = {**HEADS, **CONFIGS[name]}
    setting = Setting(adapter=adapter, checkpointing="non-reentrant")
    model = describe(values | {"model_type": "gemma4_text"}, name, "test")
    run = run_of(model, setting, length=1024)
    result = trace(transformers.Gemma4TextConfig(**values), setting, length=1024)
    inputs = sum(block.count * activations.checkpoint_bytes(run, block) for block in model.blocks)
    outside = activations.head_saved_bytes(run, model) + loss.loss_saved_bytes(run, model)
    assert inputs + outside == pytest.approx(result.live(result.marks["forward done"]), rel=0.02)


def test_the_list_of_compared_families_is_that_of_the_oracles():
    types = {make(3).model_type for name, make in FAMILIES.items() if name not in APPROXIMATE}
    assert compared() == types | {name.split()[0] for name in CONFIGS} | ELSEWHERE
    assert not compared() & UNCOMPARED.keys()
