"""The first version of FSDP."""

from collections.abc import Iterator

from advisor import Hit, Rule, Run, but, only
from advisor.run.axolotl.sharding import VERSION_KEYS


def finds(run: Run) -> Iterator[Hit]:
    """Version 1, given or by default."""
    if run.fsdp is None or run.fsdp.version != 1 or not run.config.get("fsdp_config"):
        return
    given = next((key for key in VERSION_KEYS if run.config.at(key) is not None), None)
    if given is None:
        what = "`fsdp_config` without `fsdp_version` is FSDP1"
    else:
        what = f"`{given.rpartition('.')[2]}: {run.config.at(given)}` is FSDP1"
    message = f"{what}, which transformers is to drop with 5.20, and axolotl soon; move to `fsdp_version: 2`"
    yield Hit(given or "fsdp_config", f"{message}, which trains all weights without fp32 masters", on_key=given is None)


rule = Rule(
    id="fsdp1-deprecated",
    stage="lint",
    title="The first version of FSDP",
    finds=finds,
    level="note",
    proof="accepts",
    why="""
        axolotl pins version 1 where none is given, though transformers' own default is 2 by now. Both say that FSDP1 is
        on its way out. Version 2 shards each weight on its own, needs neither `use_orig_params` nor
        `sync_module_states`, and goes together with context and tensor parallelism.
    """,
    cost="""
        Checkpoints of one version are not resumed by the other. FSDP1 keeps the trained weights in fp32 under mixed
        precision, axolotl's FSDP2 in the dtype that they were loaded in. FSDP2 refuses bitsandbytes' 8-bit AdamW.
    """,
    source=(
        "axolotl/utils/schemas/validation.py:1145-1157, 1227-1232@0.19.0; "
        "transformers/training_args.py:2815-2821@5.16.1"
    ),
    examples=lambda: (
        only(
            "base_model: meta-llama/Llama-3.1-8B",
            "sequence_len: 4096",
            "fsdp_config:\n  auto_wrap_policy: TRANSFORMER_BASED_WRAP\n  state_dict_type: FULL_STATE_DICT",
            gpus="8x a100-80gb",
            fires=True,
        ),
        but("fsdp_version: 2"),
        only("base_model: meta-llama/Llama-3.1-8B"),
        but("fsdp:\n  - full_shard", without=("sequence_len", "fsdp_config")),
    ),
)
