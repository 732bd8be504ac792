"""DeepSpeed's own config class accepts what the advisor writes, and holds what the advisor reads."""

import json
import os
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

os.environ.setdefault("DS_ACCELERATOR", "cpu")
pytest.importorskip("deepspeed")
pytest.importorskip("transformers")

from advisor.documents import new_document
from advisor.engine.registry import flowcharts
from advisor.run.axolotl.reader import Reader
from advisor.run.deepspeed import Section, fresh_config, zero
from advisor.run.deepspeed.edits import EDITS, changes
from advisor.run.deepspeed.shipped import SHIPPED
from advisor.schemas.validate import ask_deepspeed
from advisor.schemas.validate.requests import DEFAULTS

from ..corpus.configs import folder, patched_examples

pytestmark = pytest.mark.oracle
Values = Mapping[str, Any]

HIDDEN = 4096
STAGE_3_ALONE = (
    "prefetch_bucket_size",
    "param_persistence_threshold",
    "max_live_parameters",
    "max_reuse_distance",
    "secondary_partition_size",
)
CPU = {"device": "cpu", "pin_memory": True}
NVME = {"device": "nvme", "nvme_path": "/local"}
BY_HAND: dict[str, Values] = {
    "empty": {},
    "stage left out": {"zero_optimization": {"reduce_bucket_size": 10}},
    "sizes as floats": {"zero_optimization": {"stage": 2, "reduce_bucket_size": 2e8}},
    "stage 1, switched off": {"zero_optimization": {"stage": 1, "overlap_comm": False, "contiguous_gradients": False}},
    "stage 2, no overlap said": {"zero_optimization": {"stage": 2}},
    "stage 3, defaults": {"zero_optimization": {"stage": 3}, "bf16": {"enabled": True}},
    "stage 3, no overlap": {"zero_optimization": {"stage": 3, "overlap_comm": False}},
    "stage 3, short names": {
        "zero_optimization": {
            "stage": 3,
            "max_live_parameters": 7,
            "max_reuse_distance": 8,
            "prefetch_bucket_size": 9,
            "param_persistence_threshold": 10,
            "sub_group_size": 11,
        }
    },
    "stage 3, long names": {
        "zero_optimization": {
            "stage": 3,
            "stage3_max_live_parameters": 1e7,
            "stage3_max_reuse_distance": 8,
            "stage3_prefetch_bucket_size": 0,
            "stage3_param_persistence_threshold": 0,
        }
    },
    "auto where only the default can be meant": {
        "zero_optimization": {
            "stage": 3,
            "overlap_comm": "auto",
            "contiguous_gradients": "auto",
            "sub_group_size": "auto",
            "stage3_max_live_parameters": "auto",
        }
    },
    "auto buckets": {
        "zero_optimization": {
            "stage": 3,
            "reduce_bucket_size": "auto",
            "stage3_prefetch_bucket_size": "auto",
            "stage3_param_persistence_threshold": "auto",
        }
    },
    "auto bucket, stage 2": {"zero_optimization": {"stage": 2, "reduce_bucket_size": "auto"}},
    "offload, deprecated name": {"zero_optimization": {"stage": 2, "cpu_offload": True}},
    "offload of parameters, deprecated name": {"zero_optimization": {"stage": 3, "cpu_offload_param": True}},
    "offload to nowhere": {"zero_optimization": {"stage": 3, "offload_optimizer": {"device": "none"}}},
    "offload without a device": {"zero_optimization": {"stage": 3, "offload_optimizer": {}}},
    "offload, unpinned": {"zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}}},
    "offload, null": {"zero_optimization": {"stage": 3, "offload_optimizer": None, "offload_param": None}},
    "offload of everything": {"zero_optimization": {"stage": 3, "offload_optimizer": CPU, "offload_param": CPU}},
    "offload to disk": {"zero_optimization": {"stage": 3, "offload_optimizer": NVME, "offload_param": NVME}},
    "hierarchical": {"zero_optimization": {"stage": 3, "zero_hpz_partition_size": 8}},
    "gradients in fp32": {
        "zero_optimization": {"stage": 1},
        "bf16": {"enabled": True},
        "data_types": {"grad_accum_dtype": "fp32"},
    },
    "torch's optimizer on the host": {
        "zero_optimization": {"stage": 2, "offload_optimizer": CPU},
        "zero_force_ds_cpu_optimizer": False,
    },
    "stage as a string": {"zero_optimization": {"stage": "3", "reduce_bucket_size": "1000"}},
    "flags as words": {"zero_optimization": {"stage": 2, "overlap_comm": "true"}},
}

# DeepSpeed 0.18 refuses the keys that axolotl's files have in their "compile" section.
REFUSED = sorted(name for name in SHIPPED if "torch_compile" in name)
ACCEPTED = sorted(SHIPPED.keys() - set(REFUSED))


def arguments(values: Values) -> dict[str, Any]:
    """The trainer's arguments on one GPU: transformers' defaults, in the precision that the file says."""
    fp16 = (values.get("fp16") or {}).get("enabled") is True
    sizes = {"world_size": 1, "per_device_train_batch_size": 1, "gradient_accumulation_steps": 1}
    return {**DEFAULTS, **sizes, "sets_micro_batch": True, "fp16": fp16, "bf16": not fp16}


def resolved(values: Values) -> dict[str, Any]:
    """The config as DeepSpeed gets it: each "auto" filled in by transformers for a model of ``HIDDEN``."""
    return ask_deepspeed.resolved(dict(values), arguments(values), HIDDEN)


def theirs(values: Values) -> Any:
    """DeepSpeed's reading."""
    return ask_deepspeed.held(dict(values), arguments(values), HIDDEN)


def ours(values: Values) -> dict[str, Any]:
    """The advisor's reading."""
    section = Section(new_document("zero.json", "json", dict(values)))
    read = zero(Reader(section), HIDDEN)
    return {item.name: getattr(read, item.name) for item in fields(read)}


def held(config: Any) -> dict[str, Any]:
    """What DeepSpeed holds, in the advisor's words."""
    settings = config.zero_config
    stage = int(settings.stage)
    optimizer, params = settings.offload_optimizer, settings.offload_param
    sizes = {name: getattr(settings, name) for name in ("reduce_bucket_size", "sub_group_size")}
    if stage == 3:
        sizes |= {name: getattr(settings, name) for name in STAGE_3_ALONE if hasattr(settings, name)}
        sizes["secondary_partition_size"] = settings.zero_hpz_partition_size
    return sizes | {
        "stage": stage,
        "overlap_comm": settings.overlap_comm,
        "contiguous_gradients": settings.contiguous_gradients,
        "offload_optimizer": device_of(optimizer) if stage >= 1 else "gpu",
        "offload_params": device_of(params) if stage == 3 else "gpu",
        "pin_optimizer": bool(optimizer and optimizer.pin_memory),
        "pin_params": bool(params and params.pin_memory),
        "force_cpu_adam": config.zero_force_ds_cpu_optimizer,
        "fp32_gradient_accumulation": config.grad_accum_dtype == "fp32",
    }


def device_of(offload: Any) -> str:
    """Where a state lives."""
    if offload is None or offload.device == "none":
        return "gpu"
    return str(getattr(offload.device, "value", offload.device))


def as_read(values: Values) -> tuple[dict[str, Any], dict[str, Any]]:
    """Both readings, of the facts that DeepSpeed holds."""
    expected, found = held(theirs(values)), ours(values)
    return {name: found[name] for name in expected}, expected


@pytest.mark.parametrize("name", ACCEPTED)
def test_a_shipped_config_is_read_as_deepspeed_reads_it(name: str):
    found, expected = as_read(SHIPPED[name])
    assert found == expected


@pytest.mark.parametrize("name", REFUSED)
def test_the_shipped_configs_for_torch_compile_are_refused_for_that_section_alone(name: str):
    with pytest.raises(ValueError, match="CompileConfig"):
        theirs(SHIPPED[name])
    found, expected = as_read({key: value for key, value in SHIPPED[name].items() if key != "compile"})
    assert found == expected


@pytest.mark.parametrize("name", BY_HAND)
def test_a_config_is_read_as_deepspeed_reads_it(name: str):
    found, expected = as_read(BY_HAND[name])
    assert found == expected


@pytest.mark.parametrize("precision", ["bf16", "fp16", "fp32"])
@pytest.mark.parametrize("stage", [0, 1, 2, 3])
def test_a_fresh_config_is_accepted_and_means_what_it_says(stage: int, precision: str):
    values = fresh_config(stage, precision)
    config = theirs(values)
    assert config.zero_optimization_stage == stage
    assert (config.bfloat16_config.enabled, config.float16_config.enabled) == (
        precision == "bf16",
        precision == "fp16",
    )
    found, expected = as_read(values)
    assert found == expected


EDITED: dict[str, tuple[object, ...]] = {
    "zero_stage": (0, 1, 2, 3),
    "offload_optimizer": ("cpu", "gpu"),
    "offload_params": ("cpu", "gpu"),
    "reduce_bucket_size": (20_000_000,),
    "max_live_parameters": (30_000_000,),
    "max_reuse_distance": (30_000_000,),
    "sub_group_size": (40_000_000,),
    "half_masters": (True,),
    "secondary_partition_size": (4,),
}
# What the advisor's reading calls a value that was edited.
READ_AS = {"zero_stage": "stage"}


def test_every_edit_is_tried():
    assert EDITED.keys() == EDITS.keys()


@pytest.mark.parametrize("name", sorted(EDITED))
@pytest.mark.parametrize("start", [*ACCEPTED, "stage 3, short names", "stage 3, long names"])
def test_an_edit_of_a_config_is_accepted_and_held(start: str, name: str):
    values = SHIPPED.get(start) or BY_HAND[start]
    for value in EDITED[name]:
        document = new_document("zero.json", "json", values)
        after = document.changed(*changes(document, {name: value}, "bf16")).values_mapping
        found, expected = as_read(after)
        assert found == expected
        stage = found["stage"]
        if name != "offload_params" or stage == 3:
            known = READ_AS.get(name, name)
            assert known not in expected or expected[known] == value


def test_transformers_resolves_auto_to_the_same_sizes():
    """The three sizes that depend on the model, as numbers of their own."""
    found = ours(BY_HAND["auto buckets"])
    assert resolved(BY_HAND["auto buckets"])["zero_optimization"] == {
        "stage": found["stage"],
        "reduce_bucket_size": found["reduce_bucket_size"],
        "stage3_prefetch_bucket_size": found["prefetch_bucket_size"],
        "stage3_param_persistence_threshold": found["param_persistence_threshold"],
    }
    assert found["reduce_bucket_size"] == 16_777_216
    assert found["prefetch_bucket_size"] == 15_099_494
    assert found["param_persistence_threshold"] == 40_960


def test_shards_are_built_in_fp32_exactly_where_transformers_finds_no_dtype():
    """Before the trainer's arguments are known, ``zero.Init`` sees the file as it is."""
    for name, values in {**SHIPPED, **BY_HAND}.items():
        said = [(values.get(dtype) or {}).get("enabled") for dtype in ("bf16", "fp16")]
        is_stage_3 = str((values.get("zero_optimization") or {}).get("stage")) == "3"
        assert ours(values)["loads_fp32"] == (is_stage_3 and True not in said), name


def test_examples_of_steps_end_in_configs_that_deepspeed_accepts(shown: list[Any]):
    written = {
        one.name: dict(one.after.deepspeed)
        for one in shown
        if one.rule.stage != "lint" and one.after is not None and one.after.deepspeed is not None
    }
    assert written
    assert refused(written) == {}


@pytest.mark.parametrize("flowchart", sorted(flowcharts()))
@pytest.mark.parametrize("gpus", ["4x rtx-4090", "2x rtx-3090 host=256GiB", "1x v100-32gb"])
def test_patched_examples_name_configs_that_deepspeed_accepts(corpus: Path, flowchart: str, gpus: str):
    cases = patched_examples(corpus, gpus, flowchart)
    written = {one.name: dict(one.fixed.run.deepspeed) for one in cases if one.fixed.run.deepspeed}
    assert written or flowchart == "pytorch"
    assert refused(written) == {}


def refused(configs: Mapping[str, Values]) -> dict[str, str]:
    """What DeepSpeed says of the configs that it does not take, or that the advisor reads otherwise."""
    said: dict[str, str] = {}
    for name, values in configs.items():
        try:
            found, expected = as_read(values)
        except Exception as error:
            said[name] = f"{type(error).__name__}: {error}"
            continue
        if found != expected:
            said[name] = f"read as {found}, held as {expected}"
    return said


@pytest.mark.skipif(folder() is None, reason="ADVISOR_CORPUS is not set")
def test_the_shipped_configs_are_axolotls_files():
    corpus = folder()
    assert corpus is not None
    files = sorted((corpus / "corpus" / "axolotl" / "deepspeed_configs").glob("*.json"))
    assert {file.name: json.loads(file.read_text(encoding="utf-8")) for file in files} == SHIPPED
