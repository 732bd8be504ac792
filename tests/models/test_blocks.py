"""Blocks tell the activation formulas what a layer does: widths, windows, experts, norms."""

from typing import Literal

import pytest

from advisor.models import Architecture, Block, resolve


def model(name: str) -> Architecture:
    found = resolve(name)
    assert isinstance(found, Architecture), found
    return found


def with_mixer(name: str, kind: str) -> Block:
    return next(block for block in model(name).blocks if block.attention and block.attention.kind == kind)


def test_grouped_queries_have_narrow_keys_and_values() -> None:
    (block,) = model("meta-llama/Llama-3.1-8B").blocks

    assert block.attention is not None and block.mlp is not None
    assert (block.count, block.hidden, block.norms, block.norm) == (32, 4096, 2, "rms")
    assert (block.attention.heads, block.attention.kv_heads, block.attention.head_dim) == (32, 8, 128)
    assert (block.attention.query_width, block.attention.key_width) == (4096, 1024)
    assert (block.mlp.width, block.mlp.gated, block.mlp.experts) == (14336, True, 0)
    assert [linear.name for linear in block.linears] == [
        "q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"
    ]  # fmt: skip
    assert block.linears[-1].n_in == 14336 and block.linears[-1].n_out == 4096


@pytest.mark.parametrize(
    ("name", "windows"),
    [
        ("mistralai/Mistral-7B-v0.1", {4096: 32}),
        ("mistralai/Mistral-7B-v0.3", {None: 32}),
        ("Qwen/Qwen2.5-7B", {None: 28}),
        ("google/gemma-2-9b", {4096: 21, None: 21}),
        ("google/gemma-3-4b-pt", {1024: 29, None: 5}),
        ("CohereLabs/c4ai-command-r7b-12-2024", {4096: 24, None: 8}),
        ("openai/gpt-oss-20b", {128: 12, None: 12}),
        ("meta-llama/Llama-4-Scout-17B-16E", {8192: 36, None: 12}),
        ("EleutherAI/gpt-neo-125m", {256: 6, None: 6}),
        ("allenai/Olmo-3-1025-7B", {4096: 24, None: 8}),
        ("google/gemma-4-E2B", {512: 28, None: 7}),
    ],
)
def test_windows_cover_the_layers_that_slide(name: str, windows: dict[int | None, int]) -> None:
    found: dict[int | None, int] = {}
    for block in model(name).blocks:
        assert block.attention is not None
        found[block.attention.window] = found.get(block.attention.window, 0) + block.count

    assert found == windows


@pytest.mark.parametrize(
    ("name", "experts", "chosen", "width", "shared"),
    [
        ("mistralai/Mixtral-8x7B-v0.1", 8, 2, 14336, 0),
        ("Qwen/Qwen3-30B-A3B", 128, 8, 768, 0),
        ("Qwen/Qwen1.5-MoE-A2.7B", 60, 4, 1408, 5632),
        ("deepseek-ai/DeepSeek-V3", 256, 8, 2048, 2048),
        ("deepseek-ai/DeepSeek-V2-Lite", 64, 6, 1408, 2816),
        ("openai/gpt-oss-120b", 128, 4, 2880, 0),
        ("meta-llama/Llama-4-Maverick-17B-128E", 128, 1, 8192, 8192),
        ("ibm-granite/granite-4.0-h-tiny", 64, 6, 512, 1024),
        ("databricks/dbrx-base", 16, 4, 10752, 0),
        ("google/gemma-4-26B-A4B", 128, 8, 704, 2112),
    ],
)
def test_sparse_layers_name_their_experts(name: str, experts: int, chosen: int, width: int, shared: int) -> None:
    mlp = next(block.mlp for block in model(name).blocks if block.mlp and block.mlp.experts)

    assert (mlp.experts, mlp.experts_per_token, mlp.width, mlp.shared_width) == (
        experts,
        chosen,
        width,
        shared,
    )


