# pyright: basic
"""Which rows the ranks of a context-parallel group read, as accelerate's loader hands them out."""

from unittest import mock

import pytest

torch = pytest.importorskip("torch")
accelerate = pytest.importorskip("accelerate")

from accelerate.data_loader import prepare_data_loader  # noqa: E402
from accelerate.state import PartialState  # noqa: E402
from accelerate.utils import DistributedType  # noqa: E402

pytestmark = pytest.mark.oracle


class Mesh:
    """Four ranks that share each row."""

    mesh_dim_names = ("cp",)

    def __getitem__(self, name: str) -> "Mesh":
        return self

    def size(self) -> int:
        return 4


def rows(rank: int, kind: DistributedType) -> list[int]:
    """The rows of a rank's first batch of two."""
    PartialState(cpu=True)
    loader = torch.utils.data.DataLoader(torch.arange(16), batch_size=2)
    with mock.patch.dict(PartialState._shared_state, distributed_type=kind):
        prepared = prepare_data_loader(
            loader, num_processes=4, process_index=rank, put_on_device=False, rng_types=[], torch_device_mesh=Mesh()
        )
        sampler = prepared.batch_sampler
        return next(iter(sampler))


def test_ranks_of_a_group_read_the_same_rows_but_under_deepspeed():
    assert [rows(rank, DistributedType.FSDP) for rank in range(4)] == [[0, 1]] * 4
    assert [rows(rank, DistributedType.DEEPSPEED) for rank in range(4)] == [[0, 1], [2, 3], [4, 5], [6, 7]]
