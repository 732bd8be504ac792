"""Logs of runs that died, in torch's forms old and new."""

import pytest

from advisor.cli.crash_log import Death, read_death
from advisor.cli.crash_log.guess import guess
from advisor.cli.crash_log.log import clipped
from advisor.errors import InputError

GIB, MIB = 1 << 30, 1 << 20
NEW = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 3 has a total capacity of 79.15 GiB of "
    "which 1.05 GiB is free. Including non-PyTorch memory, this process has 78.09 GiB memory in use. Of the allocated "
    "memory 75.38 GiB is allocated by PyTorch, and 1.73 GiB is reserved by PyTorch but unallocated. If reserved but "
    "unallocated memory is large try setting PYTORCH_ALLOC_CONF=expandable_segments:True to avoid fragmentation."
)
MISSPELT = NEW.replace("capacity", "capacty").replace("torch.OutOfMemoryError", "torch.cuda.OutOfMemoryError")
OLD = (
    "RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 23.69 GiB total capacity; 21.98 GiB already "
    "allocated; 11.69 MiB free; 22.31 GiB reserved in total by PyTorch) If reserved memory is >> allocated memory try "
    "setting max_split_size_mb to avoid fragmentation."
)
FIRST = "RuntimeError: CUDA out of memory. Tried to allocate 1.50 GiB (GPU 1; 15.78 GiB total capacity; 14.00 GiB already allocated; 700.00 MiB free; 14.50 GiB cached)"


def frames(*calls: str) -> str:
    lines = "".join(f'  File "/venv/site-packages/{call}\n' for call in calls)
    return f"Traceback (most recent call last):\n{lines}"


TRAINING = 'transformers/trainer.py", line 3749, in training_step'
BACKWARD = 'torch/autograd/graph.py", line 865, in _engine_run_backward'
LOADING = 'modeling_utils.py", line 4, in from_pretrained'
FORWARD = 'transformers/models/llama/modeling_llama.py", line 480, in forward'


def died(log: str) -> Death:
    found = read_death(log)
    assert found is not None
    return found


@pytest.mark.parametrize("message", [NEW, MISSPELT])
def test_figures_of_the_new_message(message: str):
    death = died(f"{frames(TRAINING, FORWARD)}{message}\n")
    assert (death.cause, death.gpu, death.tried) == ("gpu", 3, 2 * GIB)
    assert death.capacity == round(79.15 * GIB)
    assert death.free == round(1.05 * GIB)
    assert death.allocated == round(75.38 * GIB)
    assert death.unallocated == round(1.73 * GIB)
    assert death.needed == death.allocated + 2 * GIB
    assert death.available == death.allocated + death.unallocated + death.free


def test_figures_of_the_old_message():
    death = died(OLD)
    assert (death.gpu, death.tried, death.free) == (0, 20 * MIB, round(11.69 * MIB))
    assert death.allocated == round(21.98 * GIB)
    assert death.unallocated == round(22.31 * GIB) - round(21.98 * GIB)
    assert died(FIRST).tried == round(1.5 * GIB)


def test_a_message_broken_over_lines_with_ranks_before_them():
    log = "".join(f"[rank1]: {part}.\n" for part in NEW.split(". "))
    death = died(log)
    assert death.tried == 2 * GIB
    assert death.line == 1


def test_memory_that_was_there_in_pieces():
    assert died(NEW.replace("75.38", "69.38").replace("1.73", "7.73")).in_pieces
    assert not died(NEW).in_pieces
    assert not died(OLD.replace("20.00 MiB", "2.00 GiB")).in_pieces


@pytest.mark.parametrize(
    ("tried", "free", "pieces", "allocated", "in_pieces"),
    [
        ("56.00 MiB", "50.00 MiB", "150.00 MiB", "77.90 GiB", False),
        ("20.00 MiB", "11.00 MiB", "3.00 GiB", "75.00 GiB", False),
        ("2.00 GiB", "0.50 GiB", "9.00 GiB", "68.00 GiB", True),
        ("12.00 GiB", "0.50 GiB", "9.00 GiB", "68.00 GiB", False),
        ("1.00 GiB", "0.50 GiB", "0 bytes", "77.00 GiB", False),
    ],
)
def test_a_full_card_is_no_fragmented_one(tried: str, free: str, pieces: str, allocated: str, in_pieces: bool):
    message = NEW.replace("2.00 GiB", tried).replace("1.05 GiB", free).replace("1.73 GiB", pieces)
    death = died(message.replace("75.38 GiB", allocated))
    assert death.tried is not None and death.unallocated is not None
    assert death.in_pieces is in_pieces


def test_a_request_larger_than_the_card():
    assert died(NEW.replace("2.00 GiB", "125537.00 GiB")).too_large
    assert not died(NEW).too_large
    assert not died("CUDA error: out of memory").too_large


