"""The catalogue: every name leads to its card, and the numbers hang together."""

import json
import os
from collections import Counter
from itertools import pairwise
from pathlib import Path
from statistics import median_low
from typing import Any

import pytest

from advisor.errors import InputError
from advisor.hardware import catalogue as module
from advisor.hardware import detection, gpu_names, larger_gpus, parse_hardware
from advisor.hardware.catalogue import assumption, catalogue, find_gpu, known_gpus, near_names, rarer
from advisor.hardware.detection import usual_driver_bytes
from advisor.hardware.gpu import GIB

FOLDER = Path(detection.__file__).parent
COMMON = json.loads((FOLDER / "gpus.json").read_text())["gpus"]
RARER = json.loads((FOLDER / "rarer_gpus.json").read_text())["gpus"]
ENTRIES = [*COMMON, *RARER]
SOURCES = json.loads(Path(__file__).with_name("rarer_gpus_sources.json").read_text())
PRINTED = [(name, entry["id"]) for entry in ENTRIES for name in entry["device_names"]]
SHARED = {name for name, count in Counter(name for name, _ in PRINTED).items() if count > 1}
"""What the driver prints for two sizes of a card."""
NAMES = [(name, entry["id"]) for entry in ENTRIES for name in (entry["id"], entry["title"], *entry["aliases"])]
NAMES += [(name, gpu) for name, gpu in PRINTED if name not in SHARED]


@pytest.mark.parametrize(("name", "gpu"), NAMES)
def test_every_id_title_alias_and_device_name_finds_its_card(name: str, gpu: str):
    for spelling in (name, name.upper(), name.replace("-", " "), f"NVIDIA {name}"):
        found = find_gpu(spelling)
        assert found is not None
        assert found.id == gpu


def test_no_name_belongs_to_two_cards():
    assert len(gpu_names()) == len(set(gpu_names())) == len(ENTRIES)
    owners: dict[str, set[str]] = {}
    for name, gpu in NAMES:
        owners.setdefault(name.lower(), set()).add(gpu)
    assert {name: gpus for name, gpus in owners.items() if len(gpus) > 1} == {}


@pytest.mark.parametrize(
    ("name", "gpu"),
    [
        ("a100", "a100-80gb-sxm"),
        ("h100", "h100-80gb-sxm"),
        ("a100 pcie", "a100-80gb-pcie"),
        ("A100 SXM4 40 GB", "a100-40gb-sxm"),
        ("A100 80GiB", "a100-80gb-sxm"),
        ("h100 sxm5 80gb", "h100-80gb-sxm"),
        ("v100", "v100-16gb-sxm2"),
        ("v100 pcie", "v100-16gb-pcie"),
        ("RTX 3060", "rtx-3060-12gb"),
        ("4070 Ti", "rtx-4070-ti"),
        ("4070 Ti SUPER", "rtx-4070-ti-super"),
        ("l40s 48gb", "l40s"),
        ("RTX 6000 Ada", "rtx-6000-ada"),
    ],
)
def test_a_name_that_leaves_something_open_is_the_most_common_variant(name: str, gpu: str):
    found = find_gpu(name)
    assert found is not None
    assert found.id == gpu


@pytest.mark.parametrize(
    "name",
    ["a100-60gb", "rtx 3080 20gb", "rtx 6000", "4080 laptop gpu", "RTX 5090 D", "h200 pcie", "a", "", "80gb", "mi3"],
)
def test_a_card_that_is_not_in_the_catalogue_is_not_taken_for_one_that_is(name: str):
    assert find_gpu(name) is None


def test_near_names_are_variants_of_the_model_first():
    assert near_names("a100-60gb")[0] == "a100-80gb-sxm"
    assert "rtx-5070-ti" in near_names("5070 ti super")
    assert near_names("abacus") == []


@pytest.mark.parametrize(
    ("name", "total_gib", "bf16", "fp8", "flash"),
    [
        ("t4", 14.56, False, False, False),
        ("v100", 15.75, False, False, False),
        ("rtx-3090", 23.55, True, False, True),
        ("rtx-4090", 23.52, True, True, True),
        ("a100-80gb-sxm", 79.14, True, False, True),
        ("h100", 79.11, True, True, True),
        ("b200", 178.35, True, True, True),
        ("mi300x", 191.69, True, True, True),
        ("mi210", 63.98, True, False, True),
    ],
)
def test_what_a_card_has_and_can_do(name: str, total_gib: float, bf16: bool, fp8: bool, flash: bool):
    gpu = find_gpu(name)
    assert gpu is not None
    assert gpu.total_bytes == int(total_gib * GIB)
    assert (gpu.bf16, gpu.fp8, gpu.flash_attention) == (bf16, fp8, flash)


