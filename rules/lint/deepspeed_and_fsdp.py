"""DeepSpeed and FSDP at once."""

from collections.abc import Iterator

from advisor import Hit, Rule, Run, but, only


def finds(run: Run) -> Iterator[Hit]:
    """Where both are asked for; only the builder of preference training never hands DeepSpeed on."""
    if run.fsdp is None or not run.config.get("deepspeed"):
        return
    other = "fsdp_config" if run.config.get("fsdp_config") else "fsdp"
    if run.rl is not None and other == "fsdp_config":
        message = f"`deepspeed` has no effect with `{other}`: with `rl` axolotl sets up FSDP alone; remove it"
        yield Hit("deepspeed", message, on_key=True, level="warning")
        return
    message = f"`deepspeed` and `{other}` exclude each other: the trainer refuses to start; remove one of the two"
    yield Hit("deepspeed", message, on_key=True)


rule = Rule(
    id="deepspeed-and-fsdp",
    stage="lint",
    title="DeepSpeed and FSDP at once",
    finds=finds,
    level="error",
    proof="read",
    fatal=True,
    why="""
        axolotl's schema refuses `deepspeed` with the old `fsdp` list. With `fsdp_config` it accepts it, sets the
        environment up for FSDP and hands both to transformers' Trainer, which raises once the model has been loaded.
        For preference training it hands on FSDP alone.
    """,
    safe=False,
    source=(
        "axolotl/utils/schemas/validation.py:1352-1355, utils/trainer.py:673-688, core/builders/base.py:693-695, "
        "core/builders/causal.py:192-193@0.19.0; transformers/trainer.py:457-461@5.16.1"
    ),
    examples=lambda: (
        only(
            "base_model: meta-llama/Llama-3.1-8B",
            "deepspeed: deepspeed_configs/zero3_bf16.json",
            "fsdp_version: 2",
            "fsdp_config:\n  reshard_after_forward: true\n  auto_wrap_policy: TRANSFORMER_BASED_WRAP",
            gpus="8x a100-80gb",
            fires=True,
        ),
        but("rl: dpo", fires=True),
        but("deepspeed:"),
        but(without=("fsdp_version", "fsdp_config"), gpus="1x a100-80gb"),
    ),
)
