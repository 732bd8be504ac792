"""Published runs that offload, and went through: none is refused for its host."""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from advisor.accuracy.published import published
from advisor.accuracy.timed import timed
from advisor.memory import Estimate, estimate
from advisor.opening import open_configs
from advisor.record import replace
from advisor.util import gib

pytestmark = pytest.mark.slow

LEAST = 100


def offloading() -> Iterator[tuple[str, Estimate]]:
    """Each such run on a machine as it is common with its cards, in which nobody says what the own host had."""
    for run in (*published(), *timed()):
        config: Mapping[str, Any] = run.config
        if getattr(run, "out_of_memory", False):
            continue
        opened = open_configs(dict(config), run.deepspeed and dict(run.deepspeed), run.gpus, stack=run.stack).run
        hardware = opened.hardware
        assert hardware is not None
        found = estimate(replace(opened, hardware=replace(hardware, host_bytes=hardware.common_host_bytes)))
        if found is not None and found.host:
            yield run.id, found


def test_no_published_run_is_refused_for_its_host():
    table = [
        f"{name:<12}{gib(found.host_needed.low):>11} to {gib(found.host_needed.high):>11} of"
        f" {gib(found.host_usable or 0)}: {found.on_host}"
        for name, found in offloading()
    ]
    refused = [line for line in table if line.endswith("does-not-fit")]
    assert len(table) >= LEAST
    assert not refused, "\n".join(refused)