def test_rates_are_bytes_a_second_in_one_direction():
    gpu = find_gpu("h100")
    assert gpu is not None
    assert gpu.bandwidth_bytes_per_s == 3.35e12
    assert gpu.link_bytes_per_s == 450e9
    assert gpu.pcie_bytes_per_s == 64e9
    assert gpu.bf16_tflops == 989.4


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry["id"])
def test_torch_sees_less_than_the_label_and_less_than_nvidia_smi(entry: dict[str, Any]):
    gpu = known_gpus()[entry["id"]]
    assert 0.85 < gpu.total_bytes / (gpu.nominal_gb * GIB) < 1.0
    assert entry.get("torch_total_source") or SOURCES[entry["id"]]["torch_total_source"]
    if gpu.driver_bytes is not None:
        assert 0 <= gpu.driver_bytes <= usual_driver_bytes(entry["nvidia_smi_mib"] << 20)
    if gpu.compute_capability is not None:
        assert gpu.bf16 == (gpu.compute_capability >= (8, 0))
        assert gpu.fp8 == (gpu.compute_capability >= (8, 9))


def test_larger_cards_ascend_one_for_each_size():
    larger = larger_gpus(parse_hardware("rtx-4090").gpu)
    sizes = [gpu.nominal_gb for gpu in larger]
    assert [gpu.id for gpu in larger][:4] == ["rtx-5090", "a100-40gb-sxm", "a40", "a100-80gb-sxm"]
    assert sizes == sorted(set(sizes))
    assert all(gpu.bf16 and gpu.vendor == "NVIDIA" for gpu in larger)


def test_larger_cards_stay_with_the_vendor_and_end_at_the_largest():
    assert [gpu.id for gpu in larger_gpus(parse_hardware("mi210").gpu)] == ["mi300x", "mi325x"]
    assert larger_gpus(parse_hardware("b300").gpu) == ()


@pytest.mark.slow
@pytest.mark.skipif("ADVISOR_CORPUS" not in os.environ, reason="ADVISOR_CORPUS names the folder of facts")
def test_the_catalogue_agrees_with_the_facts_that_it_was_made_from():
    facts = json.loads((Path(os.environ["ADVISOR_CORPUS"]) / "facts" / "gpus.json").read_text())["gpus"]
    for entry in COMMON:
        fact = facts[entry["id"]]
        read = fact["memory"]["torch_total_gib"]
        assert entry["torch_total_gib"] == (read or entry["torch_total_gib"])
        assert entry["bandwidth_gb_s"] == fact["bandwidth_gb_s"]
        assert (entry["bf16_tflops"], entry["fp16_tflops"]) == (
            fact["tflops_dense"]["bf16"],
            fact["tflops_dense"]["fp16"],
        )
        assert (entry["bf16"], entry["fp8"]) == (fact["bf16"], fact["fp8"])
        assert entry["gpus_per_node"] == fact["gpus_per_node"]


MACHINES = json.loads(Path(detection.__file__).with_name("instances.json").read_text())["instances"]
DESKTOP_GIB = 64


def common_host(entry: dict[str, Any]) -> int:
    """GiB of host memory for each card, as ``host_source`` derives it."""
    match entry["host_source"]:
        case "desktop":
            return DESKTOP_GIB
        case "shared":
            return 0
        case "instances":
            return int(median_low(row["host_gib"] / row["gpus"] for row in MACHINES if row["gpu"] == entry["id"]))
        case like:
            return common_host(next(other for other in ENTRIES if other["id"] == like))


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry["id"])
def test_the_common_host_of_a_card_is_derived_as_its_source_says(entry: dict[str, Any]):
    has_machines = any(row["gpu"] == entry["id"] for row in MACHINES)
    assert (entry["host_source"] == "instances") == has_machines
    assert entry["host_gib_per_gpu"] == common_host(entry)
    assert known_gpus()[entry["id"]].host_bytes == entry["host_gib_per_gpu"] * GIB


