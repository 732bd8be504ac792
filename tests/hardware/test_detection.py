"""Detection, with a fake nvidia-smi on PATH and a fake pynvml."""

import os
import stat
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from advisor.hardware import Hardware, detect, detection, parse_hardware
from advisor.hardware.detection import Card, gpu_of, visible
from advisor.hardware.gpu import GIB

MIB = 1 << 20
A100 = "{index}, GPU-aaaa000{index}, NVIDIA A100-SXM4-80GB, 81920, {free}, 8.0, Disabled"
Smi = Callable[..., None]


@pytest.fixture
def smi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Smi:
    """Puts an nvidia-smi on PATH that prints the given lines, if it is asked as the real one can be."""
    monkeypatch.setitem(sys.modules, "pynvml", None)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)

    def install(*lines: str, status: int = 0, seconds: int = 0) -> None:
        asked = "--query-gpu=index,uuid,name,memory.total,memory.free,compute_cap,mig.mode.current"
        script = f"""#!/bin/sh
[ "$1" = "{asked}" ] || exit 2
[ "$2" = "--format=csv,noheader,nounits" ] || exit 3
[ {seconds} = 0 ] || exec sleep {seconds}
cat <<'EOF'
{os.linesep.join(lines)}
EOF
exit {status}
"""
        command = tmp_path / "nvidia-smi"
        command.write_text(script)
        command.chmod(command.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)

    return install


def a100s(count: int, free: int = 80_000) -> list[str]:
    return [A100.format(index=index, free=free) for index in range(count)]


def detected() -> Hardware:
    hardware = detect()
    assert hardware is not None
    return hardware


def test_a_known_card_is_the_catalogues(smi: Smi):
    smi(*a100s(8))
    hardware = detected()
    assert hardware.gpu == parse_hardware("a100-80gb-sxm").gpu
    assert (hardware.gpus_per_node, hardware.nodes) == (8, 1)
    assert hardware.free_bytes == 80_000 * MIB
    assert hardware.source == "detected"


def test_the_smallest_card_and_the_least_free_memory_count(smi: Smi):
    smi(
        "0, GPU-1, NVIDIA A100-SXM4-80GB, 81920, 30000, 8.0, Disabled",
        "1, GPU-2, NVIDIA GeForce RTX 4090, 24564, 24000, 8.9, [N/A]",
        "2, GPU-3, NVIDIA GeForce RTX 4090, 24564, 12000, 8.9, [N/A]",
    )
    hardware = detected()
    assert hardware.gpu == parse_hardware("4090").gpu
    assert hardware.free_bytes == 12000 * MIB
    assert hardware.usable == 12000 * MIB - hardware.outside_torch


@pytest.mark.parametrize(
    ("devices", "gpus"),
    [
        ("0", 1),
        ("1,3", 2),
        (" 2 , 0", 2),
        ("GPU-aaaa0001,GPU-aaaa0002", 2),
        ("GPU-aaaa0003", 1),
        ("0,-1,1", 1),
        ("0,9,1", 1),
    ],
)
def test_cuda_visible_devices_is_honoured(smi: Smi, monkeypatch: pytest.MonkeyPatch, devices: str, gpus: int):
    smi(*a100s(4))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", devices)
    assert detected().gpus_per_node == gpus


@pytest.mark.parametrize("devices", ["", "-1", "MIG-1f2e", "NoDevFiles", "GPU-ffff"])
def test_no_visible_gpu_is_no_hardware(smi: Smi, monkeypatch: pytest.MonkeyPatch, devices: str):
    smi(*a100s(4))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", devices)
    assert detect() is None


def test_visible_devices_choose_the_card_that_is_judged():
    small = Card(0, "GPU-small", "NVIDIA GeForce RTX 4090", 24564 * MIB, 24000 * MIB, (8, 9), False)
    large = Card(1, "GPU-large", "NVIDIA H200", 143771 * MIB, 143000 * MIB, (9, 0), False)
    assert visible([small, large], "1") == [large]
    assert visible([small, large], "GPU-la,0") == [large, small]
    assert visible([small, large], None) == [small, large]


def test_a_card_cut_up_by_mig_cannot_be_told(smi: Smi):
    smi("0, GPU-1, NVIDIA A100-SXM4-80GB, 81920, 81000, 8.0, Enabled")
    assert detect() is None


