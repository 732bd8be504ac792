"""Long rows through the MLP in tiles."""

from advisor import Example, Rule, Run, RunEdits, but
from advisor.memory.activations.lora_kernels import MLP

LONG = 16384
"""Tokens of a row from which on its intermediates are worth a second forward."""
TILE = 4096
"""Tokens of a tile: of it the MLP holds what it would of a short row, and its products still fill a GPU."""
PACKAGE = "pip install deepspeed"
"""What axolotl imports for it whatever shards the run (monkeypatch/tiled_mlp/patch.py:45@0.19.0)."""


def applies(run: Run) -> bool:
    """Whether rows are long, and tiles train what the whole row does.

    Under DDP torch stops at the second tile's gradients, and under FSDP2 axolotl frees a layer's weights before
    attention needs them. Dropout would draw another mask as a tile is computed again.
    """
    if run.sequence_len < LONG or run.tiled_mlp_shards is not None or not all_llamas(run):
        return False
    alone = run.sharding is None and run.world_size == 1
    dropped = run.lora is not None and run.lora.dropout > 0
    compiled = run.torch_compile or run.float8 is not None or run.fake_quantization is not None
    return (run.zero is not None or alone) and not dropped and not compiled and run.rl is None


def all_llamas(run: Run) -> bool:
    """Whether the MLPs are of the class that axolotl finds by the model's type, in a module of that name.

    That of a model's text half is in the module of the whole.
    """
    if run.model is None or run.model.towers or run.model.model_type.endswith("_text"):
        return False
    return all(
        block.mlp is not None
        and not block.mlp.experts
        and {linear.name for linear in block.linears if linear.kind == "mlp"} == MLP
        for block in run.model.blocks
    )


def edits(run: Run) -> RunEdits:
    """Tiles of 4k tokens: axolotl's own are of 32k. Without DeepSpeed a micro batch is one row."""
    made: dict[str, object] = {"tiled_mlp_shards": -(-run.sequence_len // TILE)}
    if run.lora is not None and "mlp" in run.lora.kernels:
        made["lora_kernels"] = run.lora.kernels - {"mlp"}
    if run.zero is None and run.micro_batch_size > 1:
        made |= {
            "micro_batch_size": 1,
            "gradient_accumulation_steps": run.micro_batch_size * run.gradient_accumulation_steps,
        }
    return made


def label(before: Run, after: Run) -> str:
    """How many tiles, and that it needs a package."""
    needs = " (needs a package)" if requires(before, after) else ""
    return f"MLP in {after.tiled_mlp_shards} tiles{needs}"


def requires(before: Run, _after: Run) -> tuple[str, ...]:
    """DeepSpeed, unless the run has it anyway."""
    return () if before.zero is not None else (PACKAGE,)


rule = Rule(
    id="tiled-mlp",
    stage="fit",
    title="Pass long rows through the MLP in tiles",
    label=label,
    when=applies,
    edits=edits,
    why="""
        A layer's MLP is several times as wide as its input. In tiles of 4k tokens only one tile's intermediates exist
        at a time, forward and backward; the input is kept, and each tile is computed again in backward. Attention and
        logits are as they were.
    """,
    cost=(
        "The MLP's forward runs once more in backward, also where checkpoints recompute it already, and axolotl needs "
        "the package `deepspeed` for it. Its own kernel for the MLP's adapters is off."
    ),
    because="Only one tile's intermediates of the MLP exist at a time.",
    price="The MLP's forward runs once more in backward.",
    requires=requires,
    safe=True,
    source=(
        "https://arxiv.org/abs/2506.13996; axolotl/monkeypatch/tiled_mlp/base.py:190-335@0.19.0; "
        "axolotl/monkeypatch/tiled_mlp/patch.py:45-120@0.19.0"
    ),
    examples=lambda: (
        Example(
            gpus="1x h100-80gb",
            before="""
                base_model: meta-llama/Llama-3.1-8B
                adapter: qlora
                load_in_4bit: true
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
                plugins: [axolotl.integrations.liger.LigerPlugin]
                liger_fused_linear_cross_entropy: true
                liger_glu_activation: true
                sequence_len: 131072
                micro_batch_size: 2
                gradient_accumulation_steps: 1
                gradient_checkpointing: true
                attn_implementation: flash_attention_2
            """,
            after="""
                base_model: meta-llama/Llama-3.1-8B
                adapter: qlora
                lora_o_kernel: true
                lora_qkv_kernel: true
                lora_mlp_kernel: false
                load_in_4bit: true
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
                plugins: [axolotl.integrations.liger.LigerPlugin]
                liger_fused_linear_cross_entropy: true
                liger_glu_activation: true
                sequence_len: 131072
                tiled_mlp: true
                tiled_mlp_num_shards: 32
                tiled_mlp_use_original_mlp: true
                micro_batch_size: 1
                gradient_accumulation_steps: 2
                gradient_checkpointing: true
                attn_implementation: flash_attention_2
            """,
            memory="116.0 -> 57.7 GiB",
        ),
        but("sequence_len: 8192"),
        but("tiled_mlp: true"),
        but("lora_dropout: 0.1"),
        but("torch_compile: true"),
        but("rl: dpo"),
        but(gpus="8x h100-80gb"),
        but("fsdp_version: 2", "fsdp_config:\n  auto_wrap_policy: TRANSFORMER_BASED_WRAP"),
        but("base_model: Qwen/Qwen2-VL-7B-Instruct"),
        but("base_model: nobody/knows-this"),
        but("base_model: mistralai/Mixtral-8x7B-v0.1"),
        but("base_model: openai-community/gpt2"),
        but("base_model: google/gemma-3-1b-it"),
        Example(
            gpus="8x h100-80gb",
            deepspeed='{"zero_optimization": {"stage": 3}, "bf16": {"enabled": true}}',
            before="""
                base_model: Qwen/Qwen2.5-7B
                deepspeed: zero.json
                plugins: [axolotl.integrations.liger.LigerPlugin]
                liger_fused_linear_cross_entropy: true
                sequence_len: 65536
                micro_batch_size: 2
                gradient_accumulation_steps: 1
                gradient_checkpointing: true
                attn_implementation: flash_attention_2
            """,
            after="""
                base_model: Qwen/Qwen2.5-7B
                deepspeed: zero.json
                plugins: [axolotl.integrations.liger.LigerPlugin]
                liger_fused_linear_cross_entropy: true
                sequence_len: 65536
                tiled_mlp: true
                tiled_mlp_num_shards: 16
                micro_batch_size: 2
                gradient_accumulation_steps: 1
                gradient_checkpointing: true
                attn_implementation: flash_attention_2
            """,
            memory="82.1 -> 61.3 GiB",
        ),
        but("fp8: true"),
        but("qat:\n  weight_dtype: int8"),
    ),
)
