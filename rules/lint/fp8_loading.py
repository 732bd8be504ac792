"""fp8 under FSDP2 with a way of loading that was reported to end in NaN."""

from collections.abc import Iterator

from advisor import Hit, Rule, Run, Set, but, only, without

KEY = "cpu_ram_efficient_loading"


def finds(run: Run) -> Iterator[Hit]:
    """Where every rank loads the weights by itself."""
    fsdp = run.fsdp
    if fsdp is None or fsdp.version != 2 or not run.is_on("fp8") or not run.may_shard or fsdp.cpu_ram_efficient_loading:
        return
    message = f"`fp8: true` under FSDP2 without `{KEY}: true` was reported to give NaN from the first step; set"
    yield Hit("fp8", f"{message} `{KEY}: true`, which could help", (Set(f"fsdp_config.{KEY}", True),), on_key=True)


rule = Rule(
    id="fp8-loading",
    stage="lint",
    title="fp8 under FSDP2 and a way of loading that gave NaN",
    finds=finds,
    level="note",
    proof="accepts",
    offer=True,
    safe=True,
    why="""
        The thread has loss and gradients of NaN in fp8 where each rank loads the weights, and none where the first does
        and hands them on. It is open, and its cause is not known.
    """,
    cost="One rank loads and sends, which takes a little longer.",
    source="https://github.com/axolotl-ai-cloud/axolotl/issues/3077",
    examples=lambda: (
        only(
            "base_model: meta-llama/Llama-3.1-8B",
            "fp8: true",
            "bf16: true",
            "fsdp_version: 2",
            "fsdp_config:\n  auto_wrap_policy: TRANSFORMER_BASED_WRAP",
            gpus="2x h100-80gb",
            fires=True,
        ),
        but("fsdp_config:\n  cpu_ram_efficient_loading: true"),
        but("fp8: false"),
        but("fsdp_version: 1"),
        but(gpus="1x h100-80gb"),
        without("fsdp_version", "fsdp_config"),
    ),
)
