"""An 8-bit optimizer for parameters that FSDP1 offloads."""

from collections.abc import Iterator

from advisor import Example, Hit, Rule, Run, but, is_mapping


def finds(run: Run) -> Iterator[Hit]:
    """Every name with ``8bit`` in it, as axolotl looks for it."""
    if run.fsdp is None or run.fsdp.version != 1 or "8bit" not in run.optimizer or not offloads(run):
        return
    yield Hit(
        "optimizer",
        f"`optimizer: {run.optimizer}` is refused by axolotl with FSDP1's `offload_params`; use `adamw_torch_fused`,"
        " or do not offload",
    )


def offloads(run: Run) -> bool:
    """Whether ``fsdp_config`` itself says so; axolotl does not look into the list ``fsdp:``."""
    given = run.config.get("fsdp_config")
    return (
        run.fsdp is not None
        and run.fsdp.offload_params
        and is_mapping(given)
        and any(given.get(key) not in (None, False) for key in ("offload_params", "fsdp_offload_params"))
    )


rule = Rule(
    id="fsdp-offload-8bit",
    stage="lint",
    title="An 8-bit optimizer for parameters that FSDP1 offloads",
    finds=finds,
    level="error",
    proof="rejects",
    why="""
        FSDP1's `offload_params` keeps parameters, gradients and optimizer states on the host and steps there, where
        narrow states save nothing on the GPU. axolotl refuses the pair before anything is loaded.
    """,
    source="axolotl/utils/schemas/validation.py:1235-1246@0.19.0",
    examples=lambda: (
        Example(
            gpus="2x rtx-4090",
            before="""
                base_model: meta-llama/Llama-3.1-8B
                adapter: qlora
                load_in_4bit: true
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
                optimizer: paged_adamw_8bit
                fsdp_version: 1
                fsdp_config:
                  offload_params: true
                  auto_wrap_policy: TRANSFORMER_BASED_WRAP
            """,
            fires=True,
        ),
        but("fsdp_config:\n  offload_params: false\n  auto_wrap_policy: TRANSFORMER_BASED_WRAP"),
        but("fsdp_config:\n  offload_params: true", without=("optimizer", "fsdp_version"), gpus="1x a100-80gb"),
        but("fsdp_version: 2", "fsdp_config:\n  offload_params: true", gpus="1x a100-80gb"),
        but(without=("optimizer", "fsdp_version", "fsdp_config"), gpus="1x a100-80gb"),
        but(
            "fsdp:\n  - full_shard\n  - offload",
            "fsdp_config:\n  auto_wrap_policy: TRANSFORMER_BASED_WRAP",
            without=("fsdp_version",),
            gpus="1x a100-80gb",
        ),
        but("fsdp:\n  - full_shard\n  - offload", without=("fsdp_version", "fsdp_config"), gpus="1x a100-80gb"),
        but('fsdp_config:\n  offload_params: "false"\n  auto_wrap_policy: TRANSFORMER_BASED_WRAP'),
    ),
)