def test_apples_message():
    death = died(
        "RuntimeError: MPS backend out of memory (MPS allocated: 17.66 GB, other allocations: 384.00 KB, max allowed: "
        "18.13 GB). Tried to allocate 500.00 MB on private pool. Use PYTORCH_MPS_HIGH_WATERMARK_RATIO=0.0 to disable"
    )
    assert (death.cause, death.tried, death.capacity) == ("apple", 500 * MIB, round(18.13 * GIB))
    assert death.allocated == round(17.66 * GIB)


@pytest.mark.parametrize(
    "line",
    [
        "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing",
        "ValueError: ... (6.10 GiB KV cache is needed, which is larger than the available KV cache memory (2.00 GiB).",
        "ValueError: Free memory on device (2.0/23.5 GiB) on startup is less than desired GPU memory utilization (0.9)",
    ],
)
def test_vllm_without_room_for_its_cache(line: str):
    assert died(f"(EngineCore_0 pid=9) ERROR {line}\n").cause == "vllm"


def test_what_followed_on_other_ranks_is_no_cause():
    log = "[rank1]: NCCL error in: ProcessGroupNCCL.cpp, ncclRemoteError\n" + NEW + "\nexits with return code = -9\n"
    death = died(log)
    assert (death.cause, death.line, death.followed) == ("gpu", 2, 1)
    assert died(NEW).followed == 0


@pytest.mark.parametrize(
    ("log", "line"),
    [
        (NEW.replace("2.00 GiB", "9" * 400 + " TiB"), 1),
        (NEW.replace("79.15", "9" * 1300), 1),
        ("\n" + NEW.replace("GPU 3", "GPU " + "3" * 1400), 2),
        (NEW.replace("GPU 3", "GPU 10000"), 1),
    ],
)
def test_figures_that_cannot_be_meant_are_said_in_a_line(log: str, line: int):
    with pytest.raises(InputError) as caught:
        read_death(log)
    assert caught.value.line == line
    assert len(caught.value.message) < 80


@pytest.mark.parametrize("rank", ["[rank999999999999999]:", "[rank30000000]:", "rank " + "5" * 5000, "rank: 65536"])
def test_a_rank_that_cannot_be_meant_is_said_in_a_line(rank: str):
    log = f"{rank} step 1\n{NEW}"
    with pytest.raises(InputError) as caught:
        guess(died(log), log)
    assert caught.value.line == 1
    assert len(caught.value.message) < 80


@pytest.mark.parametrize("word", ["NCCL ", "unhandled cuda error ", "in step ", "Killed: line 1: 1 ", "[rank1]: ", "9"])
def test_a_long_line_is_no_more_work_when_it_doubles(word: str):
    once, twice = (clipped(f"a\n{word * count}\n{NEW}") for count in (50_000, 100_000))
    assert len(once) == len(twice) < 10_000
    assert died(f"a\n{word * 100_000}\n{NEW}").line == 3


def test_clipping_keeps_short_lines_and_both_ends_of_long_ones():
    assert clipped(f"{NEW}\r\n{NEW}\n") == f"{NEW}\r\n{NEW}\n"
    cut = clipped("start" + "x" * 100_000 + "end")
    assert cut.startswith("start") and cut.endswith("end")


@pytest.mark.parametrize(
    ("gib", "log", "card", "others"),
    [
        ("23.68", "", "rtx-3090", ("RTX 4090", "A30", "RTX A5000")),
        ("23.68", "device: NVIDIA GeForce RTX 4090\n", "rtx-4090", ()),
        ("79.15", "", "a100-80gb-sxm", ("H100-80GB SXM", "A100-80GB PCIe")),
        ("79.15", "NVIDIA H100 80GB HBM3, 81559 MiB\n", "h100-80gb-sxm", ()),
        ("22.06", "NVIDIA A10G\n", "a10g", ()),
        ("31.75", "", "v100-32gb-sxm2", ("RTX 5090",)),
    ],
)
def test_a_card_is_guessed_from_its_total_and_named_as_a_guess(gib: str, log: str, card: str, others: tuple[str, ...]):
    log += NEW.replace("79.15", gib)
    found = guess(died(log), log)
    assert found is not None
    assert found.hardware.gpu.id == card
    assert ("guessed" in found.lines[0]) is bool(others)
    assert all(other in found.lines[0] for other in others)


@pytest.mark.parametrize(
    ("before", "gpu", "count", "seen"),
    [
        ("", "GPU 5", 6, "Assuming 6 GPUs, from `GPU 5`."),
        ("[rank7]: died\n", "GPU 3", 8, "Assuming 8 GPUs, from `[rank7]`."),
        ("  rank      : 1 (local_rank: 1)\n", "GPU 0", 2, "Assuming 2 GPUs, from `rank : 1`."),
        ("[PG 0 (default_pg) Rank 9] Watchdog\n", "GPU 0", 10, "Assuming 10 GPUs, from `[PG 0 (default_pg) Rank 9]`."),
        ("LoRA rank 64\n", "GPU 0", 1, "Assuming 1 GPU, from `GPU 0`."),
    ],
)
def test_the_number_of_gpus_is_a_guess_that_says_from_what(before: str, gpu: str, count: int, seen: str):
    log = before + NEW.replace("GPU 3", gpu)
    found = guess(died(log), log)
    assert found is not None
    assert found.lines[-1] == seen
    assert found.hardware.world_size >= count
    assert found.hardware.gpus_per_node == min(count, 8)


