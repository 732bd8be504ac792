"""Machines of clouds: every row leads to its cards, in each way that people write its name."""

import json
from pathlib import Path

import pytest

from advisor.hardware import instances as module
from advisor.hardware import parse_hardware
from advisor.hardware.catalogue import catalogue, find_gpu
from advisor.hardware.gpu import GIB

DATA = json.loads(Path(module.__file__).with_name("instances.json").read_text())
ROWS = DATA["instances"]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["name"])
def test_a_machine_brings_its_cards_and_its_memory(row: dict[str, object]):
    name = str(row["name"])
    for spelled in (name, name.upper(), name.replace("_", " "), name.removeprefix("Standard_")):
        found = parse_hardware(spelled)
        assert (found.gpu.id, found.gpus_per_node, found.nodes) == (row["gpu"], row["gpus"], 1)
        assert found.host_bytes == int(str(row["host_gib"])) * GIB
        assert found.assumed == ""


def test_rows_are_one_each_with_a_card_of_the_catalogue_and_a_public_source():
    names = [module.spelling(row["name"]) for row in ROWS]
    assert len(names) == len(set(names)) == len(module.instances())
    assert all(row["gpu"] in catalogue().gpus and find_gpu(row["name"]) is None for row in ROWS)
    assert all(DATA["sources"][row["source"]].startswith("https://") for row in ROWS)
    assert all(1 <= row["gpus"] <= 16 for row in ROWS)


def test_machines_of_every_family_that_people_name():
    for name in ("p4d.24xlarge", "p4de.24xlarge", "p5.48xlarge", "g5.12xlarge", "g6.48xlarge", "a2-highgpu-8g"):
        assert module.find_instance(name) is not None
    for name in ("a3-highgpu-8g", "g2-standard-96", "Standard_ND96asr_v4", "Standard_NC24ads_A100_v4"):
        assert module.find_instance(name) is not None