def test_ecc_takes_from_a_known_cards_own_total(smi: Smi):
    smi("0, GPU-1, NVIDIA RTX A6000, 46068, 45600, 8.6, [N/A]")
    hardware, listed = detected(), parse_hardware("rtx-a6000").gpu
    assert hardware.gpu.id == "rtx-a6000"
    assert hardware.gpu.total_bytes == listed.total_bytes - (49140 - 46068) * MIB


def test_the_small_variant_of_a_name_is_not_taken_for_the_large_one(smi: Smi):
    smi("0, GPU-1, NVIDIA GeForce RTX 4060 Ti, 8188, 8000, 8.9, [N/A]")
    gpu = detected().gpu
    assert (gpu.id, gpu.title) == ("nvidia-geforce-rtx-4060-ti", "NVIDIA GeForce RTX 4060 Ti")
    assert 7 * GIB < gpu.total_bytes < 8188 * MIB


@pytest.mark.parametrize(
    ("capability", "bf16", "fp8"),
    [("7.5", False, False), ("8.6", True, False), ("8.9", True, True), ("12.0", True, True)],
)
def test_an_unknown_card_can_what_its_compute_capability_can(smi: Smi, capability: str, bf16: bool, fp8: bool):
    smi(f"0, GPU-1, NVIDIA Mystery 9000, 49152, 48000, {capability}, [N/A]")
    gpu = detected().gpu
    assert gpu.title == "NVIDIA Mystery 9000"
    assert (gpu.bf16, gpu.fp8, gpu.flash_attention) == (bf16, fp8, bf16)
    assert gpu.bandwidth_bytes_per_s > 0
    assert 46 * GIB < gpu.total_bytes < 48 * GIB


@pytest.mark.parametrize("name", ["h200", "a100", "rtx-4090", "t4", "b300"])
def test_a_detected_card_has_no_more_than_the_same_one_by_name(name: str):
    listed = parse_hardware(name).gpu
    assert listed.driver_bytes is not None
    shown = listed.total_bytes + listed.driver_bytes
    card = Card(0, "GPU-1", listed.title, shown, shown, listed.compute_capability or (0, 0), False)
    assert gpu_of(card) == listed
    renamed = gpu_of(replace(card, name="NVIDIA Mystery 9000"))
    assert renamed.total_bytes <= listed.total_bytes
    assert renamed.bandwidth_bytes_per_s > 0


@pytest.mark.parametrize(
    "lines",
    [
        (),
        ("No devices were found",),
        ("0, GPU-1, NVIDIA GB10, [N/A], [N/A], 12.1, [N/A]",),
        ("0, GPU-1",),
    ],
)
def test_an_answer_that_says_nothing_is_no_hardware(smi: Smi, lines: tuple[str, ...]):
    smi(*lines)
    assert detect() is None


def test_a_failing_driver_is_no_hardware(smi: Smi):
    smi(*a100s(1), status=9)
    assert detect() is None


def test_a_hanging_driver_is_given_up(smi: Smi, monkeypatch: pytest.MonkeyPatch):
    smi(*a100s(1), seconds=60)
    monkeypatch.setattr(detection, "TIMEOUT_SECONDS", 0.1)
    assert detect() is None


