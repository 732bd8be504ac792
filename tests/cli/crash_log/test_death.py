"""Logs of runs that died, in torch's forms old and new."""

import pytest

from advisor.cli.crash_log import Death, read_death

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
    assert died(NEW).in_pieces
    assert not died(OLD.replace("20.00 MiB", "2.00 GiB")).in_pieces


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
