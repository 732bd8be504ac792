# pyright: basic, reportMissingImports=false
"""DDP itself on fake tensors, over processes that are not there."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any
from unittest import mock

import torch
import torch.distributed
from torch._subclasses.fake_tensor import FakeTensor, unset_fake_temporarily
from torch.nn.parallel import distributed
from torch.testing._internal.distributed.fake_pg import FakeStore


class RealReducer:
    """torch's reducer. It reads the order of gradients, and so makes its buckets of real memory."""

    def __init__(self, reducer: Any) -> None:
        self.reducer = reducer

    def __getattr__(self, name: str) -> Any:
        return getattr(self.reducer, name)

    def _rebuild_buckets(self) -> bool:
        with unset_fake_temporarily():
            return self.reducer._rebuild_buckets()


def is_real(args: Any) -> bool:
    """Whether an operation reads or writes such a bucket, whose memory is known."""
    return bool(args) and isinstance(args[0], torch.Tensor) and not isinstance(args[0], FakeTensor)


def reduced(_state: Any, bucket: torch.distributed.GradBucket) -> torch.futures.Future[torch.Tensor]:
    """The sum over the processes, which is there at once."""
    future: torch.futures.Future[torch.Tensor] = torch.futures.Future()
    future.set_result(bucket.buffer())
    return future


@contextmanager
def processes(setting: dict[str, Any]) -> Iterator[None]:
    """Two processes, of which the other says nothing, where the setting is replicated."""
    if not setting["replicas"]:
        yield
        return
    torch.distributed.init_process_group("fake", rank=0, world_size=2, store=FakeStore())
    with mock.patch.object(distributed, "_verify_param_shape_across_processes", lambda *_args, **_kwargs: None):
        try:
            yield
        finally:
            torch.distributed.destroy_process_group()


KINDS: dict[str, dict[str, Any]] = {
    "usual": {},
    "capped": {"bucket_cap_mb": 1},
    "finds unused": {"find_unused_parameters": True},
}


def replica(model: Any, forward: Any, kind: str) -> Any:
    """The model under DDP, whose forward is the Trainer's. Without buffers: bitsandbytes' statistics are none to DDP."""
    model.forward = forward
    names = [name for name, _ in model.named_buffers()]
    distributed.DistributedDataParallel._set_params_and_buffers_to_ignore_for_model(model, names)
    ddp = distributed.DistributedDataParallel(model, **KINDS[kind])
    ddp.register_comm_hook(None, reduced)
    ddp.reducer = RealReducer(ddp.reducer)
    return ddp


def accumulating(run: Any, *, is_last: bool) -> Any:
    """What the Trainer does in micro-steps whose gradients are only added."""
    return nullcontext() if is_last or not hasattr(run, "no_sync") else run.no_sync()