def test_a_machine_without_nvidia_smi_has_no_hardware(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setitem(sys.modules, "pynvml", None)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert detect() is None


def fake_nvml(*, mig: int | None = None, text: Callable[[str], object] = str) -> ModuleType:
    """A pynvml with two H200; ``text`` makes its strings, which old versions gave as bytes."""

    def uuid(handle: int) -> object:
        return text(f"GPU-cafe{handle}")

    def mig_mode(handle: int) -> list[int]:
        if mig is None:
            raise RuntimeError("Not Supported")
        return [mig, mig]

    def answer(value: object) -> Callable[..., object]:
        return lambda *_: value

    module = ModuleType("pynvml")
    calls: dict[str, object] = {
        "nvmlInit": answer(None),
        "nvmlShutdown": answer(None),
        "nvmlDeviceGetCount": answer(2),
        "nvmlDeviceGetHandleByIndex": int,
        "nvmlDeviceGetName": answer(text("NVIDIA H200")),
        "nvmlDeviceGetUUID": uuid,
        "nvmlDeviceGetMemoryInfo": answer(SimpleNamespace(total=143771 * MIB, free=100_000 * MIB)),
        "nvmlDeviceGetCudaComputeCapability": answer((9, 0)),
        "nvmlDeviceGetMigMode": mig_mode,
    }
    vars(module).update(calls)
    return module


@pytest.mark.parametrize("text", [str, str.encode])
@pytest.mark.parametrize("mig", [None, 0])
def test_nvml_is_asked_before_nvidia_smi(
    smi: Smi, monkeypatch: pytest.MonkeyPatch, mig: int | None, text: Callable[[str], object]
):
    smi(*a100s(8))
    monkeypatch.setitem(sys.modules, "pynvml", fake_nvml(mig=mig, text=text))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-cafe1")
    hardware = detected()
    assert hardware.gpu == parse_hardware("h200").gpu
    assert hardware.gpus_per_node == 1
    assert hardware.free_bytes == 100_000 * MIB


def test_nvml_knows_of_mig(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setitem(sys.modules, "pynvml", fake_nvml(mig=1))
    assert detect() is None


def test_nvml_without_its_library_leaves_it_to_nvidia_smi(smi: Smi, monkeypatch: pytest.MonkeyPatch):
    smi(*a100s(2))
    broken = ModuleType("pynvml")
    monkeypatch.setitem(sys.modules, "pynvml", broken)
    assert detected().gpus_per_node == 2


@pytest.mark.parametrize(
    ("own", "limits", "host"),
    [
        ("", {}, 251),
        ("0::/\n", {"memory.max": "max"}, 251),
        ("0::/\n", {"memory.max": str(64 * GIB)}, 64),
        ("0::/\n", {"memory.max": str(512 * GIB)}, 251),
        ("0::/slurm/job_7\n", {"slurm/job_7/memory.max": str(48 * GIB), "slurm/memory.max": "max"}, 48),
        ("0::/slurm/job_7\n", {"slurm/job_7/memory.max": "max", "slurm/memory.max": str(96 * GIB)}, 96),
        ("0::/docker/abc\n", {"memory.max": str(32 * GIB)}, 32),
        ("0::/../..\n", {"memory.max": str(32 * GIB)}, 32),
        ("5:memory:/docker/abc\n", {"memory/memory.limit_in_bytes": str(16 * GIB)}, 16),
        ("4:cpu,memory:/job\n0::/\n", {"memory/job/memory.limit_in_bytes": str(24 * GIB)}, 24),
        ("5:memory:/\n", {"memory/memory.limit_in_bytes": "9223372036854771712"}, 251),
        ("no cgroups", {"memory.max": "\n"}, 251),
    ],
)
def test_host_memory_is_the_machines_or_the_lowest_limit_of_its_cgroups(
    own: str, limits: dict[str, str], host: int, smi: Smi, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    pages = {"SC_PHYS_PAGES": (251 * GIB + GIB // 2) // 4096, "SC_PAGE_SIZE": 4096}
    monkeypatch.setattr(os, "sysconf", pages.__getitem__)
    monkeypatch.setattr(detection, "CGROUPS", tmp_path / "cgroup")
    monkeypatch.setattr(detection, "OWN_CGROUPS", tmp_path / "own")
    (tmp_path / "own").write_text(own)
    for name, limit in limits.items():
        file = tmp_path / "cgroup" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(limit + "\n")
    smi(*a100s(1))
    assert detected().host_bytes == host * GIB
    assert detected().spec == f"1x a100-80gb-sxm host={host}GiB"
    assert detected().host_words == f"{host}.0 GiB detected"


def test_host_memory_may_be_unknown(smi: Smi, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delattr(os, "sysconf")
    smi(*a100s(1))
    assert detected().host_bytes is None


def test_neither_reading_nor_detection_imports_torch(smi: Smi):
    smi(*a100s(1))
    code = (
        "import sys\n"
        "from advisor.hardware import detect, parse_hardware\n"
        "assert parse_hardware('8x a100') and detect()\n"
        "print(sorted({'torch', 'pydantic', 'importlib.metadata'} & set(sys.modules)))\n"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"