@pytest.mark.parametrize(
    ("spec", "common", "words"),
    [
        ("1x rtx-4090", 64, "64.0 GiB is common with 1x RTX 4090"),
        ("4x rtx-4090", 256, "256.0 GiB is common with 4x RTX 4090"),
        ("2n8x h100", 1872, "1872.0 GiB is common with 2 nodes of 8x H100-80GB SXM"),
        ("1x rtx-4090 host=128GiB", 64, "128.0 GiB stated"),
        ("p4d.24xlarge", 680, "1152.0 GiB stated"),
    ],
)
def test_a_node_has_what_is_stated_else_what_is_common_with_its_cards(spec: str, common: int, words: str):
    hardware = parse_hardware(spec)
    assert hardware.common_host_bytes == common * GIB
    assert hardware.host_words == words


KEYS_READ = set(COMMON[0]) - {"arch", "torch_total_source", "host_source"}


def refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, entry: dict[str, Any]) -> InputError:
    """What a catalogue with this one card says."""
    data = json.loads(module.GPUS.read_text()) | {"gpus": [entry]}
    monkeypatch.setattr(module, "GPUS", tmp_path / "gpus.json")
    module.GPUS.write_text(json.dumps(data))
    with pytest.raises(InputError) as caught:
        catalogue.__wrapped__()
    return caught.value


@pytest.mark.parametrize("key", sorted(KEYS_READ))
def test_a_card_that_lacks_a_key_is_named_with_it(key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    entry = {name: value for name, value in ENTRIES[0].items() if name != key}
    said = str(refused(tmp_path, monkeypatch, entry))
    assert "gpus.json: " in said and f"has no `{key}`" in said
    assert key == "id" or f"the GPU `{entry['id']}`" in said


def test_a_card_of_an_unknown_family_is_named_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    said = str(refused(tmp_path, monkeypatch, ENTRIES[0] | {"family": "volta"}))
    assert "gpus.json: " in said and f"`{ENTRIES[0]['id']}`" in said and "`volta`" in said


def test_two_cards_print_one_name_only_where_their_sizes_tell_them_apart():
    sizes = {name: sorted(known_gpus()[gpu].total_bytes for other, gpu in PRINTED if other == name) for name in SHARED}
    assert "NVIDIA GeForce RTX 4090" in sizes
    apart = {name: all(large / small > 1.1 for small, large in pairwise(found)) for name, found in sizes.items()}
    assert {name for name, is_apart in apart.items() if not is_apart} == {"AMD Instinct MI50/MI60"}


@pytest.mark.parametrize("entry", RARER, ids=lambda entry: entry["id"])
def test_a_rarer_card_has_the_keys_of_the_others_and_a_source(entry: dict[str, Any]):
    assert set(COMMON[0]) - {"torch_total_source"} <= set(entry)
    assert set(SOURCES[entry["id"]]) == {"torch_total_source", "rates_source", "sure"}
    assert SOURCES[entry["id"]]["sure"] != "weak" or entry["approximate"]


def test_every_source_is_that_of_a_card():
    assert set(SOURCES) - {"about"} == {entry["id"] for entry in RARER}


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry["id"])
def test_the_figures_of_a_card_are_in_line_with_its_siblings(entry: dict[str, Any]):
    """Of one architecture and use; the A2 and A16 are an eighth of an A100. A slip of a digit is ten times off."""
    siblings = [other for other in ENTRIES if all(other[key] == entry[key] for key in ("arch", "data_centre"))]
    middle = median_low(other["bandwidth_gb_s"] for other in siblings)
    assert 1 / 8 < entry["bandwidth_gb_s"] / middle < 3
    if rate := entry["bf16_tflops"] or entry["fp16_tflops"]:
        assert 0.02 < rate / entry["bandwidth_gb_s"] < 0.5
    assert {entry["family"]} <= {other["family"] for other in COMMON}
    assert entry["link_gb_s"] is None or entry["link_gb_s"] >= entry["pcie_gb_s"]


def test_the_rarer_cards_are_read_for_no_common_name():
    rarer.cache_clear()
    for name, gpu in NAMES:
        if gpu in catalogue().gpus:
            assert find_gpu(name) is not None and assumption(name) is not None
    assert rarer.cache_info().currsize == 0


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("rtx 3080", "`rtx-3080-12gb`"),
        ("4060 ti", "`rtx-4060-ti-8gb`"),
        ("2060", "`rtx-2060-12gb`"),
        ("h20", "`h20-3e`"),
        ("4090", ""),
        ("4090 laptop gpu", "RTX 4090 Laptop is approximate: "),
        ("dgx spark", "GB10 (DGX Spark) is approximate: "),
    ],
)
def test_a_name_says_what_it_leaves_open_and_what_is_rough(name: str, said: str):
    found = assumption(name)
    assert said in found if said else not found