def test_leading_layers_are_dense() -> None:
    dense, sparse = model("deepseek-ai/DeepSeek-V3").blocks

    assert dense.mlp is not None and sparse.mlp is not None
    assert (dense.count, dense.mlp.experts, dense.mlp.width) == (3, 0, 18432)
    assert (sparse.count, sparse.mlp.experts) == (58, 256)


@pytest.mark.parametrize(
    ("name", "kind", "layers", "query", "key", "value"),
    [
        ("deepseek-ai/DeepSeek-V3", "latent", 61, 128 * 192, 128 * 192, 128 * 128),
        ("ai21labs/Jamba-v0.1", "ssm", 28, 16, 16, 8192),
        ("nvidia/Nemotron-H-8B-Base-8K", "ssm", 24, 8 * 128, 8 * 128, 8192),
        ("ibm-granite/granite-4.0-h-tiny", "ssm", 36, 128, 128, 3072),
        ("Qwen/Qwen3-Next-80B-A3B-Instruct", "linear", 36, 2048, 2048, 4096),
        ("moonshotai/Kimi-Linear-48B-A3B-Instruct", "linear", 21, 4096, 4096, 4096),
        ("LiquidAI/LFM2-350M", "conv", 10, 1024, 1024, 1024),
        ("state-spaces/mamba-130m-hf", "ssm", 24, 16, 16, 1536),
    ],
)
def test_other_mixers_have_the_widths_of_their_projections(
    name: str, kind: str, layers: int, query: int, key: int, value: int
) -> None:
    attention = with_mixer(name, kind).attention
    assert attention is not None
    blocks = [block for block in model(name).blocks if block.attention and block.attention.kind == kind]

    assert sum(block.count for block in blocks) == layers
    assert (attention.query_width, attention.key_width, attention.value_width) == (query, key, value)


def test_layers_that_only_mix_or_only_feed_forward_say_so() -> None:
    blocks = model("nvidia/Nemotron-H-8B-Base-8K").blocks

    assert {(block.attention is None, block.mlp is None) for block in blocks} == {
        (True, False),
        (False, True),
    }
    assert all(block.norms == 1 for block in blocks)


@pytest.mark.parametrize(
    ("name", "norms", "norm"),
    [
        ("google/gemma-2-2b", 4, "rms"),
        ("CohereLabs/aya-23-8B", 1, "layer"),
        ("allenai/OLMo-1B-hf", 2, "layer"),
        ("tiiuae/falcon-7b", 1, "layer"),
        ("EleutherAI/pythia-1b", 2, "layer"),
        ("microsoft/phi-2", 1, "layer"),
        ("THUDM/GLM-4-9B-0414", 4, "rms"),
    ],
)
def test_norms_are_counted(name: str, norms: int, norm: Literal["rms", "layer"]) -> None:
    (block, *_) = model(name).blocks

    assert (block.norms, block.norm) == (norms, norm)


def test_query_and_key_norms_and_softcap_are_named() -> None:
    attention = {name: model(name).blocks[0].attention for name in ("Qwen/Qwen3-8B", "google/gemma-2-9b")}
    qwen, gemma = attention["Qwen/Qwen3-8B"], attention["google/gemma-2-9b"]

    assert qwen is not None and gemma is not None
    assert qwen.query_key_norm and not qwen.logit_softcap
    assert gemma.logit_softcap and not gemma.query_key_norm


@pytest.mark.parametrize(
    "name", ["openai-community/gpt2", "microsoft/phi-2", "bigcode/starcoder2-3b", "arcee-ai/AFM-4.5B-Base"]
)
def test_plain_mlps_are_not_gated(name: str) -> None:
    (block, *_) = model(name).blocks

    assert block.mlp is not None and not block.mlp.gated


@pytest.mark.parametrize(
    ("name", "supported"),
    [
        ("meta-llama/Llama-3.1-8B", True),
        ("bigscience/bloom-560m", False),
        ("meta-llama/Llama-4-Scout-17B-16E", False),
        ("state-spaces/mamba-130m-hf", False),
    ],
)
def test_flash_attention_support_is_known(name: str, supported: bool) -> None:
    assert model(name).supports_flash_attention is supported
