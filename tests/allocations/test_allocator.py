"""The allocator against torch's own snapshots, and by its rules where no snapshot shows them."""

from collections.abc import Callable
from pathlib import Path

import pytest

from advisor.allocations.allocator.allocator import Allocator, OutOfMemoryError, rounded
from advisor.allocations.allocator.blocks import MIB, Block
from advisor.allocations.allocator.settings import Settings, parse_settings, settings_of
from advisor.run import Run

from .snapshots import Replay, read, replay

FIGURES = sorted(Path(__file__).with_name("figures").glob("*.json.gz"))
ALL_RIGHT: dict[str, object] = {"elsewhere": [], "segments_asked": 0, "segments_released": 0, "end": True, "peak": True}
EXPANDABLE = Settings(expandable_segments=True)


def differences(found: Replay) -> dict[str, object]:
    """All but the count."""
    return {key: value for key, value in vars(found).items() if key != "allocations"}


@pytest.mark.parametrize("path", FIGURES, ids=lambda path: path.name.split(".")[0])
def test_every_block_of_a_snapshot_lies_where_torch_put_it(path: Path):
    found = replay(read(path))
    assert found.allocations > 30
    assert differences(found) == ALL_RIGHT


def test_every_block_of_all_published_snapshots_lies_where_torch_put_it(corpus: Path):
    files = sorted((corpus / "measured" / "allocator").glob("*.json.gz"))
    found = [replay(read(path)) for path in files]
    assert [differences(one) for one in found] == [ALL_RIGHT] * len(files)
    assert sum(one.allocations for one in found) == 78_908


def test_small_and_large_requests_have_segments_of_their_own():
    allocator = Allocator()
    allocator.malloc(1)
    assert allocator.reserved == 2 * MIB
    allocator.malloc(2 * MIB)
    assert allocator.reserved == 22 * MIB
    allocator.malloc(31 * MIB)
    assert allocator.reserved == (22 + 32) * MIB
    assert allocator.allocated == 512 + 2 * MIB + 32 * MIB  # a rest of 1 MiB is not split off


def test_streams_do_not_share_blocks():
    allocator = Allocator()
    allocator.free(allocator.malloc(4 * MIB, stream=1))
    allocator.malloc(4 * MIB, stream=2)
    assert allocator.reserved == 40 * MIB


def test_the_smallest_block_that_is_large_enough_is_taken_and_neighbours_merge():
    allocator = Allocator()
    blocks = [allocator.malloc(size * MIB) for size in (6, 2, 4, 2, 4)]
    for index in (0, 2, 4):
        allocator.free(blocks[index])
    assert allocator.malloc(3 * MIB).address == blocks[2].address
    allocator.free(blocks[1])
    assert allocator.malloc(8 * MIB).address == blocks[0].address


def test_at_the_limit_whole_segments_are_released_and_the_request_tried_again():
    allocator = Allocator(limit=100 * MIB)
    cached = [allocator.malloc(size * MIB) for size in (60, 10)]
    allocator.malloc(10 * MIB)
    for block in cached:
        allocator.free(block)
    assert allocator.malloc(90 * MIB).size == 90 * MIB
    assert (allocator.retries, allocator.reserved) == (1, 100 * MIB)
    with pytest.raises(OutOfMemoryError):
        allocator.malloc(30 * MIB)


def test_an_expandable_segment_grows_by_granules_and_leaves_no_gap_between_blocks():
    allocator = Allocator(EXPANDABLE)
    first, second = allocator.malloc(30 * MIB), allocator.malloc(25 * MIB)
    assert second.address == first.address + 30 * MIB
    assert allocator.reserved == 60 * MIB
    allocator.malloc(1000)
    assert allocator.reserved == 62 * MIB


def test_a_free_end_of_an_expandable_segment_is_grown_from():
    allocator = Allocator(EXPANDABLE)
    allocator.malloc(20 * MIB)
    end = allocator.malloc(20 * MIB)
    allocator.free(end)
    assert allocator.malloc(50 * MIB).address == end.address
    assert allocator.reserved == 80 * MIB


def test_at_the_limit_free_granules_are_unmapped_and_mapped_elsewhere():
    allocator = Allocator(EXPANDABLE, limit=100 * MIB)
    front, middle = allocator.malloc(50 * MIB), allocator.malloc(30 * MIB)
    allocator.free(front)
    end = allocator.malloc(55 * MIB)
    assert end.address == middle.address + 30 * MIB
    assert (allocator.retries, allocator.reserved) == (1, 100 * MIB)
    again: Block = allocator.malloc(8 * MIB)  # what of the front shares a granule with the middle is still mapped
    assert again.address == front.address + 40 * MIB


def test_blocks_above_the_largest_split_size_are_kept_whole():
    allocator = Allocator(Settings(max_split_size=64 * MIB), limit=400 * MIB)
    large = allocator.malloc(200 * MIB)
    allocator.free(large)
    assert allocator.malloc(30 * MIB).address != large.address
    assert allocator.malloc(100 * MIB).address != large.address
    assert allocator.malloc(190 * MIB) is large  # no more than 20 MiB larger
    with pytest.raises(OutOfMemoryError):
        allocator.malloc(100 * MIB)


def test_large_blocks_that_are_never_split_go_first_at_the_limit():
    allocator = Allocator(Settings(max_split_size=64 * MIB), limit=300 * MIB)
    for size in (200, 80):
        allocator.free(allocator.malloc(size * MIB))
    allocator.malloc(150 * MIB)
    assert allocator.retries == 0
    assert allocator.reserved == (150 + 80) * MIB


@pytest.mark.parametrize(
    ("size", "divisions", "block"),
    [(513, 0, 1024), (1 << 20, 4, 1 << 20), (1_200_000, 4, 1_310_720), (1200, 4, 1536), (2_000_000, 1, 2_000_384)],
)
def test_sizes_are_rounded(size: int, divisions: int, block: int):
    assert rounded(size, divisions) == block


def test_settings_are_read_as_torch_writes_them():
    found = parse_settings("expandable_segments:True, max_split_size_mb:128,roundup_power2_divisions:16")
    assert found == Settings(expandable_segments=True, max_split_size=128 * MIB, roundup_power2_divisions=16)
    assert parse_settings("") == Settings()


@pytest.mark.parametrize(
    ("stack", "settings"),
    [
        ({}, Settings(expandable_segments=True)),
        ({"torch": "2.6.0"}, Settings(expandable_segments=True, roundup_power2_divisions=16)),
        ({"torch": "2.1.0"}, Settings()),
        ({"trainer": "hf-trainer"}, Settings()),
    ],
)
def test_axolotl_sets_what_its_torch_takes(make_run: Callable[..., Run], stack: dict[str, object], settings: Settings):
    assert settings_of(make_run("base_model: meta-llama/Llama-3.2-1B", stack=stack)) == settings
