"""Hardware as people write it, and back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.errors import InputError
from advisor.hardware import Hardware, gpu_names, parse_hardware
from advisor.hardware.catalogue import known_gpus
from advisor.hardware.gpu import GIB
from advisor.hardware.own import own_gpu
from advisor.hardware.parse import parse_size


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("8x a100-80gb", "8x a100-80gb-sxm"),
        ("8xA100-80GB", "8x a100-80gb-sxm"),
        ("8 x a100 80gb", "8x a100-80gb-sxm"),
        ("  8×A100  ", "8x a100-80gb-sxm"),
        ("4x NVIDIA GeForce RTX 4090", "4x rtx-4090"),
        ("NVIDIA A100-SXM4-80GB", "1x a100-80gb-sxm"),
        ("4090", "1x rtx-4090"),
        ("4x4090", "4x rtx-4090"),
        ("2n8x h100-80gb-sxm host=1TiB", "2n8x h100-80gb-sxm host=1TiB"),
        ("2n 8x h100", "2n8x h100-80gb-sxm"),
        ("2n8x h100 network=25Gb/s", "2n8x h100-80gb-sxm net=25Gb/s"),
        ("2x8x h100", "2n8x h100-80gb-sxm"),
        ("2 x 8 x h100", "2n8x h100-80gb-sxm"),
        ("2x 4090", "2x rtx-4090"),
        ("1n8x h100", "8x h100-80gb-sxm"),
        ("8x h100, host = 512 gib", "8x h100-80gb-sxm host=512GiB"),
        ("8x h100 HOST=2TB", "8x h100-80gb-sxm host=2TB"),
        ("A100 80GB x8", "8x a100-80gb-sxm"),
        ("8 x A100 80GB", "8x a100-80gb-sxm"),
        ("8 A100s", "8x a100-80gb-sxm"),
        ("4 NVIDIA A100-PCIE-40GB", "4x a100-40gb-pcie"),
        ("a100:8", "8x a100-80gb-sxm"),
        ("A100-80GB: 4 host=1TiB", "4x a100-80gb-sxm host=1TiB"),
        ("l40s*2", "2x l40s"),
        ("l40s x 2", "2x l40s"),
        ("8x h100s", "8x h100-80gb-sxm"),
        ("8xA100", "8x a100-80gb-sxm"),
        ("8x mi300", "8x mi300x"),
        ("p4d.24xlarge", "8x a100-40gb-sxm host=1152GiB"),
        ("2x p5.48xlarge", "2n8x h100-80gb-sxm host=2TiB"),
        ("2n8x p5.48xlarge", "2n8x h100-80gb-sxm host=2TiB"),
        ("rtx-4090 free=22GiB", "1x rtx-4090 free=22GiB"),
        ("8x h100 free=70000MiB, host=1TiB", "8x h100-80gb-sxm host=1TiB free=70000MiB"),
        ("g5.12xlarge host=100GiB", "4x a10g host=100GiB"),
        ("a2-highgpu-8g", "8x a100-40gb-sxm host=680GiB"),
        ("Standard_ND96amsr_A100_v4", "8x a100-80gb-sxm host=1900GiB"),
        ("nc24ads a100 v4", "1x a100-80gb-pcie host=220GiB"),
    ],
)
def test_text_is_read_as_it_is_meant(text: str, spec: str):
    assert parse_hardware(text).spec == spec


@given(
    gpu=st.sampled_from(gpu_names()),
    gpus=st.integers(1, 128),
    nodes=st.integers(1, 4096),
    host=st.none() | st.integers(1, 1 << 50),
)
def test_spec_reads_back_to_the_same_hardware(gpu: str, gpus: int, nodes: int, host: int | None):
    hardware = Hardware(known_gpus()[gpu], gpus, nodes, host, source="--gpus")
    assert parse_hardware(hardware.spec) == hardware


@pytest.mark.parametrize("gpu", gpu_names())
@pytest.mark.parametrize("nodes", [1, 3])
def test_title_reads_back_too(gpu: str, nodes: int):
    hardware = Hardware(known_gpus()[gpu], 8, nodes, source="--gpus")
    assert parse_hardware(hardware.title) == hardware


def test_titles_are_for_people():
    assert parse_hardware("8x a100").title == "8x A100-80GB SXM"
    assert parse_hardware("2n8x h100").title == "2 nodes of 8x H100-80GB SXM"
    assert parse_hardware("4090").title == "1x RTX 4090"


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("512GiB", 512 << 30),
        ("1TiB", 1 << 40),
        ("2TB", 2 * 10**12),
        ("64G", 64 << 30),
        ("64 gb", 64 * 10**9),
        ("1.5TiB", 3 << 39),
        ("1000B", 1000),
    ],
)
def test_sizes(text: str, size: int):
    assert parse_size(text) == size


@pytest.mark.parametrize(
    ("text", "message", "remedy"),
    [
        ("", "names no GPU", "write for example"),
        ("8x", "names no GPU", "write for example"),
        ("8x a100-60gb", "unknown GPU `a100-60gb`", "did you mean `a100-80gb-sxm`"),
        ("5070 ti super", "unknown GPU `5070 ti super`", "did you mean `rtx-5070"),
        ("8x abacus", "unknown GPU `abacus`", "name it as nvidia-smi does"),
        ("0x a100", "has 0 GPUs per node", "1 to 128 GPUs per node"),
        ("1000x a100", "has 1000 GPUs per node", "<nodes>n<gpus>x"),
        ("0n8x a100", "on 0 nodes", "1 to 4096 nodes"),
        ("9999n8x a100", "on 9999 nodes", "1 to 4096 nodes"),
        ("8x a100 x8", "states the number of GPUs twice", "8x a100-80gb"),
        ("8x a100:8", "states the number of GPUs twice", "8x a100-80gb"),
        ("a100:0", "has 0 GPUs per node", "1 to 128 GPUs per node"),
        (f"{'9' * 5000}x a100", "GPUs per node on 1 nodes", "1 to 128 GPUs per node"),
        (f"a100 host={'9' * 400}TiB", "is not a size", "host=512GiB"),
        ("p4d.12xlarge", "unknown GPU `p4d.12xlarge`", "did you mean `p4d.24xlarge`"),
        ("2n4x p4d.24xlarge", "p4d.24xlarge has 8 GPUs", "write `2x p4d.24xlarge`"),
        ("a3-highgpu-3g", "unknown GPU", "a3-highgpu-8g"),
        ("mi300a", "unknown GPU `mi300a`", "did you mean `mi300x` (192 GB)"),
        ("rtx 3075", "unknown GPU `rtx 3075`", "did you mean `rtx-3070"),
        ("rtx 2065", "unknown GPU `rtx 2065`", "did you mean `rtx-2060-6gb` (6 GB)"),
        ("a900", "unknown GPU `a900`", "did you mean `a800-80gb-sxm` (80 GB)"),
        ("gb99", "unknown GPU `gb99`", "did you mean `gb10` (128 GB)?"),
        ("h99", "unknown GPU `h99`", "did you mean `h20-96gb` (96 GB) or `h20-3e` (141 GB)?"),
        ("rtx 3500 ada", "unknown GPU `rtx 3500 ada`", "did you mean `rtx-4000-ada` (20 GB)"),
        ("a100 host=", "`host=` is not a size", "host=512GiB"),
        ("a100 host=512", "`host=512` is not a size", "host=512GiB"),
        ("a100 host=0GiB", "`host=0GiB` is not a size", "host=512GiB"),
        ("a100 host=5parsecs", "is not a size", "host=512GiB"),
    ],
)
def test_what_cannot_be_read_says_where_and_what_to_do(text: str, message: str, remedy: str):
    with pytest.raises(InputError) as caught:
        parse_hardware(text, file="run.yml", line=3)
    assert message in caught.value.message
    assert remedy in caught.value.remedy
    assert (caught.value.file, caught.value.line) == ("run.yml", 3)


def test_source_says_where_the_text_stands():
    assert parse_hardware("a100").source == "--gpus"
    assert parse_hardware("a100", file="run.yml", line=3).source == "run.yml:3"
    assert parse_hardware("a100", file="advisor.toml").source == "advisor.toml"


@pytest.mark.parametrize(
    ("text", "outside_gib", "usable_gib"),
    [
        ("t4", 0.25, 14.56 - 0.25),
        ("rtx-4090", 0.45, 23.52 - 0.45),
        ("a100", 0.5, 79.14 - 0.5),
        ("rtx-5090", 0.6, 31.36 - 0.6),
        ("h100", 0.65, 79.11 - 0.65),
        ("8x h100", 1.1, 79.11 - 1.1),
        ("2n1x a100", 1.1, 79.14 - 1.1),
    ],
)
def test_usable_is_what_torch_reports_less_context_and_nccl(text: str, outside_gib: float, usable_gib: float):
    hardware = parse_hardware(text)
    assert hardware.outside_torch == int(outside_gib * GIB)
    assert abs(hardware.usable - usable_gib * GIB) <= 2


def test_what_others_leave_of_a_card_is_no_more_than_it_has():
    whole, shared = parse_hardware("1x rtx-4090"), parse_hardware("1x rtx-4090 free=20GiB")
    assert shared.usable == 20 * GIB - shared.outside_torch < whole.usable
    nearly = parse_hardware(f"1x rtx-4090 free={whole.gpu.total_bytes + 1}B")
    assert nearly.usable == whole.usable + 1
    with pytest.raises(InputError, match=r"free=25GiB` is more than a RTX 4090 has"):
        parse_hardware("1x rtx-4090 free=25GiB")
    with pytest.raises(InputError, match=r"`free=some` is not a size"):
        parse_hardware("1x rtx-4090 free=some")


def test_free_memory_limits_what_is_usable():
    gpu = parse_hardware("a100").gpu
    assert Hardware(gpu, 1, free_bytes=10 * GIB).usable == 10 * GIB - int(0.5 * GIB)
    assert Hardware(gpu, 1, free_bytes=200 * GIB).usable == Hardware(gpu, 1).usable
    assert Hardware(gpu, 1, free_bytes=0).usable == 0


def test_world_size_counts_all_nodes():
    assert parse_hardware("2n8x h100").world_size == 16


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("8x a100", "`a100` is read as A100-80GB SXM; if you mean another, write `a100-40gb-sxm`"),
        ("a100:8", "`a100-40gb-sxm`"),
        ("v100", "`v100` is read as V100-16GB SXM2; if you mean another, write `v100-32gb-sxm2`"),
        ("v100 pcie", "`v100-32gb-pcie`"),
        ("h100", "`h100` is read as H100-80GB SXM; if you mean another, write `h100-nvl-94gb`"),
        ("gh200", "`gh200-144gb`"),
        ("mi300", "MI300A has 128 GB"),
        ("2x p4d.24xlarge", "is read as 2 machines of 8 GPUs"),
    ],
)
def test_what_a_name_leaves_open_is_said(text: str, said: str):
    assert said in parse_hardware(text).assumed


@pytest.mark.parametrize(
    "text",
    ["8x a100-80gb", "h100 sxm5", "NVIDIA H100 PCIe", "h100 nvl", "4090", "t4", "mi300x", "p4d.24xlarge", *gpu_names()],
)
def test_a_name_that_is_clear_assumes_nothing(text: str):
    hardware = parse_hardware(text)
    assert hardware.assumed == hardware.gpu.roughly


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "16x h100-80gb-sxm",
            "is read as one node of 16 GPUs, where H100-80GB SXM has 8 as a rule; if they are 2 nodes",
        ),
        ("12x h200", "is read as one node of 12 GPUs, where H200 has 8 as a rule"),
        ("8x gb200", "write `2n4x gb200`"),
        ("8x h100-80gb-sxm", ""),
        ("2n8x h100-80gb-sxm", ""),
        ("1n16x h100-80gb-sxm", ""),
        ("6x rtx-3060-12gb", ""),
        ("2x p4d.24xlarge", "is read as 2 machines of 8 GPUs"),
    ],
)
def test_more_gpus_than_a_node_has_are_one_node_and_a_word(text: str, says: str):
    assumed = parse_hardware(text).assumed
    assert says in assumed
    assert bool(says) == bool(assumed)


@pytest.mark.parametrize("text", ["24GB", "1x 24gb", "24 GB", "24GiB", "24g", "1x 24 GB card"])
def test_a_card_may_be_known_by_its_memory_alone(text: str):
    hardware = parse_hardware(text)
    assert (hardware.spec, hardware.title) == ("1x 24gb", "1x 24 GB card")
    assert hardware.gpu.total_bytes == int(24 * 0.96 * GIB)
    assert hardware.usable == hardware.gpu.total_bytes - hardware.outside_torch
    assert hardware.gpu.bf16_tflops is None and "4 % less" in hardware.assumed


def test_several_cards_of_a_size():
    hardware = parse_hardware("2n8x 48GB host=1TiB")
    assert (hardware.spec, hardware.world_size) == ("2n8x 48gb host=1TiB", 16)
    assert parse_hardware(hardware.spec) == hardware


@pytest.mark.parametrize("text", ["0GB", "1GB", "9999GB", "24 parsecs", "24TB"])
def test_what_no_card_has_is_no_size(text: str):
    with pytest.raises(InputError, match="unknown GPU"):
        parse_hardware(text)


def test_a_card_of_ones_own_has_a_time_where_its_rates_are_stated():
    table = {"memory": "32GB", "bandwidth_gb_s": 800, "bf16_tflops": 90.5, "link_gb_s": 100, "fp8": True}
    gpu = own_gpu("ours", table)
    assert (gpu.bandwidth_bytes_per_s, gpu.bf16_tflops, gpu.link_bytes_per_s, gpu.fp8) == (8e11, 90.5, 1e11, True)
    assert parse_hardware("4x ours", own={"ours": gpu}).gpu is gpu
    assert own_gpu("ours", {"memory": "32GB", "bf16_tflops": 90.5}).bf16_tflops is None
    assert parse_hardware("4x ours", own={"ours": gpu}).assumed == ""
