"""A checkpoint that is put together on a host without room for it."""

from collections.abc import Iterator

from advisor import Example, Hit, Rule, Run, Set, but, only
from advisor.memory import estimate
from advisor.memory.disk import checkpoints
from advisor.memory.weights import weights_of
from advisor.run.axolotl.sharding import spelled
from advisor.util import gib

KEY = "state_dict_type"
FULL, SHARDED = "FULL_STATE_DICT", "SHARDED_STATE_DICT"


def finds(run: Run) -> Iterator[Hit]:
    """FSDP that saves everything in one process: weights, then optimizer states, next to what is there anyway."""
    key, found = gathers(run), estimate(run)
    if key is None or found is None or found.host_usable is None:
        return
    assert run.model is not None, "what is estimated has a model"
    weights, saved = weights_of(run, run.model).bytes, checkpoints(run)
    states = 0 if saved is None else saved.states
    there = found.host_needed.low
    if there <= found.host_usable < there + max(weights, states):
        then = f", then {gib(states)} of optimizer states," if states else ""
        room = f"next to {gib(there)} of {gib(found.host_usable)}"
        message = (
            f"each save gathers {gib(weights)} of weights{then} in one process's host memory, {room}; set"
            f" `{key.rpartition('.')[2]}: {SHARDED}`"
        )
        yield Hit(key, message, (Set(key, SHARDED),))


def gathers(run: Run) -> str | None:
    """The key that says how FSDP saves, where it gathers all of the weights; version 1 does unless told."""
    if run.fsdp is None or run.adapter is not None or run.world_size == 1:
        return None
    key = spelled(run, KEY) or f"fsdp_config.{KEY}"
    kind = run.config.at(key) or (FULL if run.fsdp.version == 1 else SHARDED)
    return key if kind == FULL else None


rule = Rule(
    id="saving-needs-host",
    stage="lint",
    title="The host has no room to gather a checkpoint",
    finds=finds,
    level="warning",
    proof="read",
    why="""
        With `FULL_STATE_DICT` the first process collects the whole weights on its host, and then the whole states of
        the optimizer, each time a checkpoint is saved. The training runs up to the first save, where the process is
        killed. Sharded, each process writes what it has; axolotl merges the last checkpoint's weights at the end.
    """,
    cost="Checkpoints are folders of shards, which `axolotl merge-sharded-fsdp-weights` turns into a model.",
    safe=True,
    source=(
        "accelerate/accelerator.py:4038-4049, utils/fsdp_utils.py:103-135, 233-267@1.13.0; "
        "axolotl/train.py:330-371@0.19.0; torch/distributed/checkpoint/state_dict.py:479-485@2.13.0"
    ),
    examples=lambda: (
        Example(
            gpus="2x rtx-4090 host=64GiB",
            before="""
                base_model: Qwen/Qwen2.5-7B
                sequence_len: 2048
                micro_batch_size: 1
                gradient_checkpointing: true
                fsdp_version: 2
                fsdp_config:
                  offload_params: true
                  cpu_ram_efficient_loading: true
                  state_dict_type: FULL_STATE_DICT
                  auto_wrap_policy: TRANSFORMER_BASED_WRAP
            """,
            after="""
                base_model: Qwen/Qwen2.5-7B
                sequence_len: 2048
                micro_batch_size: 1
                gradient_checkpointing: true
                fsdp_version: 2
                fsdp_config:
                  offload_params: true
                  cpu_ram_efficient_loading: true
                  state_dict_type: SHARDED_STATE_DICT
                  auto_wrap_policy: TRANSFORMER_BASED_WRAP
            """,
        ),
        but("sequence_len: 2048", fixed=True),
        but(gpus="2x rtx-4090 host=512GiB"),
        but(gpus="2x rtx-4090"),
        but(gpus="2x rtx-4090 host=48GiB"),
        but(gpus="2x rtx-4090 host=80GiB", fires=True),
        but("save_only_model: true", gpus="2x rtx-4090 host=80GiB"),
        but("save_strategy: 'no'", gpus="2x rtx-4090 host=80GiB"),
        but("base_model: nobody/knows-this"),
        but("adapter: lora", "lora_r: 16", "lora_alpha: 32", "lora_target_linear: true", gpus="2x rtx-4090 host=24GiB"),
        but("fsdp_version: 2", "fsdp_config:\n  offload_params: true\n  auto_wrap_policy: TRANSFORMER_BASED_WRAP"),
        but(
            "fsdp_version: 1",
            "fsdp_config:\n  offload_params: true\n  auto_wrap_policy: TRANSFORMER_BASED_WRAP",
            gpus="2x rtx-4090 host=128GiB",
            fires=True,
        ),
        but(
            "fsdp_version: 2",
            "fsdp_config:\n  offload_params: true\n  fsdp_state_dict_type: FULL_STATE_DICT",
            fires=True,
        ),
        but(gpus="1x rtx-4090 host=64GiB"),
        only("base_model: Qwen/Qwen2.5-7B", gpus="2x rtx-4090 host=64GiB"),
    ),
)
