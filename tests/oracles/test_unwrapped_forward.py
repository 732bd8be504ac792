# pyright: basic
"""What a loss leaves out that calls the model past its wrapper, or past its own logits: of torch and transformers."""

import os
import re
from importlib.util import find_spec
from pathlib import Path

import pytest

from advisor.models.family import families

pytestmark = pytest.mark.oracle
torch = pytest.importorskip("torch")
SCALED = re.compile(r"logits = logits [*/] self\.(?:config\.)?logits?_scal\w+")


def gradient_of(rank: int, folder: str, wrapped: bool) -> None:
    import torch.distributed as dist

    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    dist.init_process_group("gloo", init_method=f"file://{folder}/meet-{wrapped}", rank=rank, world_size=2)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(1, 1, bias=False))
    called = model if wrapped else model.module
    called(torch.full((1, 1), rank + 1.0)).sum().backward()
    Path(folder, f"{wrapped}-{rank}").write_text(str(model.module.weight.grad.item()))
    dist.destroy_process_group()


@pytest.mark.parametrize(("wrapped", "gradients"), [(True, ["1.5", "1.5"]), (False, ["1.0", "2.0"])])
def test_ddp_averages_gradients_of_its_own_forward_alone(tmp_path: Path, wrapped: bool, gradients: list[str]):
    torch.multiprocessing.spawn(gradient_of, (str(tmp_path), wrapped), nprocs=2)
    assert [(tmp_path / f"{wrapped}-{rank}").read_text() for rank in range(2)] == gradients


def test_models_whose_logits_are_scaled_are_known():
    found = find_spec("transformers")
    if found is None or found.origin is None:
        pytest.skip("transformers is not installed")
    folder = Path(found.origin).parent / "models"
    counted = [name for name, family in families().items() if family.layout is not None]
    modules = {name: folder / name / f"modeling_{name}.py" for name in counted}
    scaled = {name for name, file in modules.items() if file.is_file() and SCALED.search(file.read_text())}
    assert scaled == {name for name in modules if families()[name].scales_logits}
