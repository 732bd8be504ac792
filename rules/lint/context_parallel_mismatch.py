"""Context parallelism where the ranks of a group do not have what belongs together."""

from collections.abc import Iterator

from advisor import Hit, Rule, Run, but, only, without

PREFERENCES = frozenset({"dpo", "ipo", "kto", "orpo", "simpo"})


def finds(run: Run) -> Iterator[Hit]:
    """Losses over whole rows, rows from DeepSpeed's loader, and packed rows of a model with a capped score."""
    size = run.context_parallel_size
    if size <= 1:
        return
    key = "context_parallel_size" if run.config.get("context_parallel_size") else "sequence_parallel_degree"
    said = f"`{key}: {size}`"
    if run.rl in PREFERENCES:
        message = f"{said} with `rl: {run.rl}`: TRL compares the logits of a part of the row with the labels of all of"
        yield Hit(key, f"{message} it, and stops; remove it", level="error")
    if run.zero is not None:
        message = f"{said} with DeepSpeed: accelerate gives the {size} ranks that share a row {size} different rows, so"
        yield Hit(key, f"{message} that each trains on pieces; use FSDP2")
    if run.sample_packing and caps_scores(run):
        message = f"{said} with `sample_packing`: ring attention refuses the capped scores of this model, and stops"
        yield Hit(key, f"{message}; set `sample_packing: false`", level="error")


def caps_scores(run: Run) -> bool:
    """Whether the model caps what attention scores."""
    blocks = run.model.blocks if run.model is not None else ()
    return any(block.attention is not None and block.attention.logit_softcap for block in blocks)


rule = Rule(
    id="context-parallel-mismatch",
    stage="lint",
    title="Take context parallelism out of runs that it does not work in",
    finds=finds,
    level="warning",
    proof="read",
    why="""
        Context parallelism gives each GPU of a group a part of every row. TRL's losses of preferences take labels of
        whole rows, and fail on the shapes. Under DeepSpeed accelerate 1.13.0's loader divides the ranks by tensor
        parallelism alone, so that the ranks of a group read different rows, of which axolotl then takes one part each.
    """,
    safe=False,
    source=(
        "trl/trainer/dpo_trainer.py:1344-1347@1.9.0; trl/trainer/kto_trainer.py:1507@1.9.0; "
        "trl/experimental/orpo/orpo_trainer.py:731@1.9.0; trl/experimental/cpo/cpo_trainer.py:774@1.9.0; "
        "accelerate/data_loader.py:1120-1156@1.13.0; "
        "axolotl/monkeypatch/ring_attn/patch.py:100@0.19.0; tests/oracles/test_context_parallel.py"
    ),
    examples=lambda: (
        only(
            "base_model: meta-llama/Llama-3.1-8B",
            "attn_implementation: flash_attention_2",
            "rl: dpo",
            "context_parallel_size: 8",
            gpus="8x h100-80gb",
            fires=True,
        ),
        but(
            "deepspeed: ds.json",
            "sequence_parallel_degree: 8",
            without=("rl", "context_parallel_size"),
            deepspeed='{"zero_optimization": {"stage": 3}, "bf16": {"enabled": true}}',
            fires=True,
        ),
        but("base_model: google/gemma-2-9b", "sample_packing: true", without=("rl",), fires=True),
        but("base_model: google/gemma-2-9b", without=("rl",)),
        but("sample_packing: true", without=("rl",)),
        but("base_model: nobody/knows-this", "sample_packing: true", without=("rl",)),
        without("attn_implementation", "context_parallel_size"),
        but("base_model: tiiuae/falcon-mamba-7b", "sample_packing: true", without=("attn_implementation", "rl")),
    ),
)