def test_no_card_of_that_size_is_no_guess():
    log = NEW.replace("79.15", "50.00")
    assert guess(died(log), log) is None
    assert guess(died("CUDA error: out of memory"), "") is None


@pytest.mark.parametrize(
    ("calls", "moment"),
    [
        (('axolotl/loaders/model.py", line 870, in load', 'modeling_utils.py", line 4, in from_pretrained'), "load"),
        (('transformers/trainer.py", line 2, in _inner_training_loop', TRAINING, FORWARD), "forward and loss"),
        ((TRAINING, 'loss/loss_utils.py", line 36, in fixed_cross_entropy'), "forward and loss"),
        ((TRAINING, BACKWARD), "backward"),
        ((TRAINING, BACKWARD, 'torch/utils/checkpoint.py", line 1128, in unpack_hook', FORWARD), "backward"),
        (('torch/optim/adamw.py", line 715, in _multi_tensor_adamw',), "optimizer step"),
        (('deepspeed/runtime/zero/stage3.py", line 2240, in _prepare_fp32_grad_for_sub_group',), "optimizer step"),
        (('trainer.py", line 4, in evaluation_loop', 'trainer.py", line 5, in prediction_step', FORWARD), "evaluation"),
        (('trainer.py", line 4, in _maybe_log_save_evaluate', 'trainer.py", line 5, in _save_checkpoint'), "save"),
        (('accelerate/accelerator.py", line 2, in _prepare_deepspeed',), "prepare"),
    ],
)
def test_the_moment_is_read_off_the_traceback(calls: tuple[str, ...], moment: str):
    assert died(f"{frames(*calls)}{NEW}").moment == moment


def test_the_traceback_just_before_counts():
    log = frames(TRAINING, BACKWARD) + "ValueError: caught\n" + frames(LOADING) + NEW
    assert died(log).moment == "load"


@pytest.mark.parametrize(
    "line",
    [
        "  exitcode  : -9 (pid: 4242)",
        "torch.multiprocessing.spawn.ProcessExitedException: Signal 9 (SIGKILL) received by PID 99",
        "slurmstepd: error: Detected 1 oom-kill event(s) in StepId=1.0",
        "slurmstepd: error: Detected 1 oom_kill event in StepId=1.0",
        "Out of memory: Killed process 4242 (python)",
        "srun: error: node1: task 0: exited with code 137",
        "./run.sh: line 3:  4242 Killed                  accelerate launch",
        "Killed",
        "[2024-05-01 10:00:00,000] [ERROR] [launch.py:341:sigkill_handler] ['python', '-u', 'train.py'] exits with return code = -9",
        "    Reason:       OOMKilled",
        "    Exit Code:    137",
        "command terminated with exit code 137",
        "train-1 exited with code 137",
        "subprocess.CalledProcessError: Command '['python']' died with <Signals.SIGKILL: 9>.",
        "subprocess.CalledProcessError: Command '['python']' returned non-zero exit status 137.",
        "RuntimeError: [enforce fail at alloc_cpu.cpp:118] . DefaultCPUAllocator: can't allocate memory",
    ],
)
def test_a_host_that_killed_the_run(line: str):
    assert died(f"step 1\n{line}\n").cause == "host"


def test_a_gpu_that_ran_out_counts_before_the_kill_that_followed():
    assert died(f"{NEW}\n  exitcode  : -9 (pid: 4242)\n").cause == "gpu"


@pytest.mark.parametrize(
    "line",
    [
        "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
        "RuntimeError: CUDA error: out of memory",
        "torch.distributed.DistBackendError: NCCL error ... Cuda failure 2 'out of memory'",
        "ncclUnhandledCudaError: unhandled cuda error, NCCL version 2.21, out of memory",
        "Error out of memory at line 380 in file /src/csrc/pythonInterface.c",
        "Error out of memory at line 88 in file /src/csrc/ops.cu",
    ],
)
def test_libraries_that_ran_out_without_figures(line: str):
    death = died(line)
    assert (death.cause, death.tried) == ("gpu", None)


def test_another_rank_that_died_first():
    assert died("[rank2]: Watchdog caught collective operation timeout: WorkNCCL(SeqNum=4)").cause == "elsewhere"


@pytest.mark.parametrize("log", ["", "all is well\n", "Not Killed here\n", "loss 0.1, free 3 GiB"])
def test_a_log_of_no_death(log: str):
    assert read_death(log) is None
