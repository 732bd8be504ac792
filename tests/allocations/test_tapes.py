# pyright: basic
"""Tapes without torch, against those that were recorded from the real modules."""

import gzip
import json
from pathlib import Path
from random import Random

import pytest

from advisor.allocations.autograd.autograd import Tape
from advisor.allocations.step.ddp import BUCKET_BYTES, FIRST_BYTES, in_order, pieces
from advisor.models.family import families

from .emulating import canonical, emulated, least_compared, model_of
from .settings import SETTINGS

RECORDED: dict[str, list[int]] = json.loads(gzip.decompress(Path(__file__).with_name("recorded.json.gz").read_bytes()))


@pytest.mark.parametrize("name", SETTINGS)
def test_a_step_allocates_and_frees_what_was_recorded_in_the_same_order(name: str):
    tape = emulated(SETTINGS[name])
    found = canonical(tape.events, tape.marks[0][1], least_compared(SETTINGS[name]))
    assert len(found) > 700
    assert found == RECORDED[name]


WITHOUT_A_RECORDING = {
    "deepseek_v3": "latent attention and grouped sigmoid routing as of glm4_moe_lite, which is recorded",
    "mimo": "transformers has no modules of it; as qwen2, which is recorded",
}


def test_families_with_tapes_are_recorded():
    """A replay speaks for them: ``has_tapes`` of a row says that its steps allocate as was recorded."""
    models = [model_of(setting) for setting in SETTINGS.values()]
    seen = {model.decoder_type or model.model_type for model in models if model is not None}
    assert {name for name, row in families().items() if row.has_tapes} - seen == set(WITHOUT_A_RECORDING)


@pytest.mark.oracle
@pytest.mark.parametrize(
    "name",
    [
        "full, fp32 embeddings, tied, reentrant",
        "lora, qwen2",
        "qlora, non-reentrant, one row",
        "replicas, full, fp32 embeddings",
        "replicas, lora, fused, two micro-steps",
    ],
)
def test_what_is_recorded_is_what_the_libraries_do(name: str):
    pytest.importorskip("peft")
    from .record import recorded

    assert recorded(name) == RECORDED[name]


@pytest.mark.oracle
@pytest.mark.parametrize("seed", range(4))
def test_buckets_are_filled_as_by_the_reducer(seed: int):
    torch = pytest.importorskip("torch")
    random = Random(seed)
    widths = {1: torch.uint8, 2: torch.bfloat16, 4: torch.float32}
    sizes = [(random.choice((2, 2, 2, 4, 1)), random.randrange(1, 1 << 22)) for _ in range(200)]
    real = [torch.empty(count, dtype=widths[width], device="meta") for width, count in sizes]
    limits = [FIRST_BYTES, BUCKET_BYTES]
    groups = torch.distributed._compute_bucket_assignment_by_size(real, limits)[0]
    tape = Tape()
    ours = [tape.new(count, width) for width, count in sizes]
    places = {one: index for index, one in enumerate(ours)}
    found = in_order(pieces(ours, *limits))
    assert [[places[one] for one in some] for _, some in found] == groups


@pytest.mark.oracle
def test_the_scaler_of_fp16_makes_numbers_alone():
    torch = pytest.importorskip("torch")
    from .recording import Recorder

    weight = torch.nn.Parameter(torch.ones(64, 64))
    optimizer = torch.optim.SGD([weight], lr=0.1)
    scaler = torch.amp.GradScaler("cpu")
    recorder = Recorder()
    for _ in range(2):
        loss = (torch.ones(8, 64) @ weight).sum()
        with recorder:
            scaled = scaler.scale(loss)
        scaled.backward()
        with recorder:
            scaler.unscale_(optimizer)
        scaler.step(optimizer)
        with recorder:
            scaler.update()
        optimizer.zero_grad()
    assert recorder.made_by
    assert max(size for _, size in recorder.events) <= 8


@pytest.mark.oracle
def test_the_engine_adds_gradients_in_place():
    """Not so under a dispatch mode, as in recordings: torch/csrc/autograd/input_buffer.cpp, accumulate."""
    torch = pytest.importorskip("torch")
    source = torch.ones(4, 4, requires_grad=True) * 1.0
    first, second = (source @ torch.ones(4, 4) for _ in range(2))
    seen: list[int] = []
    for product in (first, second):
        product.grad_fn.register_hook(lambda given, _taken: seen.append(given[0].data_ptr()))
    source.grad_fn.register_prehook(lambda given: seen.append(given[0].data_ptr()))
    (first.sum() + second.sum()).backward()
    assert seen[2] == seen[0] != seen[1]


@pytest.mark.oracle
@pytest.mark.parametrize(("rows", "most"), [((600,), 2), ((2, 300), 3)])
def test_the_engine_adds_nothing_into_a_view(rows: tuple[int, ...], most: int):
    """A linear's gradient of rows of rows is a view of a product; two of them are added into a third tensor."""
    torch = pytest.importorskip("torch")
    source = torch.ones(*rows, 64, requires_grad=True) * 1.0
    results = [torch.nn.functional.linear(source, torch.ones(width, 64)) for width in (30, 31)]
    total = sum(one.sum() for one in results)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profile:
        total.backward()
    changes = [event.nbytes() for event in profile.profiler.kineto_results.events() if event.name() == "[memory]"]
    live = peak = 0
    for change in changes:
        if abs(change) == 4 * source.numel():
            live += change
            peak = max(peak, live)
    assert peak == most * 4 * source.numel()
