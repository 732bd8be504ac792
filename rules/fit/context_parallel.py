"""Long rows cut over several GPUs."""

from advisor import Example, Rule, Run, RunEdits, but
from advisor.run import Fsdp
from advisor.util import divisors

LONG = 16384
"""Tokens of a row from which on its activations are worth a ring."""
PACKAGE = 'pip install "axolotl[ring-flash-attn]"'
"""As axolotl says where it is missing (utils/schemas/validation.py:1851@0.19.0)."""


def applies(run: Run) -> bool:
    """Whether rows are long, and every token of theirs is trained by FlashAttention 2's own kernel.

    Losses over whole rows, DeepSpeed's loader and FSDP1's mesh do not go with it; nor do capped scores, and mixers that
    read a row as one.
    """
    if run.sequence_len < LONG or run.stack.ring_flash_attn is False:
        return False
    alone = run.tensor_ranks == run.context_parallel_size == run.expert_parallel_size == run.dp_replicate_size == 1
    return alone and run.dp_shard_size is None and predicts_tokens(run) and shards_so(run) and all_attend(run)


def predicts_tokens(run: Run) -> bool:
    """Whether the loss is of single tokens, of text."""
    return run.rl is None and run.classifier is None and not run.uses_images


def shards_so(run: Run) -> bool:
    """Whether the mesh may have a dimension for rows: plain data parallelism, or FSDP2."""
    match run.sharding:
        case None:
            return True
        case Fsdp(version=version):
            return version == 2
        case _:
            return False


def all_attend(run: Run) -> bool:
    """Whether every layer is FlashAttention 2's, with whole causal attention."""
    mixers = [block.attention for block in run.model.blocks] if run.model is not None else []
    plain = all(
        mixer is not None and mixer.kind == "softmax" and not mixer.logit_softcap and mixer.window is None
        for mixer in mixers
    )
    return run.attention == "flash" and bool(mixers) and plain


def edits(run: Run) -> list[RunEdits]:
    """As few GPUs a row as can be, then more: without FSDP2 all of them. The rows of a step stay the same."""
    rows = run.micro_batch_size * run.gradient_accumulation_steps
    sizes = divisors(run.world_size)[1:]
    found: list[RunEdits] = []
    for size in sizes if run.fsdp is not None else sizes[-1:]:
        batch = {"micro_batch_size": 1} if run.micro_batch_size > 1 else {}
        shards = {"dp_shard_size": run.world_size // size} if size < run.world_size else {}
        found.append({"context_parallel_size": size} | shards | batch | {"gradient_accumulation_steps": rows * size})
    return found


def label(before: Run, after: Run) -> str:
    """How many GPUs share a row, and that it needs a package."""
    needs = " (needs a package)" if requires(before, after) else ""
    return f"context parallel {after.context_parallel_size}{needs}"


def requires(before: Run, _after: Run) -> tuple[str, ...]:
    """ring-flash-attn, unless it is installed."""
    return () if before.stack.ring_flash_attn else (PACKAGE,)


rule = Rule(
    id="context-parallel",
    stage="fit",
    title="Cut long rows over several GPUs (context parallelism)",
    label=label,
    when=applies,
    edits=edits,
    why="""
        Each GPU of a group has its part of every row, and passes keys and values around: activations, logits and the
        loss are divided by the group. axolotl takes it from ring-flash-attn in place of FlashAttention 2, with FSDP2 or
        over all GPUs. Accumulation makes up for the GPUs that no longer read rows of their own.
    """,
    cost=(
        "Keys and values travel in every layer, and the last GPU of a group has most of the attention to compute. The "
        "loss is normalised on each GPU, so it differs slightly, and a row loses one label for each cut."
    ),
    because="Each GPU has a part of every row.",
    price="Keys and values travel in each layer; losses differ slightly.",
    requires=requires,
    safe=True,
    source=(
        "https://arxiv.org/abs/2310.01889; axolotl/utils/ctx_managers/sequence_parallel.py:99-166@0.19.0; "
        "axolotl/utils/schemas/validation.py:1804-1904@0.19.0"
    ),
    examples=lambda: (
        Example(
            gpus="8x h100-80gb",
            before="""
                base_model: meta-llama/Llama-3.1-8B
                adapter: lora
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
                sequence_len: 262144
                sample_packing: true
                micro_batch_size: 1
                gradient_accumulation_steps: 1
                gradient_checkpointing: true
                attn_implementation: flash_attention_2
            """,
            after="""
                base_model: meta-llama/Llama-3.1-8B
                adapter: lora
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
                sequence_len: 262144
                context_parallel_size: 8
                sample_packing: true
                micro_batch_size: 1
                gradient_accumulation_steps: 8
                gradient_checkpointing: true
                attn_implementation: flash_attention_2
            """,
            memory="459.6 -> 71.4 GiB",
        ),
        but(gpus="8x h100-80gb", stack={"ring_flash_attn": True}, fires=True),
        but("sequence_len: 8192"),
        but(gpus="1x h100-80gb"),
        but(stack={"ring_flash_attn": False}),
        but("context_parallel_size: 8"),
        but("tensor_parallel_size: 8"),
        but("plugins: [axolotl.integrations.expert_parallel.ExpertParallelPlugin]", "expert_parallel_size: 8"),
        but("dp_replicate_size: 8"),
        but("dp_shard_size: 8"),
        but("rl: dpo"),
        but("rl: grpo", "trl:\n  num_generations: 8\n  max_completion_length: 512"),
        but("reward_model: true"),
        but("processor_type: AutoProcessor"),
        but("deepspeed: deepspeed_configs/zero3.json"),
        but("fsdp_version: 1", "fsdp_config:\n  auto_wrap_policy: TRANSFORMER_BASED_WRAP"),
        but("attn_implementation: sdpa"),
        but(without=("attn_implementation",)),
        but("base_model: mistralai/Mistral-7B-v0.1"),
        but("base_model: google/gemma-2-9b"),
        but("base_model: nobody/knows-this"),
        Example(
            gpus="8x h100-80gb",
            before="""
                base_model: Qwen/Qwen2.5-7B
                sequence_len: 65536
                micro_batch_size: 2
                gradient_accumulation_steps: 4
                gradient_checkpointing: true
                attn_implementation: flash_attention_2
                fsdp_version: 2
                fsdp_config:
                  auto_wrap_policy: TRANSFORMER_BASED_WRAP
            """,
            after="""
                base_model: Qwen/Qwen2.5-7B
                sequence_len: 65536
                context_parallel_size: 4
                dp_shard_size: 2
                micro_batch_size: 1
                gradient_accumulation_steps: 32
                gradient_checkpointing: true
                attn_implementation: flash_attention_2
                fsdp_version: 2
                fsdp_config:
                  auto_wrap_policy: TRANSFORMER_BASED_WRAP
            """,
            memory="272.8 -> 53.4 GiB",
        ),
        but("dp_shard_size: 8"),
    ),
)
