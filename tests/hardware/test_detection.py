"""Detection, with a fake nvidia-smi on PATH and a fake pynvml among the modules."""

import os
import stat
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from advisor.hardware import Hardware, asking, detect, detection, parse_hardware
from advisor.hardware.detection import Card, gpu_of, visible
from advisor.hardware.gpu import GIB

MIB = 1 << 20
A100 = "{index}, GPU-aaaa000{index}, NVIDIA A100-SXM4-80GB, 81920, {free}, 8.0, Disabled"
Smi = Callable[..., None]
Put = Callable[[str], None]


@pytest.fixture
def nvml(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Puts a pynvml with the given text in front of whatever is installed; until then it has no library behind it."""
    file = tmp_path / "modules" / "pynvml.py"
    file.parent.mkdir()
    file.write_text("raise ImportError\n")
    monkeypatch.syspath_prepend(file.parent)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    return lambda text: file.write_text(text) and None


@pytest.fixture
def smi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nvml: object) -> Smi:
    """Puts an nvidia-smi on PATH that prints the given lines, if it is asked as the real one can be."""

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
        put(tmp_path, monkeypatch, script)

    return install


def put(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """An nvidia-smi that is this script."""
    command = folder / "nvidia-smi"
    command.write_text(script)
    command.chmod(command.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", str(folder), prepend=os.pathsep)


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


@pytest.mark.parametrize(
    ("printed", "total", "id_"),
    [
        ("NVIDIA GeForce RTX 4060 Ti", 8188, "rtx-4060-ti-8gb"),
        ("NVIDIA GeForce RTX 4060 Ti", 16380, "rtx-4060-ti-16gb"),
        ("NVIDIA GeForce RTX 3080", 12288, "rtx-3080-12gb"),
        ("NVIDIA GeForce RTX 2060", 12288, "rtx-2060-12gb"),
        ("NVIDIA GeForce RTX 4090", 49140, "rtx-4090-48gb"),
        ("NVIDIA GeForce RTX 4090", 24564, "rtx-4090"),
        ("Quadro RTX 6000", 24576, "quadro-rtx-6000"),
    ],
)
def test_two_sizes_of_one_name_are_told_apart_by_their_memory(smi: Smi, printed: str, total: int, id_: str):
    smi(f"0, GPU-1, {printed}, {total}, 8000, 8.9, [N/A]")
    assert detected().gpu.id == id_


def test_a_size_that_no_card_of_the_name_has_is_a_card_of_its_own(smi: Smi):
    smi("0, GPU-1, NVIDIA GeForce RTX 3070, 16384, 16000, 8.6, [N/A]")
    gpu = detected().gpu
    assert (gpu.id, gpu.title) == ("nvidia-geforce-rtx-3070", "NVIDIA GeForce RTX 3070")
    assert 15 * GIB < gpu.total_bytes < 16384 * MIB


def test_what_is_rough_of_a_detected_card_is_said(smi: Smi):
    smi("0, GPU-1, NVIDIA GeForce RTX 4060 Laptop GPU, 8188, 8000, 8.9, [N/A]")
    assert detected().assumed.startswith("RTX 4060 Laptop is approximate: ")


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


def test_a_hanging_driver_is_given_up_and_not_asked_again(smi: Smi, nvml: Put, monkeypatch: pytest.MonkeyPatch):
    smi(*a100s(1), seconds=60)
    nvml(NVML)
    monkeypatch.setattr(asking, "TIMEOUT_SECONDS", 0.1)
    assert detect() is None


def test_a_machine_without_nvidia_smi_has_no_hardware(nvml: Put, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert detect() is None


@pytest.mark.parametrize("entry", ["", ".", "bin"])
def test_no_program_of_the_working_directory_is_asked(
    nvml: Put, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, entry: str
):
    """It may be somebody else's repository; what a path names relatively lies there."""
    folder = tmp_path / "repo" / entry
    folder.mkdir(parents=True)
    put(folder, monkeypatch, f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    monkeypatch.setenv("PATH", f"{entry}{os.pathsep}/usr/bin{os.pathsep}/bin")
    monkeypatch.chdir(tmp_path / "repo")
    detect()
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("script", ["exec yes", "yes | cat", "yes &\nyes"])
def test_an_endless_answer_is_cut_off(nvml: Put, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, script: str):
    """Without waiting for the end of its time, and with no more of it kept than an answer may be."""
    put(tmp_path, monkeypatch, f"#!/bin/sh\necho $$ > {tmp_path}/pid\n{script}\n")
    monkeypatch.setattr(asking, "TIMEOUT_SECONDS", 600)
    tracemalloc.start()
    assert detect() is None
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 100 * asking.MOST_BYTES
    while alive((tmp_path / "pid").read_text().strip()):
        time.sleep(0.01)


def alive(group: str) -> bool:
    """Whether a process of a group is there and has not ended."""
    for file in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, _, found = file.read_text().rpartition(")")[2].split()[:3]
            if found == group and state != "Z":
                return True
    return False


NVML = """
class Memory:
    total, free = 143771 << 20, 100_000 << 20


def text(value):
    return value


print("Loading the driver ...")
nvmlInit = lambda: None
nvmlDeviceGetCount = lambda: 2
nvmlDeviceGetHandleByIndex = lambda index: index
nvmlDeviceGetName = lambda handle: text("NVIDIA H200")
nvmlDeviceGetUUID = lambda handle: text(f"GPU-cafe{handle}")
nvmlDeviceGetMemoryInfo = lambda handle: Memory
nvmlDeviceGetCudaComputeCapability = lambda handle: (9, 0)
"""
"""A pynvml with two H200 without MIG, which also prints something."""
MIG = "nvmlDeviceGetMigMode = lambda handle: [{mode}, {mode}]\n"
IN_BYTES = NVML.replace("return value", "return value.encode()")
"""As old versions answered."""


@pytest.mark.parametrize("text", [NVML, IN_BYTES, NVML + MIG.format(mode=0)])
def test_nvml_is_asked_where_nvidia_smi_has_no_answer(nvml: Put, monkeypatch: pytest.MonkeyPatch, text: str):
    nvml(text)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-cafe1")
    hardware = detected()
    assert hardware.gpu == parse_hardware("h200").gpu
    assert hardware.gpus_per_node == 1
    assert hardware.free_bytes == 100_000 * MIB


@pytest.mark.parametrize("status", [0, 6])
def test_nvml_is_asked_where_nvidia_smi_does_not_know_a_column(smi: Smi, nvml: Put, status: int):
    smi('Field "compute_cap" is not a valid field to query.', status=status)
    nvml(NVML)
    assert detected().gpus_per_node == 2


def test_nvidia_smi_is_enough(smi: Smi, nvml: Put, tmp_path: Path):
    smi(*a100s(8))
    nvml(f"open({str(tmp_path / 'asked')!r}, 'w')\n")
    assert detected().gpus_per_node == 8
    assert not (tmp_path / "asked").exists()


def test_nvml_knows_of_mig(nvml: Put):
    nvml(NVML + MIG.format(mode=1))
    assert detect() is None


def test_pynvml_may_be_a_package(nvml: Put, tmp_path: Path):
    folder = tmp_path / "modules" / "pynvml"
    folder.mkdir()
    (folder / "__init__.py").write_text("from .nvml import *\n")
    (folder / "nvml.py").write_text(NVML)
    assert detected().gpus_per_node == 2


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "raise SystemExit(0)",
        "raise KeyboardInterrupt",
        "import os; os.abort()",
        "import os; os.kill(os.getppid(), 0); os._exit(0)",
        "import os; os.write(1, b'0, GPU-1, NVIDIA T4, 15360, 15000, 7.5, [N/A]')",
        f"{NVML}\nnvmlInit = lambda: exit()",
        f"{NVML}\nimport time; nvmlInit = lambda: time.sleep(600)",
        f"{NVML}\nimport os, time; nvmlInit = lambda: os.fork() and time.sleep(600) or time.sleep(600)",
    ],
)
def test_whatever_the_module_of_a_driver_does_there_is_no_hardware(
    nvml: Put, monkeypatch: pytest.MonkeyPatch, text: str, capfd: pytest.CaptureFixture[str]
):
    nvml(text)
    monkeypatch.setattr(asking, "TIMEOUT_SECONDS", 2)
    assert detect() is None
    assert capfd.readouterr() == ("", "")


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
    assert detected().spec == f"1x a100-80gb-sxm host={host}GiB free=80000MiB"
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
