"""A bitsandbytes optimizer under FSDP2."""

from collections.abc import Iterator

from advisor import Example, Hit, Rule, Run, Set, but, only
from advisor.memory import estimate
from advisor.record import replace

REFUSED = frozenset(["adamw_8bit", "adamw_bnb_8bit"])
FAILS_LATER = frozenset(
    [
        "paged_adamw_8bit",
        "paged_adamw_32bit",
        "lion_8bit",
        "lion_32bit",
        "paged_lion_8bit",
        "paged_lion_32bit",
        "ademamix",
        "ademamix_8bit",
        "paged_ademamix_8bit",
        "paged_ademamix_32bit",
        "rmsprop_bnb",
        "rmsprop_bnb_8bit",
        "rmsprop_bnb_32bit",
    ]
)
WHOLE = "adamw_torch_fused"
INSTEAD = {
    "adamw_8bit": "adamw_torch_8bit",
    "adamw_bnb_8bit": "adamw_torch_8bit",
    "paged_adamw_8bit": "adamw_torch_8bit",
    "paged_adamw_32bit": WHOLE,
}


def needs_few_bits(run: Run) -> bool:
    """Whether the states do not fit whole, or nobody knows; adapters' are so small that few bits spare nothing."""
    if run.adapter is not None:
        return False
    found = estimate(replace(run, optimizer=WHOLE))
    return found is None or found.verdict != "fits"


def finds(run: Run) -> Iterator[Hit]:
    """bitsandbytes' kernels know no sharded tensors."""
    name = run.optimizer
    if run.fsdp is None or run.fsdp.version != 2 or not run.config.get("fsdp_config"):
        return
    if name in REFUSED:
        consequence = "is refused by axolotl with FSDP2"
    elif name in FAILS_LATER:
        consequence = "stops FSDP2 at the first step: bitsandbytes cannot update sharded tensors"
    else:
        return
    instead = (INSTEAD if needs_few_bits(run) else dict.fromkeys(INSTEAD, WHOLE)).get(name)
    remedy = f"use `{instead}`" if instead else "use one of torch's or torchao's"
    edits = (Set("optimizer", instead),) if instead else ()
    yield Hit("optimizer", f"`optimizer: {name}` {consequence}; {remedy}", edits=edits)


rule = Rule(
    id="eight-bit-optimizer-with-fsdp2",
    stage="lint",
    title="A bitsandbytes optimizer under FSDP2",
    finds=finds,
    level="error",
    proof="rejects",
    why="""
        FSDP2 shards each weight as a DTensor, for which bitsandbytes has no operators. axolotl refuses the two plain
        names of its 8-bit AdamW; the paged ones, the 32-bit ones, Lion, AdEMAMix and RMSprop pass and fail at the first
        step ("got mixed torch.Tensor and DTensor", "does not have a sharding strategy registered").
    """,
    cost="The states are not those of bitsandbytes: torchao's have blocks of 256 as well, torch's are whole.",
    source="axolotl/utils/schemas/validation.py:1248-1263@0.19.0; bitsandbytes 0.50.2 with torch 2.13.0, tried",
    examples=lambda: (
        Example(
            gpus="2x rtx-4090",
            before="""
                base_model: meta-llama/Llama-3.1-8B
                optimizer: adamw_bnb_8bit
                fsdp_version: 2
                fsdp_config:
                  auto_wrap_policy: TRANSFORMER_BASED_WRAP
                  reshard_after_forward: true
            """,
            after="""
                base_model: meta-llama/Llama-3.1-8B
                optimizer: adamw_torch_8bit
                fsdp_version: 2
                fsdp_config:
                  auto_wrap_policy: TRANSFORMER_BASED_WRAP
                  reshard_after_forward: true
            """,
        ),
        Example(
            gpus="8x a100-80gb",
            before="""
                base_model: meta-llama/Llama-3.1-8B
                optimizer: adamw_bnb_8bit
                fsdp_version: 2
                fsdp_config:
                  auto_wrap_policy: TRANSFORMER_BASED_WRAP
                  reshard_after_forward: true
            """,
            after="""
                base_model: meta-llama/Llama-3.1-8B
                optimizer: adamw_torch_fused
                fsdp_version: 2
                fsdp_config:
                  auto_wrap_policy: TRANSFORMER_BASED_WRAP
                  reshard_after_forward: true
            """,
        ),
        Example(
            gpus="",
            before="""
                base_model: meta-llama/Llama-3.1-8B
                optimizer: adamw_bnb_8bit
                fsdp_version: 2
                fsdp_config:
                  auto_wrap_policy: TRANSFORMER_BASED_WRAP
                  reshard_after_forward: true
            """,
            after="""
                base_model: meta-llama/Llama-3.1-8B
                optimizer: adamw_torch_8bit
                fsdp_version: 2
                fsdp_config:
                  auto_wrap_policy: TRANSFORMER_BASED_WRAP
                  reshard_after_forward: true
            """,
        ),
        but("fsdp_version: 1", "fsdp_config:\n  auto_wrap_policy: TRANSFORMER_BASED_WRAP"),
        but("fsdp_config:\n  auto_wrap_policy: TRANSFORMER_BASED_WRAP", fixed=True),
        only("base_model: meta-llama/Llama-3.1-8B"),
        but("fsdp:\n  - full_shard\n  - auto_wrap", without=("fsdp_config",), gpus="1x a100-80gb"),
        Example(
            gpus="",
            before="""
                base_model: meta-llama/Llama-3.1-8B
                adapter: lora
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
                optimizer: adamw_bnb_8bit
                fsdp_version: 2
                fsdp_config:
                  auto_wrap_policy: TRANSFORMER_BASED_WRAP
                  reshard_after_forward: true
            """,
            after="""
                base_model: meta-llama/Llama-3.1-8B
                adapter: lora
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
                optimizer: adamw_torch_fused
                fsdp_version: 2
                fsdp_config:
                  auto_wrap_policy: TRANSFORMER_BASED_WRAP
                  reshard_after_forward: true
            """,
        ),
    ),
)
